// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges trials of waiting instructions: the evidence of one trial, and the condition for an
//! answer from several trials.
//!
//! A CPU can't notice that it was descheduled: a hypervisor below it, or the host of an
//! emulator, may run something else for any time between any two instructions, and a woken
//! CPU may run only much later. So one trial shows little. This crate distinguishes three
//! cases:
//!
//! - If a wait seems *short*, it was short. If a wait ended *before* an action of another CPU, the
//!   action did not end it. These conclusions are certain.
//! - During a *long* wait, the CPU may have been descheduled. The wait counts only if its
//!   [times](Wait) explain it; otherwise, the trial is void.
//! - "The alarm had to end the wait" looks like "the wait ended as it should, and then the CPU was
//!   descheduled until the alarm was due". That is common on a host that deschedules CPUs for
//!   milliseconds. Such a trial is in doubt.
//!
//! [`settle()`] derives an answer from several trials. The crate reads no clock. Times may be in
//! any unit that does not change; bounds are in microseconds. Three other questions are not about
//! waits: whether a counter counts instructions ([`counts_instructions`]), its step
//! ([`counter_step()`]), and whether there are caches ([`colder()`]).

#![no_std]

mod cold_loads;
mod count;
mod settle;
mod step;
mod wait;

pub use cold_loads::{WALKS, colder};
pub use count::counts_instructions;
pub use settle::{Finding, Verdict, settle};
pub use step::counter_step;
pub use wait::{
    Action, End, UNEXPLAINED, Wait, by_action, deadline, first_event, timeout_is_event, wfe, wfet,
};
