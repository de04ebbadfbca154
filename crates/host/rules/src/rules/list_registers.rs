// SPDX-License-Identifier: MIT OR Apache-2.0
//! List registers in use must have different interrupts, and no list register for a hardware interrupt may be both
//! active and pending.
//!
//! If two list registers have the same vINTID when the guest runs, the behaviour is UNPREDICTABLE. The behaviour is
//! also UNPREDICTABLE for State 0b11 with HW set, because the distributor itself holds the pending state of a hardware
//! interrupt. The guest also empties list registers, so a register counts as in use from the write that fills it until
//! a read of ICH_ELRSR_EL2, or of the register itself, shows that it is empty.
//!
//! Not seen: the value of a read that the emulator does not report. After such a read, no register counts as in use.

use std::collections::BTreeMap;

use crate::decode::{Operation, mrs};
use crate::finding::Place;
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

/// Fields of a list register: State, HW and vINTID.
const STATE: u64 = 3 << 62;
const HW: u64 = 1 << 61;
const VINTID: u64 = 0xffff_ffff;
/// ICH_HCR_EL2.En.
const ENABLED: u64 = 1;

/// See the module.
#[derive(Debug, Default)]
pub struct ListRegisters {
    /// List registers in use, each with its vINTID and the instruction that wrote it.
    used: BTreeMap<u8, (u64, Place)>,
    /// ICH_HCR_EL2.En.
    enabled: bool,
}

impl ListRegisters {
    fn note_write(&mut self, now: &Now<'_>, number: u8, value: u64) {
        if value & STATE == 0 {
            self.used.remove(&number);
            return;
        }
        if value & STATE == STATE && value & HW != 0 {
            let what = "a list register of an interrupt of the hardware is active and pending";
            now.report::<Self>(None, what);
        }
        self.used.insert(number, (value & VINTID, now.place));
    }

    /// Checks all list registers before the guest runs.
    fn check_all(&self, now: &Now<'_>) {
        let mut seen = BTreeMap::new();
        for (vintid, at) in self.used.values() {
            if let Some(first) = seen.insert(*vintid, *at) {
                let what = format!("two list registers are of interrupt {vintid}");
                now.report_at::<Self>(*at, Some(first), what);
            }
        }
    }
}

impl Rule for ListRegisters {
    const ABOUT: About = About {
        name: "list-registers",
        says: "no two list registers in use with one vINTID, and none with HW that is active and pending",
        cites: "IHI 0069H, 12.4 (ICH_LR<n>_EL2: State, HW, vINTID)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        match (operation, value) {
            (Operation::Write { register, .. }, Some(value)) => match register.list_register() {
                Some(number) => self.note_write(now, number, value),
                None if register == ICH_HCR_EL2 => self.enabled = value & ENABLED != 0,
                None => {}
            },
            (mrs!(ICH_ELRSR_EL2), empty) => {
                let empty = empty.unwrap_or(u64::MAX);
                self.used.retain(|number, _| empty >> number & 1 == 0);
            }
            (Operation::Read { register, .. }, value) => {
                if let Some(number) = register.list_register()
                    && value.is_none_or(|value| value & STATE == 0)
                {
                    self.used.remove(&number);
                }
            }
            (Operation::Return, _) if now.place.level == 2 && self.enabled => self.check_all(now),
            _ => {}
        }
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("listed", "msr ICH_HCR_EL2 1; msr ICH_LR0_EL2 $1; msr ICH_LR1_EL2 $2"),
            ("PENDING", "0x4000000000000000"),
            ("BOTH", "0xc000000000000000"),
            ("HW", "0x2000000000000000"),
        ],
        breaks: "
            one interrupt twice: listed PENDING|27 PENDING|27; eret
            another one has become empty: listed PENDING|27 PENDING|27; msr ICH_LR2_EL2 PENDING|30; isb; mrs ICH_ELRSR_EL2 = 4; eret
            the hardware's, active and pending: msr ICH_LR0_EL2 BOTH|HW|27
        ",
        keeps: "
            two interrupts: listed PENDING|27 PENDING|30; eret
            one is empty: listed PENDING|27 0; msr ICH_LR1_EL2 27; eret
            the guest has ended it: listed PENDING|27 0; isb; mrs ICH_ELRSR_EL2 = 3; msr ICH_LR1_EL2 PENDING|27; eret
            it is read as empty: listed PENDING|27 0; isb; mrs ICH_LR0_EL2 = 27; msr ICH_LR1_EL2 PENDING|27; eret
            active and pending by software: msr ICH_LR0_EL2 BOTH|27
        ",
    };
}
