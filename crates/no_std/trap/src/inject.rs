// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds a synchronous exception that EL2 injects into EL1 (the pseudocode AArch64.TakeException;
//! D1.3, exceptions).

use crate::esr::{Esr, IL, INST_ABORT_LOWER};

/// The state in which EL1 continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Address of the vector.
    pub pc: u64,
    /// PSTATE in the form of SPSR.
    pub pstate: u64,
}

/// SPSR.M: EL1 with SP_EL1.
const EL1H: u64 = 0b0101;
/// SPSR.M\[4\]: AArch32.
const AARCH32: u64 = 1 << 4;
/// SPSR.D, A, I and F.
const DAIF: u64 = 0xf << 6;
/// SPSR.SSBS, PAN and DIT.
const SSBS: u64 = 1 << 12;
const PAN: u64 = 1 << 22;
const DIT: u64 = 1 << 24;
/// SCTLR_EL1.SPAN: 0 sets PAN on entry. SCTLR_EL1.DSSBS: the value of SSBS on entry.
const SCTLR_SPAN: u64 = 1 << 23;
const SCTLR_DSSBS: u64 = 1 << 44;

/// Returns the state on entry to an exception taken from `spsr`, with the guest's `vbar` and `sctlr`.
#[must_use]
pub const fn exception_entry(spsr: u64, vbar: u64, sctlr: u64) -> Entry {
    let offset = if spsr & AARCH32 != 0 {
        0x600
    } else if spsr & 0xc == 0 {
        0x400
    } else if spsr & 1 != 0 {
        0x200
    } else {
        0x000
    };
    let mut pstate = EL1H | DAIF | spsr & (PAN | DIT);
    if sctlr & SCTLR_SPAN == 0 {
        pstate |= PAN;
    }
    if sctlr & SCTLR_DSSBS != 0 {
        pstate |= SSBS;
    }
    Entry {
        pc: (vbar & !0x7ff) + offset,
        pstate,
    }
}

/// Syndrome of an undefined instruction: its class is 0.
pub const UNDEFINED_ESR: u64 = IL;

/// Returns the syndrome of the synchronous external abort into which EL2 turns a stage-2 abort
/// `esr`. `from_el0` means that the abort was taken from EL0. For a table walk, `walk` is the level
/// of the guest's own table that could not be read.
#[must_use]
pub const fn external_abort_esr(esr: Esr, from_el0: bool, walk: Option<u32>) -> u64 {
    /// DFSC and IFSC of a synchronous external abort: not on a walk, and on a walk at level 0.
    const EXTERNAL: u64 = 0x10;
    const EXTERNAL_WALK: u64 = 0x14;
    /// WnR and CM of a data abort, which the guest may read.
    const KEPT: u64 = 1 << 6 | 1 << 8;
    /// Difference between the classes for "from a lower level" and "from the same level".
    const SAME_LEVEL: u64 = 1;
    let class = if esr.class() == INST_ABORT_LOWER {
        0x20
    } else {
        0x24
    };
    let class = if from_el0 { class } else { class + SAME_LEVEL };
    let kept = if class >= 0x24 { esr.0 & KEPT } else { 0 };
    let fault = match walk {
        Some(level) => EXTERNAL_WALK + level as u64,
        None => EXTERNAL,
    };
    class << 26 | IL | kept | fault
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::esr::DATA_ABORT_LOWER;

    #[test]
    fn the_vector_depends_on_where_it_came_from() {
        let pc = |spsr| exception_entry(spsr, 0x1000, SCTLR_SPAN).pc;
        assert_eq!(pc(0x3c4), 0x1000);
        assert_eq!(pc(0x3c5), 0x1200);
        assert_eq!(pc(0x000), 0x1400);
        assert_eq!(pc(0x010), 0x1600);
    }

    #[test]
    fn everything_is_masked_and_pan_follows_span() {
        assert_eq!(exception_entry(0, 0, SCTLR_SPAN).pstate, 0x3c5);
        assert_eq!(exception_entry(0xf000_0000, 0, 0).pstate, 0x3c5 | PAN);
        assert_eq!(exception_entry(PAN, 0, SCTLR_SPAN).pstate, 0x3c5 | PAN);
    }

    #[test]
    fn aborts_become_external_aborts() {
        let data = Esr(u64::from(DATA_ABORT_LOWER) << 26 | 1 << 6 | 5);
        assert_eq!(
            external_abort_esr(data, false, None),
            0x25 << 26 | IL | 1 << 6 | 0x10
        );
        let fetch = Esr(u64::from(INST_ABORT_LOWER) << 26 | 5);
        assert_eq!(
            external_abort_esr(fetch, true, None),
            0x20 << 26 | IL | 0x10
        );
        assert_eq!(
            external_abort_esr(fetch, true, Some(2)),
            0x20 << 26 | IL | 0x16
        );
    }
}
