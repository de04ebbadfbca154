// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets up the interrupt controller of a CPU for EL2.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use arch::gic_cpu;
use arch::regs::{
    ICC_IGRPEN0_EL1, ICC_SRE_EL2, ICH_AP0R0_EL2, ICH_AP0R1_EL2, ICH_AP0R2_EL2, ICH_AP0R3_EL2,
    ICH_AP1R0_EL2, ICH_AP1R1_EL2, ICH_AP1R2_EL2, ICH_AP1R3_EL2, ICH_HCR_EL2, ICH_VMCR_EL2,
    ICH_VTR_EL2, set_ich_lr,
};
use gic::Redistributor;
use platform::Platform;
use vgic::Bank;

use super::{SGIS, ThisCpu, direct};
use crate::cpu::percpu::PerCpu;
use crate::machine::machine;
use crate::planted;

/// ICC_SRE_EL2: system registers at EL2 (0), bypass off (1, 2); EL1's accesses to ICC_SRE_EL1 trap (3 is
/// 0).
const SRE: u64 = 0x7;
/// ICH_HCR_EL2: En (0), and TALL0 (11), because the guest has no Group 0 (`vgic`), whoever
/// delivers its interrupts.
const ENABLE: u64 = 1 << 0 | 1 << 11;
/// Priority of the interrupts that EL2 takes. EL2's timer has another priority if there are slices
/// (`neighbour::turn`).
pub const PRIORITY: u8 = 0x80;
/// Priority of the doorbell, which is higher than that of SGIs: if a CPU writes a vCPU's registers and then sends it an
/// SGI, the registers take effect first. A neighbour's slice masks both the doorbell and SGIs.
const DOORBELL_PRIORITY: u8 = 0x60;

/// Whether Group 0 belongs to this level too ([`gic_cpu::has_group0`]); each CPU stores its finding here.
static HAS_GROUP0: AtomicBool = AtomicBool::new(false);
/// Whether interrupt priorities read as shifted values but the priority mask does not. This is so
/// with two security states if Group 0 does not belong to EL3 alone (SCR_EL3.FIQ is 0; IHI 0069H,
/// 4.8.1, and 12.2, ICC_PMR_EL1).
static SHIFTED_BUT_MASK: AtomicBool = AtomicBool::new(false);

/// Returns the value of ICC_PMR_EL1 that corresponds to an interrupt's `priority`.
pub fn pmr_value(priority: u8) -> u64 {
    let seen = u64::from(priority);
    match SHIFTED_BUT_MASK.load(Relaxed) {
        true => seen >> 1 | 0x80,
        false => seen,
    }
}

/// Sets up the interrupt controller of this CPU for EL2.
///
/// # Safety
/// The description must be true, its devices must be mapped, and `cpu` must be the running CPU.
pub unsafe fn prepare_cpu(cpu: &PerCpu, platform: &Platform<'_>) -> Result<(), gic::Error> {
    // SAFETY: as the caller promises; each CPU has its own redistributor.
    let redistributor = unsafe {
        let redistributor = Redistributor::find(&platform.gic, cpu.mpidr)?;
        redistributor.set_up();
        redistributor
    };
    redistributor.quieten();
    cpu.redistributor.call_once(|| redistributor);
    if platform.gic.version2.is_some() {
        let machine = machine();
        let number = gic::version2::take_interface(cpu.mpidr)?;
        cpu.version2
            .set_up(number, machine.stage2.0, machine.closed);
        cpu.doorbell
            .set_version2(&platform.gic, number.into(), machine.doorbell());
        cpu.vcpu.private.become_version2();
    } else {
        cpu.doorbell.set(&redistributor, machine().doorbell());
    }
    ICC_SRE_EL2.set(SRE);
    arch::insn::isb();
    enable_el2_interrupts(&redistributor, platform);
    let group0 = gic_cpu::has_group0();
    HAS_GROUP0.store(group0, Relaxed);
    close_group0();
    // The enable bits of the secure world's SGIs read as 0, whatever is written (IHI 0069H,
    // 12.11, GICR_ISENABLER0).
    direct::note_secure_sgis(SGIS & !redistributor.enabled());
    // SAFETY: as the caller promises.
    let two_states = unsafe { gic::has_two_states(&platform.gic) };
    SHIFTED_BUT_MASK.store(two_states && group0, Relaxed);
    gic_cpu::forget_active(group0);
    clear_guest();
    let interface = ThisCpu(cpu);
    if planted::list_registers().unwrap_or_else(|| interface.count()) == 1 {
        return Err(gic::Error::OneListRegister);
    }
    for n in 0..interface.count() {
        set_ich_lr(n, 0);
    }
    ICH_HCR_EL2.set(ENABLE);
    // A search for an empty list register may follow without an exception in between.
    arch::insn::isb();
    Ok(())
}

