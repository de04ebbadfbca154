// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DSB between a TLBI and what relies on it.
//!
//! Only a DSB completes a TLBI: any for this PE, one of their
//! shareability domain for others. An ISB or an exception return before that has nothing to
//! synchronise, and an MMU that is turned on may use invalidated entries.
//!
//! Not seen: an access to memory between TLBI and DSB that would use the old translation.

use crate::decode::Operation;
use crate::finding::Place;
use crate::register::*;
use crate::rule::{About, Now, Rule, synchronises};
#[cfg(test)]
use crate::testing::*;

/// See the module.
#[derive(Debug, Default)]
pub struct TlbiCompleted {
    /// The last one that is not completed, and whether it is for other PEs as well.
    begun: Option<(Place, bool)>,
}

impl Rule for TlbiCompleted {
    const ABOUT: About = About {
        name: "tlbi-completed",
        says: "a DSB between a TLBI and the ISB, exception return or MMU that relies on it",
        cites: "DDI 0487K.a, D8.17.5 (ordering and completion of TLB maintenance instructions)",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        let enables = matches!(
            operation,
            Operation::Write { register: SCTLR_EL1 | SCTLR_EL2, .. } if value.is_some_and(|value| value & 1 != 0)
        );
        match operation {
            Operation::Tlbi { broadcast, .. } => {
                let before = self.begun.is_some_and(|(_, others)| others);
                self.begun = Some((now.place, before || broadcast));
            }
            Operation::Dsb(barrier) if barrier.stores && barrier.loads => {
                self.begun.take_if(|(_, others)| !barrier.alone || !*others);
            }
            _ if synchronises(operation) || enables => {
                if let Some((at, others)) = self.begun.take() {
                    let which = if others { "DSB ISH" } else { "DSB NSH" };
                    now.report_at::<Self>(
                        at,
                        Some(now.place),
                        format!("TLBI, and no {which} before what relies on it"),
                    );
                }
            }
            _ => {}
        }
    }

    fn entered(&mut self, _: &Now<'_>, _: u8) {
        // The handler, and its return, does not rely on it; the interrupted code completes
        // it later, which the rule does not check.
        self.begun = None;
    }

    #[cfg(test)]
    fn breaks() -> Vec<Example> {
        vec![
            (
                "ISB first",
                Program::new().then(TLBI_ALLE2).then(ISB).then(DSB_NSH),
            ),
            ("ERET", Program::new().then(TLBI_ALLE1IS).then(ERET)),
            (
                "MMU on",
                Program::new().then(TLBI_ALLE2).write(SCTLR_EL2, 1),
            ),
            (
                "a DSB for itself",
                Program::new().then(TLBI_ALLE1IS).then(DSB_NSH).then(ISB),
            ),
            (
                "a DSB of stores",
                Program::new().then(TLBI_ALLE1IS).then(DSB_ISHST).then(ISB),
            ),
        ]
    }

    #[cfg(test)]
    fn keeps() -> Vec<Example> {
        vec![
            (
                "own",
                Program::new()
                    .then(TLBI_ALLE2)
                    .then(DSB_NSH)
                    .then(ISB)
                    .write(SCTLR_EL2, 1),
            ),
            (
                "others'",
                Program::new().then(TLBI_ALLE1IS).then(DSB_ISH).then(ISB),
            ),
            (
                "interrupted",
                Program::new()
                    .level(1)
                    .then(TLBI_ALLE1IS)
                    .interrupt(2)
                    .level(2)
                    .then(ERET)
                    .level(1)
                    .then(DSB_ISH)
                    .then(ISB),
            ),
            (
                "all",
                Program::new()
                    .then(TLBI_ALLE1IS)
                    .then(TLBI_ALLE2)
                    .then(DSB_SY)
                    .then(ERET),
            ),
        ]
    }
}
