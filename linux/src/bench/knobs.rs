// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a cell is below Linux: Rouse's knobs, which every vCPU has for itself. Those of
//! other hypervisors were turned at their boot.

use std::io;

use abi::{Deliver, KnobValue, Trap};
use plan::{Cell, HostPoll};

use super::Bench;
use crate::{clock, cpus};

impl Bench {
    /// Has every vCPU trap, deliver and poll as `cell` says; why it can't, if so.
    pub(super) fn set_knobs(&self, cell: &Cell) -> io::Result<Option<String>> {
        let Some(page) = self.page.as_ref().filter(|page| page.is_rouses()) else {
            return Ok(None);
        };
        let deliver = match cell.deliver.is_direct() {
            true => Deliver::Direct,
            false => Deliver::Inject,
        };
        let ticks = u128::from(cell.host_poll_us) * u128::from(clock::frequency()) / 1_000_000;
        let values = [
            KnobValue::Deliver(deliver),
            KnobValue::Trap(Trap {
                wfi: cell.trap.wfi(),
                wfe: cell.trap.wfe(),
            }),
            KnobValue::HostPollAdaptive(cell.host_poll == HostPoll::Adaptive),
            KnobValue::HostPoll(ticks as u64),
        ];
        for &cpu in &self.cpus {
            cpus::pin(cpu)?;
            for value in values {
                if !page.set(value) {
                    return Ok(Some(format!("CPU {cpu}: Rouse refuses {value:?}")));
                }
            }
        }
        Ok(None)
    }
}
