// SPDX-License-Identifier: MIT OR Apache-2.0
//! When software starts to use a translation regime, the TLBs must not hold entries of that regime.
//!
//! A reset need not invalidate TLBs, and earlier software may have left entries in them. So before EL2's MMU is turned
//! on, there must be a TLBI of all of EL2. This TLBI must follow the reset and the last use of the MMU. Before EL1
//! turns its MMU on, there must be a TLBI of at least stage 1 of the VMID. Before the first guest of a VMID runs on a
//! CPU with stage 2, there must be a TLBI of both stages of the VMID, or of all of EL1. Each CPU must execute these
//! TLBIs itself, because a TLBI of another CPU need not reach a CPU that is off.
//!
//! Not seen: a regime that is invalidated in parts, by address or ASID, and a stage 2 whose tables change under the
//! same VMID.

use std::collections::BTreeSet;

use crate::decode::{Invalidated, Operation, msr};
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

/// HCR_EL2.VM.
const STAGE_2: u64 = 1;

/// See the module.
#[derive(Debug, Default)]
pub struct TlbInvalidated {
    /// Whether the TLBs hold no old entries of EL2.
    el2: bool,
    /// Whether the TLBs hold no old entries of EL1, for any VMID.
    guests: bool,
    /// VMIDs for which the TLBs hold no old entries of EL1.
    vmids: BTreeSet<u64>,
    /// VMIDs for which the TLBs hold no old entries of stage 1.
    stage1: BTreeSet<u64>,
    /// The current VMID, in VTTBR_EL2.
    vmid: u64,
}

impl TlbInvalidated {
    fn holds_old(&self, vmid: u64) -> bool {
        !self.guests && !self.vmids.contains(&vmid)
    }

    /// Reports the guest of the current VMID if the TLBs may still hold old entries with that VMID.
    fn check_guest(&mut self, now: &Now<'_>) {
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

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        match (operation, value) {
            (Operation::Tlbi { of, .. }, _) => match of {
                Invalidated::El2 => self.el2 = true,
                Invalidated::Guests => self.guests = true,
                Invalidated::Guest => drop(self.vmids.insert(self.vmid)),
                Invalidated::Stage1 => drop(self.stage1.insert(self.vmid)),
                Invalidated::Part | Invalidated::El3 => {}
            },
            (msr!(VTTBR_EL2), Some(value)) => self.vmid = value >> 48,
            (msr!(SCTLR_EL2), Some(value)) => {
                let (was, is) = (now.controls.translates(2), value & 1 != 0);
                if is && !was && !self.el2 {
                    now.report::<Self>(
                        None,
                        "the MMU is turned on, and no TLBI of EL2 was executed since it was off",
                    );
                }
                // After a TLBI while the MMU was on, the TLBs may have cached entries again before the MMU was turned
                // off.
                self.el2 &= !was && !is;
            }
            (msr!(SCTLR_EL1), Some(value))
                if now.place.level == 1
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
                self.check_guest(now);
            }
            _ => {}
        }
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("guest", "without_stage_2; msr VTTBR_EL2 $1; msr VTCR_EL2 0; msr HCR_EL2 0x80000001; eret"),
            ("without_stage_2", "clear OF_EL1 but -; msr SPSR_EL2 0x3c5"),
            ("invalidated", "msr VTTBR_EL2 VMID_1; isb; tlbi $1; dsb nsh"),
            ("all", "found; tlbi alle1is; dsb ish"),
            ("VMID_1", "0x1000000000000"),
            ("VMID_2", "0x2000000000000"),
        ],
        breaks: "
            after a reset: found; msr SCTLR_EL2 1; isb
            after firmware: msr SCTLR_EL2 1; isb; msr SCTLR_EL2 0; isb; msr SCTLR_EL2 1
            while it was on: msr SCTLR_EL2 1; isb; tlbi alle2; dsb nsh; isb; msr SCTLR_EL2 0; isb; msr SCTLR_EL2 1
            of EL1 only: found; tlbi alle1is; msr SCTLR_EL2 1
            EL1: found; el 1; msr SCTLR_EL1 1
            a guest: found; guest VMID_1
            a second VMID: found; invalidated vmalls12e1; guest VMID_2
            a guest, of its stage 1 only: found; invalidated vmalle1; guest VMID_1
        ",
        keeps: "
            invalidated: found; tlbi alle2; dsb nsh; isb; msr SCTLR_EL2 1; isb; on
            off once more: found; tlbi alle2; dsb nsh; isb; msr SCTLR_EL2 0; isb; msr SCTLR_EL2 1; isb
            all VMIDs: all; guest VMID_1; guest VMID_2
            both stages of the VMID: found; invalidated vmalls12e1; guest VMID_1
            EL1 itself: found; el 1; tlbi vmalle1; dsb nsh; isb; msr SCTLR_EL1 1; isb
            without stage 2: found; without_stage_2; eret
        ",
    };
}
