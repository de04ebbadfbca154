// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on the time of boots: without progress, and in total.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::options::LimitArgs;

/// The start time of the program. The first access sets it.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Records the program's start time.
pub fn start() {
    LazyLock::force(&START);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How much of the emulator's own time a boot may take without progress ([`shell::emulator_time`],
    /// [`shell::advance`]).
    pub without_progress: Duration,
    /// How long the command may take in total, by the wall clock from its start. The limit is
    /// checked while a machine boots.
    pub altogether: Option<Duration>,
}

impl Limits {
    /// Takes the requested limits. `patience` is the default limit on the time without progress.
    pub fn new(args: &LimitArgs, patience: Duration) -> Self {
        Self {
            without_progress: args.timeout.map_or(patience, Duration::from_secs),
            altogether: args.time_limit.map(Duration::from_secs),
        }
    }

    /// Whether the time limit of the whole command has passed.
    pub fn are_over(&self) -> bool {
        self.altogether
            .is_some_and(|limit| START.elapsed() >= limit)
    }
}
