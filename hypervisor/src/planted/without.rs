// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image for measurements: nothing is planted, and an argument that asks for it is refused.

use core::ops::Range;

use plan::{Arguments, Error, Names};
use platform::Region;

/// Refuses arguments that ask for it.
pub fn ask(arguments: &Arguments<'_, Names>) -> Option<Error<'static>> {
    arguments.unplanted(|image| image.hypervisor)
}

/// The counter at EL2's start, in place of the machine's.
pub const fn counter() -> Option<u64> {
    None
}

/// Where a CPU begins when it is turned on.
pub const fn secondary_entry() -> Option<u64> {
    None
}

/// DISR_EL1 before firmware's pending SErrors are deferred.
pub const fn left_serror() -> Option<u64> {
    None
}

/// Firmware's answer to a request to turn the machine off.
pub const fn power_off() -> Option<i64> {
    None
}

/// Called before the guest's RAM is cleared.
pub const fn before_scrub(_ram: Region) {}

/// Called before the guest runs.
pub const fn before_guest() {}

/// Called when a guest has asked for a watch.
pub const fn at_watch() {}

/// Called when a guest reports that pass `_pass` of cell `_cell` - 1 begins.
pub const fn at_cell(_cell: u64, _pass: u64) {}

/// Called before the calling vCPU is audited.
pub const fn at_audit(_quiet: bool) {}

/// Makes the calling vCPU's exits come to separate vectors; `None` if there is no such call.
pub const fn enter_floor(_which: u64) -> Option<Result<(), NoFloor>> {
    None
}

/// The program of a hostile neighbour, and its vectors.
pub const fn hostile() -> Option<(Range<u64>, Range<u64>)> {
    None
}

/// There are no such vectors.
pub struct NoFloor;

/// Further vectors of [`crate::exits::vectors`]: assembly.
macro_rules! vectors {
    () => {
        ""
    };
}
pub(crate) use vectors;
