// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GICv3 CPU interface, as used by either exception level (IHI 0069H, chapters 4.6 and 12.2).
//! The interface is a set of banked registers of this PE, so this module has functions instead of a type.

use crate::insn;
use crate::regs::*;

/// INTID that an acknowledge returns if nothing is pending.
pub const SPURIOUS: u32 = 1023;

/// Acknowledges the highest-priority pending interrupt; returns its INTID, or
/// [`SPURIOUS`]. The interrupt becomes active.
#[inline(always)]
pub fn acknowledge() -> u32 {
    ICC_IAR1_EL1.get() as u32 & 0xff_ffff
}

/// Ends interrupt `intid`: drops the running priority and, if EOImode is 0, deactivates the
/// interrupt.
#[inline(always)]
pub fn end(intid: u32) {
    ICC_EOIR1_EL1.set(u64::from(intid));
}

/// Deactivates interrupt `intid` (if EOImode is 1).
#[inline(always)]
pub fn deactivate(intid: u32) {
    ICC_DIR_EL1.set(u64::from(intid));
}

/// Sends SGI `intid` (0 to 15) to the PE with affinity `mpidr`.
///
/// Stores made before the call are visible to the receiver's handler. This requires the DSB,
/// because a system-register write is otherwise not ordered after stores (IHI 0069H, 12.1.6). The
/// ISB makes the write take effect now: the code that follows may have no ISB for a long time, and
/// the receiver is waiting.
#[inline(always)]
pub fn send_sgi(intid: u32, mpidr: u64) {
    send_sgi_value(sgi_value(intid, mpidr));
}

/// Like [`send_sgi`], with a value from [`sgi_value`].
#[inline(always)]
pub fn send_sgi_value(value: u64) {
    insn::dsb_ishst();
    insn::write_sgi(value);
    insn::isb();
}

/// Sends SGI `intid` to the PEs with affinities `mpidrs`. Makes one write for each run of PEs that
/// fits a target list, which names at most 16 PEs with the same Aff3 to Aff1.
#[inline]
pub fn send_sgi_to(intid: u32, mpidrs: impl Iterator<Item = u64>) {
    /// ICC_SGI1R_EL1.TargetList (IHI 0069H, 12.2.20).
    const TARGETS: u64 = 0xffff;
    insn::dsb_ishst();
    let mut value = 0;
    for mpidr in mpidrs {
        let one = sgi_value(intid, mpidr);
        if value != 0 && (value ^ one) & !TARGETS != 0 {
            insn::write_sgi(value);
            value = 0;
        }
        value |= one;
    }
    if value != 0 {
        insn::write_sgi(value);
    }
    insn::isb();
}

/// Sends SGI `intid` to every PE but this one.
#[inline(always)]
pub fn send_sgi_to_others(intid: u32) {
    insn::dsb_ishst();
    insn::write_sgi(u64::from(intid) << 24 | 1 << 40);
    insn::isb();
}

/// Returns the ICC_SGI1R_EL1 value that sends `intid` to the PE with affinity `mpidr`.
#[inline(always)]
pub const fn sgi_value(intid: u32, mpidr: u64) -> u64 {
    let aff0 = mpidr & 0xff;
    let aff1 = mpidr >> 8 & 0xff;
    let aff2 = mpidr >> 16 & 0xff;
    let aff3 = mpidr >> 32 & 0xff;
    // The target list covers 16 values of Aff0, chosen by the range selector.
    aff3 << 48
        | (aff0 >> 4) << 44
        | aff2 << 32
        | (intid as u64) << 24
        | aff1 << 16
        | 1 << (aff0 & 15)
}

/// Enables the interface for Group 1, with no priority masked. `split_eoi` sets EOImode to 1: an
/// end of interrupt then does not deactivate the interrupt.
pub fn enable(split_eoi: bool) {
    // Bit 0 (SRE) enables system registers; bits 1 and 2 disable bypass. The writes overwrite every
    // field that is UNKNOWN at reset, such as CBPR and PMHE in ICC_CTLR_EL1 (IHI 0069H, 12.2).
    ICC_SRE_EL1.set(7);
    insn::isb();
    ICC_PMR_EL1.set(0xff);
    ICC_BPR1_EL1.set(0);
    ICC_CTLR_EL1.set(if split_eoi { 2 } else { 0 });
    ICC_IGRPEN1_EL1.set(1);
    insn::isb();
}

/// Clears the active priorities of this PE's interface. The priorities are UNKNOWN after a reset, and
/// firmware may have left an interrupt active, which would block all interrupts of the same or lower
/// priority (IHI 0069H, 4.8.5). The number of preemption bits determines how many registers hold the active
/// priorities (12.2.1). If this level controls Group 0 (see [`has_group0`]), pass `group0` to clear Group 0, too.
pub fn forget_active(group0: bool) {
    /// ICC_CTLR_EL1.PRIbits (10:8): the number of priority bits, minus one.
    const FIRST: u64 = 5;
    let bits = (ICC_CTLR_EL1.get() >> 8 & 7) + 1;
    if group0 {
        ICC_AP0R0_EL1.set(0);
        if bits > FIRST {
            ICC_AP0R1_EL1.set(0);
        }
        if bits > FIRST + 1 {
            ICC_AP0R2_EL1.set(0);
            ICC_AP0R3_EL1.set(0);
        }
    }
    ICC_AP1R0_EL1.set(0);
    if bits > FIRST {
        ICC_AP1R1_EL1.set(0);
    }
    if bits > FIRST + 1 {
        ICC_AP1R2_EL1.set(0);
        ICC_AP1R3_EL1.set(0);
    }
}

/// Whether this exception level also controls Group 0. If EL3 takes FIQs (SCR_EL3.FIQ), this level
/// does not, and its accesses to Group 0 registers trap to EL3. Priorities then read shifted (IHI
/// 0069H, 4.8.1): the smallest nonzero priority reads back as 0.
///
/// Briefly changes the priority mask, so interrupts must be masked.
#[must_use]
pub fn has_group0() -> bool {
    // PRIbits (10:8): the number of implemented bits, which are the upper ones, minus one.
    let bits = (ICC_CTLR_EL1.get() >> 8 & 7) + 1;
    let before = ICC_PMR_EL1.get();
    ICC_PMR_EL1.set(1 << (8 - bits));
    let seen = ICC_PMR_EL1.get();
    ICC_PMR_EL1.set(before);
    seen != 0
}
