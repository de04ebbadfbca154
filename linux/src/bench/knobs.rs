// SPDX-License-Identifier: MIT OR Apache-2.0
//! Knobs of a cell below Linux: Rouse's, which every vCPU has for itself. Other hypervisors' knobs
//! were turned at their boot.

use std::io;

use abi::{Deliver, KnobValue, Neighbour, Trap};
use plan::{Cell, HostPoll, YieldOn};

use super::Bench;
use crate::page::Page;
use crate::{clock, cpus};

impl Bench {
    /// Makes every vCPU trap, deliver, poll and share its CPU by `cell`; returns why it can't, if so.
    pub(super) fn set_knobs(&self, cell: &Cell) -> io::Result<Option<String>> {
        let Some(page) = self.knobs() else {
            return Ok(None);
        };
        let deliver = match cell.deliver.is_direct() {
            true => Deliver::Direct,
            false => Deliver::Inject,
        };
        // Before the delivery, which can't be direct with a neighbour.
        self.send_neighbours_away()?;
        let values = [
            KnobValue::Deliver(deliver),
            KnobValue::Trap(Trap {
                wfi: cell.trap.wfi(),
                wfe: cell.trap.wfe(),
            }),
            KnobValue::HostPollAdaptive(cell.host_poll == HostPoll::Adaptive),
            KnobValue::HostPoll(ticks(cell.host_poll_us)),
        ];
        for &cpu in &self.cpus {
            cpus::pin(cpu)?;
            for value in values {
                if !page.set(value) {
                    return Ok(Some(format!("CPU {cpu}: Rouse refuses {value:?}")));
                }
            }
            if cell.neighbour.is_there() {
                invite(page, cell);
            }
        }
        Ok(None)
    }

    /// Leaves every CPU to its vCPU, if the plan has neighbours at all.
    pub(super) fn send_neighbours_away(&self) -> io::Result<()> {
        let lists = &self.plan.lists;
        let any = lists.neighbour.values.iter().any(|one| one.is_there());
        let Some(page) = self.knobs().filter(|_| any) else {
            return Ok(());
        };
        for &cpu in &self.cpus {
            cpus::pin(cpu)?;
            page.set(KnobValue::Neighbour(Neighbour::None));
        }
        cpus::unpin(&self.cpus)
    }

    /// The page, if it has knobs.
    fn knobs(&self) -> Option<&Page> {
        self.page.as_ref().filter(|page| page.is_rouses())
    }
}

/// Has the vCPU that this thread runs on a neighbour. These knobs don't read back: whether there
/// is room for it was looked at before ([`crate::neighbour_memory`]).
fn invite(page: &Page, cell: &Cell) {
    let does = match cell.neighbour.kib() {
        0 => Neighbour::Work,
        kib => Neighbour::Cache(kib),
    };
    page.set(KnobValue::Slice(ticks(cell.slice_us)));
    page.set(KnobValue::YieldOnWfe(cell.yield_on == YieldOn::Wfe));
    page.set(KnobValue::Neighbour(does));
}

/// Microseconds in ticks.
fn ticks(us: u32) -> u64 {
    (u128::from(us) * u128::from(clock::frequency()) / 1_000_000) as u64
}
