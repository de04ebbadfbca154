// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves state in the interrupt controller, the timers and the performance monitors, and makes the
//! settings at EL3 that let the non-secure side use the interrupt controller (IHI 0069H, 12.9 to
//! 12.11).

use aarch64_cpu::registers::{
    CNTP_CTL_EL0, CNTP_CVAL_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, ICH_HCR_EL2, ICH_VMCR_EL2, Readable,
    Writeable,
};
use arch::insn;
use arch::regs::*;
use gic::Redistributor;
use platform::{Gic, Uart, Watchdog};

use crate::el3;

/// Offsets in the distributor; they are the same in the SGI frame of a redistributor.
const CTLR: u64 = 0;
const TYPER: u64 = 4;
const IGROUPR: u64 = 0x80;
const ISENABLER: u64 = 0x100;
const ISPENDR: u64 = 0x200;
const ISACTIVER: u64 = 0x300;
const IPRIORITYR: u64 = 0x400;
const ICFGR: u64 = 0xc00;
const IGRPMODR: u64 = 0xd00;
/// Offsets in a redistributor.
const WAKER: u64 = 0x14;
const PROPBASER: u64 = 0x70;
const PENDBASER: u64 = 0x78;
const SGI_FRAME: u64 = 0x1_0000;
/// GICR_WAKER: ProcessorSleep, ChildrenAsleep.
const SLEEP: u32 = 1 << 1;
const ASLEEP: u32 = 1 << 2;

/// Reads a register.
fn read_register(address: u64) -> u32 {
    // SAFETY: the description of the machine names the device.
    unsafe { (address as *const u32).read_volatile() }
}

/// Writes a register.
fn write_register(address: u64, value: u32) {
    // SAFETY: as above, and nothing depends on the device's state before the next image runs.
    unsafe { (address as *mut u32).write_volatile(value) }
}

fn write_register64(address: u64, value: u64) {
    // SAFETY: as above.
    unsafe { (address as *mut u64).write_volatile(value) }
}

/// Returns the frame of this CPU's redistributor.
pub fn redistributor_frame(gic: &Gic, mpidr: u64) -> u64 {
    // SAFETY: the description is QEMU's own.
    unsafe { Redistributor::find(gic, mpidr) }.map_or(0, |found| found.base())
}

/// Number of registers with 32 SPIs each.
fn spi_register_count(gic: &Gic) -> u64 {
    u64::from(read_register(gic.distributor.base + TYPER) & 0x1f)
}

/// Enables affinity routing and all groups, and puts every SPI into non-secure Group 1. Runs once, at EL3.
pub fn set_up_distributor(gic: &Gic) {
    let base = gic.distributor.base;
    write_register(base + CTLR, 3 << 4);
    write_register(base + CTLR, 3 << 4 | 7);
    for n in 1..=spi_register_count(gic) {
        write_register(base + IGROUPR + 4 * n, u32::MAX);
        write_register(base + IGRPMODR + 4 * n, 0);
    }
}

/// Wakes the redistributor of a CPU, and puts its SGIs and PPIs into non-secure Group 1. Runs on each CPU, at EL3.
pub fn set_up_redistributor(frame: u64) {
    write_register(frame + WAKER, read_register(frame + WAKER) & !SLEEP);
    while read_register(frame + WAKER) & ASLEEP != 0 {}
    write_register(frame + SGI_FRAME + IGROUPR, u32::MAX);
    write_register(frame + SGI_FRAME + IGRPMODR, 0);
}

/// Enables the UART's interrupts: from the next byte on, the UART's interrupt line is high until
/// something serves the interrupt.
pub fn dirty_uart(uart: &Uart) {
    /// UARTIMSC of a PL011 (DDI 0183G, 3.3.10): every interrupt.
    const IMSC: u64 = 0x38;
    write_register(uart.base + IMSC, 0x7ff);
}

/// Leaves SPIs enabled, pending and active for this CPU, at the highest priority; returns the
/// states of the SPIs in the first register.
pub fn dirty_spis(gic: &Gic) -> [u32; 3] {
    const ROUTER: u64 = 0x6000;
    let base = gic.distributor.base;
    write_register(base + CTLR, read_register(base + CTLR) | 1 << 4 | 3);
    for n in 1..=spi_register_count(gic) {
        write_register(base + IGROUPR + 4 * n, u32::MAX);
        for register in [ISENABLER, ISPENDR, ISACTIVER] {
            // Every second SPI is active, so that the SPIs between them can be delivered.
            let active = if register == ISACTIVER {
                0x5555_5555
            } else {
                u32::MAX
            };
            write_register(base + register + 4 * n, active);
        }
        for m in 0..8 {
            write_register(base + IPRIORITYR + 32 * n + 4 * m, 0);
            write_register64(base + ROUTER + 8 * (32 * n + m), 0);
        }
        write_register(base + ICFGR + 8 * n, 0xaaaa_aaaa);
    }
    [ISENABLER, ISPENDR, ISACTIVER].map(|register| read_register(base + register + 4))
}

/// Leaves SGIs and PPIs enabled, pending and active, at the highest priority; returns their states.
pub fn dirty_ppis(frame: u64) -> [u32; 3] {
    let base = frame + SGI_FRAME;
    write_register(frame + WAKER, read_register(frame + WAKER) & !SLEEP);
    for n in 0..8 {
        write_register(base + IPRIORITYR + 4 * n, 0);
    }
    write_register(base + ISENABLER, u32::MAX);
    write_register(base + ISPENDR, u32::MAX);
    write_register(base + ISACTIVER, u32::MAX);
    [ISENABLER, ISPENDR, ISACTIVER].map(|register| read_register(base + register))
}

