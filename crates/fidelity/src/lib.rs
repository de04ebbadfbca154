// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trial of an instruction that waits shows, and when that is an answer.
//!
//! A CPU can't see that it was away: a hypervisor below, or an emulator's host,
//! may have run something else for any time between any two instructions, and
//! a CPU that was woken may have got to run long after. So one trial shows
//! little. What it shows is kept apart:
//!
//! - Something that was *short* was short, and something that happened *before*
//!   a deed of another CPU was not its effect. These are certain.
//! - Something that was *long* may have been a CPU that was away. It counts only
//!   where the [books](Wait) of the wait explain it, else the trial is void.
//! - "The alarm had to end the wait" looks like "what was to end it did, and the CPU
//!   came back when the alarm was due". Where CPUs come back after ms that is no
//!   rare case, but a matter of the time chosen. Such a trial is in doubt.
//!
//! [`settle()`] makes an answer of several. The crate touches no clock: times are in
//! any unit that does not change, bounds in microseconds.

#![no_std]

mod colder;
mod settle;
mod wait;

pub use colder::{WALKS, colder};
pub use settle::{Finding, Verdict, settle};
pub use wait::{
    Deed, End, UNEXPLAINED, Wait, by_deed, deadline, first_event, timeout_is_event, wfe, wfet,
};
