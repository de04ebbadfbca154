// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second implementation of Linux's cpuidle governors, written only from a list of rules. This crate's `RULES.md`
//! describes each governor, with the source of each rule. An author who had not seen `crates/no_std/cpuidle` wrote the
//! code from these rules.
//! `crates/test/governors-by-rules/tests/against` compares the two implementations over traces. Comments name the
//! number of each rule that the code implements.
//! [`Governor::choose`] asks a governor for a state, and [`Governor::learn`] reports the outcome. All arithmetic is in
//! whole numbers. Times are in nanoseconds unless a name says otherwise.
#![doc = include_str!("../RULES.md")]

mod fit;
mod haltpoll;
mod ladder;
mod menu;
mod poll;
mod teo;
mod teo_recent;
mod trace;
mod typical;

pub use haltpoll::{Haltpoll, HaltpollParameters};
pub use ladder::Ladder;
pub use menu::{Menu, MenuRules, Outliers, PollDetour};
pub use poll::poll_limit_ns;
pub use teo::Teo;
pub use teo_recent::{EarlyAnswer, TeoRecent, Utilisation};
pub use trace::{
    Ask, Choice, Event, Governor, MAX_STATES, NO_LATENCY_LIMIT, NO_TIMER, Sleep, State, Table,
    tick_ns,
};