/// Leaves LPIs enabled (it may be impossible to clear the enable bit: IHI 0069H, 12.11, GICR_CTLR), with the
/// first LPI pending. In `memory`, each CPU has its own pending table, at a multiple of 64 KiB. Returns
/// GICR_CTLR.
pub fn dirty_lpis(frame: u64, memory: u64, number: u64) -> u32 {
    /// Number of bits of an INTID, minus one.
    const BITS: u64 = 13;
    let pending = memory + 0x2_0000 + 0x1_0000 * number;
    // SAFETY: this memory is reserved for the tables.
    unsafe {
        (memory as *mut u8).write_bytes(0x81, 0x2000);
        (pending as *mut u8).write_bytes(0, 0x800);
        ((pending + 1024) as *mut u8).write_volatile(1);
    }
    insn::dsb_sy();
    write_register64(frame + PROPBASER, memory | BITS);
    write_register64(frame + PENDBASER, pending);
    write_register(frame + CTLR, 1);
    read_register(frame + CTLR)
}

/// Leaves the CPU interface with active priorities, list registers in use and traps for EL1; the
/// interface lets no interrupt through. Returns ICC_AP1R0_EL1 and ICH_AP1R0_EL2.
pub fn dirty_priorities() -> [u64; 2] {
    ICC_SRE_EL2.set(0xf);
    insn::isb();
    ICC_SRE_EL1.set(7);
    insn::isb();
    ICC_AP1R0_EL1.set(u64::from(u32::MAX));
    ICH_AP0R0_EL2.set(u64::from(u32::MAX));
    ICH_AP1R0_EL2.set(u64::from(u32::MAX));
    // PPIs that a guest has, in Group 1 with the highest priority: pending, active, both, and
    // pending with a physical interrupt (HW).
    let states = [1 << 62, 1 << 63, 3 << 62, 1 << 62 | 1 << 61 | 30 << 32];
    for (n, state) in states.into_iter().enumerate() {
        set_ich_lr(n, state | 1 << 60 | (27 + n as u64));
    }
    ICH_VMCR_EL2.set(u64::from(u32::MAX));
    // Sets En, UIE, TC, TALL0, TALL1 and TDIR.
    ICH_HCR_EL2.set(1 | 1 << 1 | 0x1f << 10);
    ICC_BPR1_EL1.set(7);
    // Sets CBPR and EOImode.
    ICC_CTLR_EL1.set(3);
    insn::isb();
    [ICC_AP1R0_EL1.get(), ICH_AP1R0_EL2.get()]
}

/// Lets no non-secure interrupt through, because this firmware would take it while PSTATE.DAIF is clear.
pub fn mask_interrupts() {
    /// The most urgent priority of the non-secure side, as EL3 sees it.
    const NON_SECURE: u64 = 0x80;
    ICC_SRE_EL2.set(0xf);
    insn::isb();
    ICC_PMR_EL1.set(if el3::is_el3() { NON_SECURE } else { 0 });
    ICC_IGRPEN1_EL1.set(0);
    insn::isb();
}

/// Leaves timers enabled and expired, and the counter's event streams on; returns the controls of
/// the timers.
pub fn dirty_timers() -> [u64; 3] {
    CNTP_CVAL_EL0.set(0);
    CNTV_CVAL_EL0.set(0);
    CNTHP_CVAL_EL2.set(0);
    CNTP_CTL_EL0.set(1);
    CNTV_CTL_EL0.set(1);
    CNTHP_CTL_EL2.set(1);
    // Sets EVNTEN, in addition to EL1's permissions.
    CNTHCTL_EL2.set(CNTHCTL_EL2.get() | 1 << 2);
    CNTKCTL_EL1.set(CNTKCTL_EL1.get() | 1 << 2);
    insn::isb();
    [CNTP_CTL_EL0.get(), CNTV_CTL_EL0.get(), CNTHP_CTL_EL2.get()]
}

/// Leaves the performance monitors counting every 64th cycle, at EL2 and not at EL1, with
/// interrupts enabled and overflows pending; returns PMCR_EL0 and PMCNTENSET_EL0.
pub fn dirty_pmu() -> [u64; 2] {
    const OVERFLOWS: u64 = 0x8000_003f;
    // Sets P and NSH.
    PMCCFILTR_EL0.set(1 << 31 | 1 << 27);
    // PMOVSSET_EL0, PMINTENSET_EL1, PMUSERENR_EL0, PMSELR_EL0.
    // SAFETY: these registers decide what is counted and which interrupts this causes; all interrupts are masked.
    unsafe {
        core::arch::asm!("msr S3_3_C9_C14_3, {0}", "msr S3_0_C9_C14_1, {0}",
            "msr S3_3_C9_C14_0, {0}", "msr S3_3_C9_C12_5, {1}",
            in(reg) OVERFLOWS, in(reg) 31u64, options(nostack, preserves_flags));
    }
    PMCCNTR_EL0.set(u64::MAX - 1000);
    // Sets E, D, X and DP.
    PMCR_EL0.set(1 | 1 << 3 | 1 << 4 | 1 << 5);
    PMCNTENSET_EL0.set(OVERFLOWS);
    insn::isb();
    [PMCR_EL0.get(), PMCNTENSET_EL0.get()]
}

/// Leaves a generic watchdog running, which resets the machine after twice `ticks`; returns WCS
/// (DEN0094, chapter on the Generic Watchdog).
pub fn start_watchdog(watchdog: &Watchdog, ticks: u64) -> u32 {
    const WCS: u64 = 0;
    const WOR: u64 = 0x8;
    const WOR_HIGH: u64 = 0xc;
    write_register(watchdog.control + WOR_HIGH, (ticks >> 32) as u32);
    write_register(watchdog.control + WOR, ticks as u32);
    write_register(watchdog.control + WCS, 1);
    read_register(watchdog.control + WCS)
}
