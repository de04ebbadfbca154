// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long boots may take: without progress, and altogether.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::options::LimitArgs;

/// When the program started, as far as it knows: the first access sets it.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Notes the program's start.
pub fn start() {
    LazyLock::force(&START);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How much time of its own the emulator may spend without progress
    /// ([`shell::emulator_time`], [`shell::advance`]).
    pub without_progress: Duration,
    /// How long the command may take altogether, by the wall clock from its start;
    /// checked while a machine boots.
    pub altogether: Option<Duration>,
}

impl Limits {
    /// Takes the limits that were asked for; `patience` is the default time without progress.
    pub fn new(args: &LimitArgs, patience: Duration) -> Self {
        Self {
            without_progress: args.timeout.map_or(patience, Duration::from_secs),
            altogether: args.time_limit.map(Duration::from_secs),
        }
    }

    /// Whether the time of the whole command is over.
    pub fn are_over(&self) -> bool {
        self.altogether
            .is_some_and(|limit| START.elapsed() >= limit)
    }
}
