// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLBs hold nothing of a translation regime when it begins.
//!
//! A reset need not invalidate them, and earlier software has left its translations. So a TLBI of all
//! of EL2 comes before its MMU is turned on, since it was last on or since the reset; one of stage 1 of
//! the VMID, or of more, before EL1 turns its own on; and one of both stages of the VMID, or of all of
//! EL1, before its first guest runs on the CPU with stage 2. It has to be the CPU's own: that of another
//! CPU need not reach a CPU that is off.
//!
//! Not seen: TLBIs of parts, however many; and stage 2 of a VMID whose tables change.

use std::collections::BTreeSet;

use crate::decode::{Invalidated, Operation};
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::*;

/// HCR_EL2.VM.
const STAGE_2: u64 = 1;

/// See the module.
#[derive(Debug, Default)]
pub struct TlbInvalidated {
    /// No old entries of EL2.
    el2: bool,
    /// No old entries of EL1, of all VMIDs.
    guests: bool,
    /// No old entries of EL1, of each of these.
    vmids: BTreeSet<u64>,
    /// No old entries of stage 1, of each of these.
    stage1: BTreeSet<u64>,
    /// The VMID in VTTBR_EL2.
    vmid: u64,
}

impl TlbInvalidated {
    fn holds_old(&self, vmid: u64) -> bool {
        !self.guests && !self.vmids.contains(&vmid)
    }

    /// `vmid` has its own translations from now on.
    fn guest(&mut self, now: &Now<'_>) {
        if self.holds_old(self.vmid) {
            let what = format!(
                "a guest of VMID {} runs, and no TLBI of both its stages or of all was executed before",
                self.vmid
            );
            now.report::<Self>(None, what);
            self.vmids.insert(self.vmid);
        }
    }
}

impl Rule for TlbInvalidated {
    const ABOUT: About = About {
        name: "tlb-invalidated",
        says: "a TLBI of a regime before its MMU is turned on, and of both stages of a VMID before its first guest runs",
        cites: "DDI 0487K.a, D8.16 (TLBs: a reset need not invalidate them) and D8.17 (TLB maintenance requirements)",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        match (operation, value) {
            (Operation::Tlbi { of, .. }, _) => match of {
                Invalidated::El2 => self.el2 = true,
                Invalidated::Guests => self.guests = true,
                Invalidated::Guest => drop(self.vmids.insert(self.vmid)),
                Invalidated::Stage1 => drop(self.stage1.insert(self.vmid)),
                Invalidated::Part | Invalidated::El3 => {}
            },
            (
                Operation::Write {
                    register: VTTBR_EL2,
                    ..
                },
                Some(value),
            ) => self.vmid = value >> 48,
            (
                Operation::Write {
                    register: SCTLR_EL2,
                    ..
                },
                Some(value),
            ) => {
                let (was, is) = (now.controls.translates(2), value & 1 != 0);
                if is && !was && !self.el2 {
                    now.report::<Self>(
                        None,
                        "the MMU is turned on, and no TLBI of EL2 was executed since it was off",
                    );
                }
                // Entries that were invalidated while it was on may have come back until it was off.
                self.el2 &= !was && !is;
            }
            (
                Operation::Write {
                    register: SCTLR_EL1,
                    ..
                },
                Some(value),
            ) if now.place.level == 1
                && value & 1 != 0
                && !now.controls.translates(1)
                && !self.stage1.contains(&self.vmid)
                && self.holds_old(self.vmid) =>
            {
                now.report::<Self>(
                    None,
                    "the MMU is turned on, and no TLBI of EL1 was executed before",
                );
            }
            (Operation::Return, _) if now.place.level == 2 && now.controls.hcr & STAGE_2 != 0 => {
                self.guest(now);
            }
            _ => {}
        }
    }

    #[cfg(test)]
    fn breaks() -> Vec<Example> {
        vec![
            (
                "after a reset",
                Program::found().write(SCTLR_EL2, 1).then(ISB),
            ),
            (
                "after firmware",
                Program::new()
                    .write(SCTLR_EL2, 1)
                    .then(ISB)
                    .write(SCTLR_EL2, 0)
                    .then(ISB)
                    .write(SCTLR_EL2, 1),
            ),
            (
                "while it was on",
                Program::new()
                    .write(SCTLR_EL2, 1)
                    .then(ISB)
                    .then(TLBI_ALLE2)
                    .then(DSB_NSH)
                    .then(ISB)
                    .write(SCTLR_EL2, 0)
                    .then(ISB)
                    .write(SCTLR_EL2, 1),
            ),
            (
                "of EL1 only",
                Program::found().then(TLBI_ALLE1IS).write(SCTLR_EL2, 1),
            ),
            ("EL1", Program::found().level(1).write(SCTLR_EL1, 1)),
            ("a guest", guest(Program::found(), 1)),
            (
                "a second VMID",
                guest(invalidated(Program::found(), TLBI_VMALLS12E1, 1), 2),
            ),
            (
                "a guest, of its stage 1 only",
                guest(invalidated(Program::found(), TLBI_VMALLE1, 1), 1),
            ),
        ]
    }

    #[cfg(test)]
    fn keeps() -> Vec<Example> {
        let all = || Program::found().then(TLBI_ALLE1IS).then(DSB_ISH);
        vec![
            (
                "invalidated",
                Program::found()
                    .then(TLBI_ALLE2)
                    .then(DSB_NSH)
                    .then(ISB)
                    .write(SCTLR_EL2, 1)
                    .then(ISB)
                    .write(SCTLR_EL2, 5)
                    .then(ISB),
            ),
            (
                "off once more",
                Program::found()
                    .then(TLBI_ALLE2)
                    .then(DSB_NSH)
                    .then(ISB)
                    .write(SCTLR_EL2, 0)
                    .then(ISB)
                    .write(SCTLR_EL2, 1)
                    .then(ISB),
            ),
            ("all VMIDs", guest(guest(all(), 1), 2)),
            (
                "both stages of the VMID",
                guest(invalidated(Program::found(), TLBI_VMALLS12E1, 1), 1),
            ),
            (
                "EL1 itself",
                Program::found()
                    .level(1)
                    .then(TLBI_VMALLE1)
                    .then(DSB_NSH)
                    .then(ISB)
                    .write(SCTLR_EL1, 1)
                    .then(ISB),
            ),
            (
                "without stage 2",
                set_up_without_stage_2(Program::found()).then(ERET),
            ),
        ]
    }
}

/// `tlbi` of `vmid`, completed.
#[cfg(test)]
fn invalidated(program: Program, tlbi: u32, vmid: u64) -> Program {
    program
        .write(VTTBR_EL2, vmid << 48)
        .then(ISB)
        .then(tlbi)
        .then(DSB_NSH)
}

/// A guest of `vmid`, with all registers that act on it.
#[cfg(test)]
fn guest(program: Program, vmid: u64) -> Program {
    set_up_without_stage_2(program)
        .write(VTTBR_EL2, vmid << 48)
        .write(VTCR_EL2, 0)
        .write(HCR_EL2, 1 << 31 | STAGE_2)
        .then(ERET)
}

#[cfg(test)]
fn set_up_without_stage_2(program: Program) -> Program {
    super::unknown::OF_EL1
        .iter()
        .fold(program, |program, one| program.write(*one, 0))
        .write(SPSR_EL2, 0x3c5)
}
