// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two clocks of a boot: the emulator's own time, and the wall clock.

use std::thread;
use std::time::{Duration, Instant};

use super::ending::Stall;
use shell::emulator_process::EmulatorProcess;
use shell::emulator_time::OwnTime;

/// Interval between readings of the emulator's own time.
const SAMPLE: Duration = Duration::from_millis(200);

/// The wall clock and the emulator's clock, and the time of the last progress by each of them.
pub struct Clock {
    own: OwnTime,
    /// When the emulator's own time was last read.
    read: Instant,
    /// The time of the last progress, by the emulator's own time and by the wall clock.
    progressed: (Duration, Instant),
}

impl Clock {
    /// Starts both clocks.
    pub fn start() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let now = Instant::now();
        Self {
            own: OwnTime::new(cores),
            read: now,
            progressed: (Duration::ZERO, now),
        }
    }

    /// Returns the emulator's own time, as last read.
    pub fn last_read_time(&self) -> Duration {
        self.own.now()
    }

    /// Reads the emulator's own time, unless it was read within the last `SAMPLE`. Returns whether this call has read
    /// it.
    pub fn read_time(&mut self, process: &EmulatorProcess) -> bool {
        let elapsed = self.read.elapsed();
        if elapsed < SAMPLE {
            return false;
        }
        self.read = Instant::now();
        self.own.advance(elapsed, process.sample());
        true
    }

    /// Notes progress. The recorded time is the end of the current sampling period, because the exact time of the
    /// progress is not known.
    pub fn note_progress(&mut self) {
        self.progressed = (self.own.now(), Instant::now());
    }

    /// Returns how long there has been no progress.
    pub fn stall(&self) -> Stall {
        Stall {
            own: self.own.now() - self.progressed.0,
            wall: self.progressed.1.elapsed(),
        }
    }
}
