// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DSB must come between a TLBI and the code that relies on the TLBI.
//!
//! A TLBI is complete only after a DSB. For the TLB of this PE, any DSB completes it. For other PEs, the DSB must
//! include their shareability domain. If an ISB or an exception return comes before the DSB, there is no completed TLBI
//! to synchronise, and if an MMU is turned on before the DSB, it may use the invalidated entries.
//!
//! Not seen: an access to memory between TLBI and DSB that would still use the old translation.

use crate::decode::{Operation, msr};
use crate::finding::Place;
use crate::register::*;
use crate::rule::{About, Now, Rule, synchronises};
#[cfg(test)]
use crate::testing::Examples;

/// See the module.
#[derive(Debug, Default)]
pub struct TlbiCompleted {
    /// The last TLBI that no DSB has completed, and whether it is also for other PEs.
    begun: Option<(Place, bool)>,
}

impl Rule for TlbiCompleted {
    const ABOUT: About = About {
        name: "tlbi-completed",
        says: "a DSB between a TLBI and the ISB, exception return or MMU that relies on it",
        cites: "DDI 0487K.a, D8.17.5 (ordering and completion of TLB maintenance instructions)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        let enables = matches!(
            operation,
            msr!(SCTLR_EL1 | SCTLR_EL2) if value.is_some_and(|value| value & 1 != 0)
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

    fn on_level_entry(&mut self, _: &Now<'_>, _: u8) {
        // The exception handler and its return do not rely on the TLBI. The interrupted code completes the TLBI later,
        // which the rule does not check.
        self.begun = None;
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[],
        breaks: "
            ISB first: tlbi alle2; isb; dsb nsh
            ERET: tlbi alle1is; eret
            MMU on: tlbi alle2; msr SCTLR_EL2 1
            a DSB for itself: tlbi alle1is; dsb nsh; isb
            a DSB of stores: tlbi alle1is; dsb ishst; isb
        ",
        keeps: "
            own: tlbi alle2; dsb nsh; isb; msr SCTLR_EL2 1
            others': tlbi alle1is; dsb ish; isb
            interrupted: el 1; tlbi alle1is; irq 2; el 2; eret; el 1; dsb ish; isb
            all: tlbi alle1is; tlbi alle2; dsb sy; eret
        ",
    };
}
