// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the result of a check.

/// Reason why a check failed.
pub type Failure = &'static str;

/// Returns `Err(why)` unless `condition` holds.
pub fn ensure(condition: bool, why: Failure) -> Result<(), Failure> {
    if condition { Ok(()) } else { Err(why) }
}
