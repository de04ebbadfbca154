// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two clocks of a boot: the emulator's own time, and the wall's.

use std::thread;
use std::time::{Duration, Instant};

use super::ending::Stall;
use shell::emulator_process::EmulatorProcess;
use shell::emulator_time::OwnTime;

/// How often the emulator's own time is read.
const SAMPLE: Duration = Duration::from_millis(200);

/// Both clocks, and when by them the boot got on last.
pub struct Clock {
    own: OwnTime,
    /// When the own time was read.
    read: Instant,
    /// When it got on, by its own time and by the wall clock.
    progressed: (Duration, Instant),
}

impl Clock {
    /// Both begin.
    pub fn start() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let now = Instant::now();
        Self {
            own: OwnTime::new(cores),
            read: now,
            progressed: (Duration::ZERO, now),
        }
    }

    /// The emulator's own time, as it was read last.
    pub fn now(&self) -> Duration {
        self.own.now()
    }

    /// Reads it if that was not done just now; whether it was done now.
    pub fn read(&mut self, process: &EmulatorProcess) -> bool {
        let elapsed = self.read.elapsed();
        if elapsed < SAMPLE {
            return false;
        }
        self.read = Instant::now();
        self.own.advance(elapsed, process.sample());
        true
    }

    /// Notes that the boot got on, at the end of the time between two samples in which
    /// it did: how much of it came after is not known.
    pub fn note_progress(&mut self) {
        self.progressed = (self.own.now(), Instant::now());
    }

    /// The time without progress.
    pub fn stall(&self) -> Stall {
        Stall {
            own: self.own.now() - self.progressed.0,
            wall: self.progressed.1.elapsed(),
        }
    }
}
