// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of the soak's operations.

use std::io::{self, Write};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::output::Output;

/// Counts of the operations of all threads.
#[derive(Debug, Default)]
pub struct OperationCounts {
    pub timers: AtomicU64,
    pub pipes: AtomicU64,
    pub futexes: AtomicU64,
    pub barriers: AtomicU64,
    pub audits: AtomicU64,
    pub off: AtomicU64,
    /// Maximum lateness of a timer, in microseconds.
    pub latest_us: AtomicU64,
    /// Maximum duration of a round trip or a barrier, in microseconds.
    pub longest_us: AtomicU64,
}

impl OperationCounts {
    fn named_counts(&self) -> [(&'static str, u64); 10] {
        let [timers, pipes, futexes, barriers] =
            [&self.timers, &self.pipes, &self.futexes, &self.barriers]
                .map(|count| count.load(Relaxed));
        // These fields are in the summary of every soak. A round trip has two wake-ups.
        let steps = timers + pipes + futexes + barriers;
        [
            ("steps", steps),
            ("wake-ups", timers + 2 * (pipes + futexes)),
            ("timers", timers),
            ("pipes", pipes),
            ("futexes", futexes),
            ("barriers", barriers),
            ("off", self.off.load(Relaxed)),
            ("audits", self.audits.load(Relaxed)),
            ("latest-us", self.latest_us.load(Relaxed)),
            ("longest-us", self.longest_us.load(Relaxed)),
        ]
    }

    /// Writes the counts.
    pub fn write_counts<W: Write>(&self, output: &mut Output<W>) -> io::Result<()> {
        for (name, count) in self.named_counts() {
            let line = output.record("soak").field("name", name);
            output.send(line.field("count", count))?;
        }
        Ok(())
    }

    /// Writes the counts, and how many of the `seconds` have passed.
    pub fn tell_progress<W: Write>(
        &self,
        output: &mut Output<W>,
        done: u64,
        seconds: u64,
    ) -> io::Result<()> {
        self.write_counts(output)?;
        let all = self.named_counts();
        let line = output
            .record("progress")
            .field("done", done)
            .field("of", seconds);
        let at = format!("{} steps, {} off and on", all[0].1, all[6].1);
        output.send(line.field("cell", at))?;
        output.flush()
    }
}
