// SPDX-License-Identifier: MIT OR Apache-2.0
//! The distributor and the CPU interface of a GICv2 (IHI 0048B, chapter 4).
//!
//! All interrupts stay in the group that a write of 0 gives them: Group 0 if there is one security
//! state, and Group 1 on the Non-secure side of two. Bit 0 of GICD_CTLR and of GICC_CTLR enables
//! this group in either case, and its interrupts arrive as IRQs.

use arch::gicv2::REGISTERS;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicU8, AtomicU64, fence};
use platform::GicV2;

use crate::Error;
use crate::mmio::{load_32, store_8, store_32};

/// GICD_TYPER.ITLinesNumber (4.3.2; bits 4:0): the number of 32-INTID registers after the first.
const GICD_TYPER: u64 = 0x004;
/// Registers with a bit per INTID: GICD_IGROUPR, ICENABLER, ICPENDR, ICACTIVER.
const GICD_IGROUPR: u64 = 0x080;
const GICD_ICENABLER: u64 = 0x180;
const GICD_ICPENDR: u64 = 0x280;
const GICD_ICACTIVER: u64 = 0x380;
/// The priorities, a byte per INTID.
const GICD_IPRIORITYR: u64 = 0x400;
/// The targets of the first four INTIDs, which read as this CPU's interface.
const GICD_ITARGETSR: u64 = 0x800;
/// The configurations, two bits per INTID; the second register is for PPIs.
const GICD_ICFGR1: u64 = 0xc04;
/// Sends an SGI: its INTID (3:0), the CPU interfaces that get it (23:16).
pub(crate) const GICD_SGIR: u64 = 0xf00;
/// Identification: bits 7:4 are the version of the architecture (4.3.18).
pub(crate) const GICD_PIDR2: u64 = 0xfe8;
/// The pending SGIs: a byte per SGI, with a bit for each sender (4.3.16, 4.3.17).
const GICD_CPENDSGIR: u64 = 0xf10;
const GICD_SPENDSGIR: u64 = 0xf20;

const GICC_PMR: u64 = 0x004;
const GICC_BPR: u64 = 0x008;
const GICC_IAR: u64 = 0x00c;
const GICC_EOIR: u64 = 0x010;
/// The first of the registers GICC_APR0 to GICC_APR3.
const GICC_APR: u64 = 0x0d0;
/// The first of the registers GICC_NSAPR0 to GICC_NSAPR3.
const GICC_NSAPR: u64 = 0x0e0;
/// GICC_CTLR (4.4.1) bits 8:5: firmware's choice whether interrupts bypass the interface while it is off.
pub(crate) const BYPASS: u32 = 0xf << 5;

/// An acknowledged interrupt: the value of GICC_IAR (4.4.4), with an SGI's sender, as GICC_EOIR needs it.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged(u32);

impl Acknowledged {
    /// Returns the INTID, or `None` if nothing was pending.
    #[inline(always)]
    #[must_use]
    pub const fn intid(self) -> Option<u32> {
        match self.0 & 0x3ff {
            // 1022 means an interrupt of the other group, and 1023 means none.
            1020.. => None,
            intid => Some(intid),
        }
    }
}

impl From<u32> for Acknowledged {
    fn from(iar: u32) -> Self {
        Self(iar)
    }
}

/// Acknowledges the highest-priority pending interrupt of this CPU. Later loads are not satisfied
/// before the acknowledging load, so they see the stores that a sender made before an SGI.
#[inline(always)]
#[must_use]
pub fn acknowledge() -> Acknowledged {
    let iar = read(&REGISTERS.interface, GICC_IAR);
    fence(Acquire);
    Acknowledged(iar)
}

/// Ends an interrupt that this CPU has acknowledged.
#[inline(always)]
pub fn end(acknowledged: Acknowledged) {
    write(&REGISTERS.interface, GICC_EOIR, acknowledged.0);
}

/// Enables the distributor at `base` of the GICv2 `gic`. Every SPI is then disabled, and neither
/// pending nor active.
///
/// # Safety
/// See [`crate::enable_distributor`].
pub(crate) unsafe fn enable_distributor(base: u64, gic: &GicV2) {
    record_registers(base, gic);
    let set = |offset, value| write(&REGISTERS.distributor, offset, value);
    set(0, 0);
    let registers = u64::from(read(&REGISTERS.distributor, GICD_TYPER) & 0x1f);
    for n in 1..=registers {
        set(GICD_ICENABLER + 4 * n, u32::MAX);
        set(GICD_ICPENDR + 4 * n, u32::MAX);
        set(GICD_ICACTIVER + 4 * n, u32::MAX);
        set(GICD_IGROUPR + 4 * n, 0);
    }
    set(0, 1);
}

/// Reads the register at `address`.
///
/// # Safety
/// The register must exist and be accessible, and a read of it must have no effect.
#[must_use]
pub unsafe fn read_register(address: u64) -> u32 {
    // SAFETY: as the caller promises.
    unsafe { load_32(address) }
}

/// Returns `gic` with the two pages of GICC, and those of GICV, adjacent ([`GicV2::with_adjacent_pages`]).
///
/// # Safety
/// GICC and GICV must be where `gic` has them, and accessible.
#[must_use]
pub unsafe fn find_pages(gic: GicV2) -> GicV2 {
    // SAFETY: as the caller promises, there is an identification register; reading it changes nothing (IHI 0048B, 4.4).
    gic.with_adjacent_pages(|register| unsafe { read_register(register) })
}

