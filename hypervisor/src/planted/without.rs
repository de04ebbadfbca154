// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces `with` in an image for measurements: nothing is planted, and boot arguments that ask for it are refused.

use core::ops::Range;

use plan::{Arguments, Error, Names};
use platform::Region;

use crate::cpu::percpu::PerCpu;

/// Refuses boot arguments that only images for tests serve.
pub fn read_arguments(arguments: &Arguments<'_, Names>) -> Option<Error<'static>> {
    arguments.unplanted(|image| image.hypervisor)
}

/// Returns the number of list registers, in place of the machine's number.
pub const fn list_registers() -> Option<usize> {
    None
}

/// Returns the value of the counter at EL2's start, in place of the machine's counter.
pub const fn counter_at_start() -> Option<u64> {
    None
}

/// Returns where a CPU begins when it is turned on.
pub const fn secondary_entry() -> Option<u64> {
    None
}

/// Returns the value of DISR_EL1 before firmware's pending SErrors are deferred.
pub const fn disr_at_start() -> Option<u64> {
    None
}

/// Returns firmware's answer to a request to turn the machine off.
pub const fn power_off_answer() -> Option<i64> {
    None
}

/// Is called before the guest's RAM is cleared.
pub const fn before_scrub(_ram: Region) {}

/// Is called before the guest runs.
pub const fn before_guest() {}

/// Is called when a guest has asked for a watch.
pub const fn at_watch() {}

/// Is called when a guest reports that pass `_pass` of cell `_cell` - 1 begins.
pub const fn at_cell(_cell: u64, _pass: u64) {}

/// Is called before the calling vCPU is audited while it works.
pub const fn at_audit() {}

/// Is called before an audit looks at the pending word of `_cpu`.
pub const fn at_look_at_word(_cpu: &PerCpu) {}

/// Makes the calling vCPU's exits use separate vectors; `None` if there is no such call.
pub const fn enter_floor(_which: u64) -> Option<Result<(), NoFloor>> {
    None
}

/// Returns the program of a hostile neighbour, and its vectors.
pub const fn hostile_program() -> Option<(Range<u64>, Range<u64>)> {
    None
}

/// The vectors that were asked for do not exist.
pub struct NoFloor;

/// Defines further vectors of [`crate::exits::vectors`] in assembly; here there are none.
macro_rules! vectors {
    () => {
        ""
    };
}
pub(crate) use vectors;
