// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long boots may take: without progress, and altogether.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::options::LimitArgs;

/// When the program was started, as far as it can know: the first to look sets it.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Notes that the program starts.
pub fn start() {
    LazyLock::force(&START);
}

/// The limits of a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How much time of its own the emulator may spend without progress
    /// ([`shell::emulator_time`], [`shell::advance`]).
    pub without_progress: Duration,
    /// How long the command may take altogether, by the wall clock from its start;
    /// looked at while something boots.
    pub altogether: Option<Duration>,
}

impl Limits {
    /// Takes the limits that were asked for; `patience` is the time without progress if none was.
    pub fn new(args: &LimitArgs, patience: Duration) -> Self {
        Self {
            without_progress: args.timeout.map_or(patience, Duration::from_secs),
            altogether: args.time_limit.map(Duration::from_secs),
        }
    }

    /// Whether all the time is over.
    pub fn are_over(&self) -> bool {
        self.altogether
            .is_some_and(|limit| START.elapsed() >= limit)
    }
}
