// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets Rouse's knobs for a cell, on each vCPU. Knobs of other hypervisors were set when they
//! booted.

use std::io;

use abi::{Deliver, KnobValue, Neighbour, Trap};
use plan::{Cell, HostPoll, YieldOn};

use super::Bench;
use crate::page::Page;
use crate::{clock, cpus};

impl Bench {
    /// Sets trapping, delivery, polling and neighbour of every vCPU for `cell`. If Rouse refuses a value, returns the
    /// reason.
    pub(super) fn set_knobs(&self, cell: &Cell) -> io::Result<Option<String>> {
        let Some(page) = self.knobs() else {
            return Ok(None);
        };
        let deliver = match cell.deliver.is_direct() {
            true => Deliver::Direct,
            false => Deliver::Inject,
        };
        // This comes before delivery is set, since delivery can't be direct with a neighbour.
        self.send_neighbours_away()?;
        let values = [
            KnobValue::Deliver(deliver),
            KnobValue::Trap(Trap {
                wfi: cell.trap.wfi(),
                wfe: cell.trap.wfe(),
            }),
            KnobValue::HostPollAdaptive(cell.host_poll == HostPoll::Adaptive),
            KnobValue::HostPoll(ticks_of_us(cell.host_poll_us)),
        ];
        for &cpu in &self.cpus {
            cpus::pin(cpu)?;
            for value in values {
                if !page.set(value) {
                    return Ok(Some(format!("CPU {cpu}: Rouse refuses {value:?}")));
                }
            }
            if cell.neighbour.is_there() {
                start_neighbour(page, cell);
            }
        }
        Ok(None)
    }

    /// Removes the neighbour of every CPU, if the plan has any neighbours.
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

    /// Returns the page of the level below Linux, if the page has knobs.
    fn knobs(&self) -> Option<&Page> {
        self.page.as_ref().filter(|page| page.is_rouses())
    }
}

/// Gives this thread's vCPU a neighbour. These knobs can't be read back, so the memory for the
/// neighbour was checked before ([`crate::neighbour_memory`]).
fn start_neighbour(page: &Page, cell: &Cell) {
    let does = match cell.neighbour.kib() {
        0 => Neighbour::Work,
        kib => Neighbour::Cache(kib),
    };
    page.set(KnobValue::Slice(ticks_of_us(cell.slice_us)));
    page.set(KnobValue::YieldOnWfe(cell.yield_on == YieldOn::Wfe));
    page.set(KnobValue::Neighbour(does));
}

/// Converts microseconds to ticks.
fn ticks_of_us(us: u32) -> u64 {
    (u128::from(us) * u128::from(clock::frequency()) / 1_000_000) as u64
}
