// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boots of a plan, for hypervisors whose settings are fixed at boot.

use std::collections::BTreeSet;

use plan::{Given, Machine, Plan, Trap};

/// Returns the settings of the level below `machine` for each boot of `plan`: every setting that some
/// cell belongs to. It traps what the plan lists, unless `traps` decides that.
#[must_use]
pub fn givens(plan: &Plan, mut machine: Machine, traps: Option<Trap>) -> Vec<Given> {
    let polls = plan.lists.host_poll_us.values.iter().copied();
    let polls: BTreeSet<u32> = polls.chain([0]).collect();
    let alone = traps.is_some();
    let asked = plan.lists.trap.values.iter().copied();
    let traps = traps.map_or(asked.collect(), |trap| vec![trap]);
    let mut givens = Vec::new();
    for trap in traps {
        for &host_poll_us in &polls {
            let given = Given {
                trap,
                host_poll_us,
                alone,
            };
            machine.given = Some(given);
            if plan.cells(&machine).next().is_some() {
                givens.push(given);
            }
        }
    }
    givens
}