/// Records the addresses of the registers of the GICv2 `gic`, whose distributor is at `base`.
pub fn record_registers(base: u64, gic: &GicV2) {
    REGISTERS.distributor.store(base, Relaxed);
    REGISTERS.interface.store(gic.gicc.base, Relaxed);
    let control = gic.virt.map_or(0, |[gich, _]| gich.base);
    REGISTERS.control.store(control, Relaxed);
}

/// Sends SGI `intid` to the CPU interfaces in `targets`. The caller's stores for them have to be
/// visible first.
#[inline(always)]
pub fn write_sgir(intid: u32, targets: u32) {
    write(&REGISTERS.distributor, GICD_SGIR, targets << 16 | intid);
}

/// Makes the distributor look at the levels of this CPU's interrupts, by an SGI to nobody (IHI 0048B, 4.3.15). A GIC always
/// looks, but QEMU's (11.1) does not when an interrupt ends through a list register: it misses a level that is high at the
/// end, until the next access to the physical GIC.
#[inline(always)]
pub fn look_at_levels() {
    write_sgir(0, 0);
}

/// Returns the number of this CPU's interface.
#[must_use]
pub fn interface_number() -> u8 {
    // If there is only one CPU, the registers read as zero (IHI 0048B, 4.3.12), and so do bytes of interrupts that belong
    // to the secure world.
    let words = (0..8).map(|n| read(&REGISTERS.distributor, GICD_ITARGETSR + 4 * n));
    let all = words.fold(0, |all, word| all | word);
    let mask = all
        .to_le_bytes()
        .into_iter()
        .fold(0, |all, byte| all | byte);
    mask.checked_ilog2().unwrap_or(0) as u8
}

/// Returns the number of this CPU's interface, which no other CPU may have.
///
/// # Errors
/// Returns [`Error::SharedInterface`] if another CPU has this interface.
pub fn take_interface(mpidr: u64) -> Result<u8, Error> {
    static TAKEN: AtomicU8 = AtomicU8::new(0);
    let number = interface_number();
    match TAKEN.fetch_or(1 << number, Relaxed) >> number & 1 {
        0 => Ok(number),
        _ => Err(Error::SharedInterface { mpidr, number }),
    }
}

/// Gives every SGI and PPI of this CPU the same group and priority, and makes PPIs level-triggered.
pub(crate) fn set_up_private() {
    let set = |offset, value| write(&REGISTERS.distributor, offset, value);
    // The configuration of an enabled interrupt must not change (IHI 0048B, 4.3.13).
    set(GICD_ICENABLER, u32::MAX << 16);
    set(GICD_IGROUPR, 0);
    (0..8).for_each(|n| set(GICD_IPRIORITYR + 4 * n, 0x8080_8080));
    set(GICD_ICFGR1, 0);
}

/// Makes this CPU's SGIs in `bits` pending, with this CPU as their sender.
pub(crate) fn set_pending_sgis(bits: u32) {
    write_senders(GICD_SPENDSGIR, bits, 1 << interface_number());
}

/// Clears the pending state of this CPU's SGIs in `bits`, for all senders.
pub(crate) fn clear_pending_sgis(bits: u32) {
    write_senders(GICD_CPENDSGIR, bits, 0xff);
}

/// Writes `senders` to the byte of each SGI in `bits`, in the registers from `register` on.
/// QEMU 11.1 makes an SGI pending even if its byte of GICD_SPENDSGIR is zero, so other bytes are not written.
fn write_senders(register: u64, bits: u32, senders: u8) {
    let base = REGISTERS.distributor.load(Relaxed) + register;
    for intid in (0..16).filter(|intid| bits >> intid & 1 != 0) {
        // SAFETY: `record_registers` got the address of a distributor that is mapped, and the byte is this CPU's own.
        unsafe { store_8(base + intid, senders) }
    }
}

/// Enables this CPU's interface, with no priority masked and none active, and makes the CPU, which
/// has affinity `mpidr`, a possible target of SGIs.
///
/// # Errors
/// Returns [`Error::CpuInterface`] if the interface's number can't be derived from the affinity.
pub fn enable_interface(mpidr: u64) -> Result<(), Error> {
    let number = interface_number();
    if !REGISTERS.record(mpidr, number) {
        return Err(Error::CpuInterface { mpidr, number });
    }
    let set = |offset, value| write(&REGISTERS.interface, offset, value);
    for n in 0..4 {
        set(GICC_APR + 4 * n, 0);
        // If there is one security state, Group 1 has registers of its own.
        set(GICC_NSAPR + 4 * n, 0);
    }
    set(GICC_PMR, 0xff);
    set(GICC_BPR, 0);
    set(0, read(&REGISTERS.interface, 0) & BYPASS | 1);
    Ok(())
}

#[inline(always)]
fn read(base: &AtomicU64, offset: u64) -> u32 {
    // SAFETY: the caller of `enable_distributor` promised that the registers are mapped. They are this
    // CPU's own, or a read changes nothing, except in GICC_IAR, which only `acknowledge` reads.
    unsafe { load_32(base.load(Relaxed) + offset) }
}

#[inline(always)]
fn write(base: &AtomicU64, offset: u64, value: u32) {
    // SAFETY: the registers are mapped (see `read`); they are this CPU's own, or only the first CPU writes them.
    unsafe { store_32(base.load(Relaxed) + offset, value) }
}
