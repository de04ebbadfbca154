// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active priorities of Group 0 must be written before those of Group 1.
//!
//! If the writes come in another order, the prioritization of interrupts may be UNPREDICTABLE. All writes to
//! the same interface, physical or virtual, between two context synchronization events form one sequence.
//!
//! Not seen: writes in the wrong order with a context synchronization event between them.

use std::collections::BTreeMap;

use crate::decode::Operation;
use crate::finding::Place;
use crate::rule::{About, Now, Rule, synchronises};
#[cfg(test)]
use crate::testing::Examples;

/// See the module.
#[derive(Debug, Default)]
pub struct ActivePriorities {
    /// The instruction that last wrote a register of Group 1, by the level in the register's name.
    group1: BTreeMap<u8, Place>,
}

impl Rule for ActivePriorities {
    const ABOUT: About = About {
        name: "active-priorities",
        says: "active priorities of Group 0 are written before those of Group 1",
        cites: "IHI 0069H, 12.2 and 12.4 (ICC_AP0R<n>_EL1, ICC_AP1R<n>_EL1, ICH_AP0R<n>_EL2, ICH_AP1R<n>_EL2: order of writes)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        if synchronises(operation) {
            self.group1.clear();
        }
        let Operation::Write { register, .. } = operation else {
            return;
        };
        match register.active_priorities() {
            Some((level, 1)) => drop(self.group1.insert(level, now.place)),
            Some((level, _)) => {
                if let Some(first) = self.group1.remove(&level) {
                    let what = "active priorities of Group 1 are written before those of Group 0";
                    now.report_at::<Self>(first, Some(now.place), what);
                }
            }
            None => {}
        }
    }

    fn on_level_entry(&mut self, _: &Now<'_>, _: u8) {
        self.group1.clear();
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("written", "msr $1 0; msr $2 0; isb"),
            (
                "all",
                "msr ICC_AP0R0_EL1 0; msr ICC_AP1R0_EL1 0; msr ICH_AP0R0_EL2 0; msr ICH_AP1R0_EL2 0; isb",
            ),
        ],
        breaks: "
            physical: written ICC_AP1R0_EL1 ICC_AP0R0_EL1
            virtual: written ICH_AP1R0_EL2 ICH_AP0R0_EL2
            another register between: msr ICH_AP1R0_EL2 0; msr ICH_VMCR_EL2 0; msr S3_4_C12_C8_3 0
        ",
        keeps: "
            twice: all; all
            of one group only: msr ICC_AP1R0_EL1 0; isb
        ",
    };
}
