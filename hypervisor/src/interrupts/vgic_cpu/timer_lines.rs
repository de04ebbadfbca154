// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples the lines of the guest's timers. A timer's interrupt is pending only while its
//! line is high (IHI 0069H, 4.1; DDI 0487K.a, D12.2.4). A list register does not follow a
//! line. So EL2 samples the line whenever EL2 runs anyway and the guest may be about to
//! see the difference, because the guest reads its interrupts' states or waits. EL2 also
//! samples the line when the guest acknowledges an interrupt that came while IRQs were
//! masked: EL2 makes that access trap ([`trap_next_access`]). The access does not trap if
//! the interrupt ended a trapped WFI, or if WFI does not trap and the guest has turned
//! the check off ([`traps::set_recheck_timers`]): otherwise, the end of a CPU's wait
//! would cost a second exit. `docs/testing.md` lists the differences that a guest can
//! notice.

use aarch64_cpu::registers::{CNTP_CTL_EL0, CNTV_CTL_EL0, Readable, SPSR_EL2};
use arch::regs::ICH_HCR_EL2;

use super::{TRAP_COMMON, sample_timer_lines, timer_ppis};
use crate::cpu::percpu::PerCpu;
use crate::cpu::traps;
use crate::machine::machine;

/// ICH_HCR_EL2.TALL1: EL1's accesses to the interface's Group 1 registers trap.
pub const TRAP_GROUP1: u64 = 1 << 12;
/// SPSR_EL2.I.
pub const IRQ_MASKED: u64 = 1 << 7;

/// Returns the guest's timers whose lines are high, as bits of the redistributor's registers.
pub fn high_ppis(of: &PerCpu) -> u32 {
    if !core::ptr::eq(of, PerCpu::this()) {
        // These interrupts are level-sensitive, and software does not set them while EL2 owns the
        // redistributor, so their pending bits are the levels (IHI 0069H, 12.11, GICR_ISPENDR0).
        return of.redistributor().pending() & timer_ppis();
    }
    // No barrier is needed: the guest changed its timer before the exception that led here.
    let timer = &machine().platform.timer;
    let high = |control: u64, intid: u32| u32::from(is_high(control)) << intid;
    high(CNTV_CTL_EL0.get(), timer.virt) | high(CNTP_CTL_EL0.get(), timer.phys)
}

/// Whether a timer with this CNTx_CTL_EL0 asserts its line: ENABLE (0) and ISTATUS
/// (2), and not IMASK (1).
const fn is_high(control: u64) -> bool {
    control & 0b111 == 0b101
}

/// Makes the guest's next access to the interface trap if the guest has IRQs masked and did not wait. EL2 calls this
/// after it has taken a timer's interrupt and listed it. `exits::fast_paths` has its own code for this.
pub fn trap_next_access() {
    if SPSR_EL2.get() & IRQ_MASKED != 0 && traps::watches_timers() {
        ICH_HCR_EL2.set(ICH_HCR_EL2.get() | TRAP_GROUP1);
    }
}

/// Handles a trapped access to a Group 1 register: samples the lines and, unless all accesses trap,
/// lets the guest execute the access again without a trap. Returns whether it does so.
pub fn handle_access_trap(cpu: &PerCpu) -> bool {
    let control = ICH_HCR_EL2.get();
    if control & TRAP_GROUP1 == 0 {
        return false;
    }
    sample_timer_lines(cpu);
    // The register is read again, because withdrawing an interrupt may have changed it.
    let control = ICH_HCR_EL2.get();
    if control & TRAP_COMMON != 0 {
        return false;
    }
    ICH_HCR_EL2.set(control & !TRAP_GROUP1);
    true
}
