// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logic that chooses which idle state a CPU enters.
//!
//! The framework is that of Linux's cpuidle (`Documentation/admin-guide/pm/cpuidle.rst`): a
//! [`Table`] of [`State`]s, each with an exit latency and a target residency; a [`Governor`]
//! that chooses a state when the CPU has nothing to do and learns from the length of the
//! stay; and [`Statistics`] of how good the choices were. A [`Device`] has one of each, for
//! one CPU:
//!
//! ```
//! use cpuidle::{Device, StateKind, Moment, Name, Outcome, Setup, State, Table, Wake};
//!
//! let states = [
//!     State::new("poll", StateKind::Poll, 0, 0),
//!     State::new("wfi", StateKind::Wfi, 2_000, 5_000),
//! ];
//! let table = Table::new(&states, 4_000_000).unwrap();
//! let mut idle = Device::new(table, Setup::new(Name::Fixed, 10));
//! // The CPU has nothing to do, and its next timer is in 1 ms.
//! let choice = idle.select(&Moment::quiet_at(0), || 1_000_000);
//! assert_eq!((choice.state, choice.poll_limit_ns), (0, 10_000));
//! // It polled for 3 us and saw a request.
//! idle.reflect(&Outcome { state: 0, residency_ns: 3_000, wake: Wake::Request });
//! assert_eq!(idle.statistics().of(0).usage, 1);
//! ```
//!
//! A [`Period`] is the idle loop around a device, generic over the CPU, which is its [`Driver`].
//!
//! All times are in nanoseconds; [`FOREVER`] is a time that never comes. The
//! crate has no floating point, no allocation and no clock: the driver has the
//! clock.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod device;
mod fixed;
mod governor;
mod haltpoll;
mod hz;
mod ladder;
mod menu;
mod name;
mod period;
mod poll_switch;
mod psd;
mod state;
mod states;
mod statistics;
mod table;
mod teo;
mod teo_util;
mod tick;

pub use device::Device;
pub use fixed::Fixed;
pub use governor::{Choice, Governor, Moment, Outcome, Wake};
pub use haltpoll::Haltpoll;
pub use hz::Hz;
pub use ladder::Ladder;
pub use menu::{Menu, Release};
pub use name::{Name, Selected, Setup};
pub use period::{Driver, Period, Way};
pub use poll_switch::{Invalid, PollSwitch};
pub use psd::Psd;
pub use state::{State, StateKind};
pub use states::{Broken, Misread, States};
pub use statistics::{StateCounts, Statistics};
pub use table::{MAX_STATES, Table, TableError};
pub use teo::Teo;
pub use teo_util::{TeoUtil, Util};

/// A time that never comes: no timer is set, no limit applies.
pub const FOREVER: u64 = u64::MAX;
