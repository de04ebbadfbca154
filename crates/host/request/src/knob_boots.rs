// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits a plan into boots, for hypervisors whose settings are fixed at boot.

use std::collections::BTreeSet;

use plan::{Given, Machine, Plan, Trap};

/// Returns the hypervisor's settings on `machine` for each boot of `plan`: every setting to which some cell belongs.
/// The traps are from the plan, unless `traps` is given.
#[must_use]
pub fn settings_of_boots(plan: &Plan, mut machine: Machine, traps: Option<Trap>) -> Vec<Given> {
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
