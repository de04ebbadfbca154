// SPDX-License-Identifier: MIT OR Apache-2.0
//! Implements the kernel's side of simulated devices.

use super::table::online;
use super::{Cpu, time};
use crate::clock;

/// Notes a request to a device, for the governor of this CPU.
pub fn note_submitted(cpu: &Cpu) {
    cpu.device.with(|device| {
        if let Some(device) = device {
            device.submitted(time::ticks_to_ns(clock::now()));
        }
    });
}

/// Notes that the task that submitted a request no longer waits.
pub fn note_completed(cpu: &Cpu) {
    cpu.device.with(|device| {
        if let Some(device) = device {
            device.completed();
        }
    });
}

/// Returns the CPU that the device of CPU `index` interrupts, if that is not CPU `index` itself.
pub fn completion_cpu(index: usize) -> usize {
    (index + 1) % online().count()
}