/// Number of preemption bits for which one register of active priorities is enough.
const FIRST: u64 = 5;

/// Number of preemption bits; ICH_VTR_EL2.PREbits (28:26) is one less.
fn preemption_bit_count() -> u64 {
    (ICH_VTR_EL2.get() >> 26 & 7) + 1
}

/// Clears the active priorities of the guest's interface and the guest's settings, as
/// [`gic_cpu::forget_active`] does for EL2's own. The priorities of Group 0 are cleared before
/// those of Group 1: any other order is UNPREDICTABLE (IHI 0069H, 12.4, `ICH_AP1R<n>_EL2`).
pub fn clear_guest() {
    let bits = preemption_bit_count();
    ICH_AP0R0_EL2.set(0);
    if bits > FIRST {
        ICH_AP0R1_EL2.set(0);
    }
    if bits > FIRST + 1 {
        ICH_AP0R2_EL2.set(0);
        ICH_AP0R3_EL2.set(0);
    }
    ICH_AP1R0_EL2.set(0);
    if bits > FIRST {
        ICH_AP1R1_EL2.set(0);
    }
    if bits > FIRST + 1 {
        ICH_AP1R2_EL2.set(0);
        ICH_AP1R3_EL2.set(0);
    }
    ICH_VMCR_EL2.set(0);
}

/// Whether the guest has a running priority in its virtual interface.
pub fn has_active_priorities() -> bool {
    let bits = preemption_bit_count();
    let mut active = ICH_AP0R0_EL2.get() | ICH_AP1R0_EL2.get();
    if bits > FIRST {
        active |= ICH_AP0R1_EL2.get() | ICH_AP1R1_EL2.get();
    }
    if bits > FIRST + 1 {
        active |= ICH_AP0R2_EL2.get() | ICH_AP0R3_EL2.get();
        active |= ICH_AP1R2_EL2.get() | ICH_AP1R3_EL2.get();
    }
    active != 0
}

/// Disables the SGIs of a CPU that has no vCPU. A guest can send endless SGIs to any CPU. At equal
/// priority, their lower INTIDs put them ahead of the interrupt of this CPU's timer (IHI 0069H,
/// 4.8), which enforces the run's deadline.
pub fn disable_sgis(kept: &PerCpu) {
    // A GICv2 shows each CPU its own registers only; there, a guest can send SGIs only to vCPUs.
    if machine().platform.gic.version2.is_none() {
        kept.redistributor().disable_all(SGIS);
    }
}

/// Returns whether Group 0 belongs to this level too; see [`HAS_GROUP0`].
pub fn has_group0() -> bool {
    HAS_GROUP0.load(Relaxed)
}

/// Sets up the interface and the priorities for EL2 again, after the guest has owned them.
pub fn restore_for_el2(redistributor: &Redistributor, platform: &Platform<'_>) {
    enable_el2_interrupts(redistributor, platform);
    close_group0();
}

/// Disables Group 0: its interrupts would be signalled as FIQs, and EL2 uses none of them.
fn close_group0() {
    if has_group0() {
        ICC_IGRPEN0_EL1.set(0);
        arch::insn::isb();
    }
}

/// Enables the interrupts that EL2 takes: SGIs, the maintenance interrupt and the interrupt of EL2's timer. The
/// interrupts of the guest's timers are enabled as long as the guest has them enabled.
fn enable_el2_interrupts(redistributor: &Redistributor, platform: &Platform<'_>) {
    for intid in 0..vgic::PRIVATE {
        // SAFETY: only the CPU that the redistributor belongs to runs this.
        unsafe { redistributor.set_priority(intid, PRIORITY) };
    }
    // SAFETY: as above.
    unsafe { redistributor.set_priority(machine().doorbell(), DOORBELL_PRIORITY) };
    let timer = platform.timer.hyp.map_or(0, |intid| 1 << intid);
    redistributor.enable_all(SGIS | 1 << platform.gic.maintenance | timer);
    gic_cpu::enable(true);
}
