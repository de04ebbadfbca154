// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows progress to people: one line that is rewritten on a
//! terminal, an occasional line elsewhere.

mod estimate;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use estimate::Estimate;
use results::records::{BootProgress, Collector, Size};

use crate::terminal::{self, note};

/// How often a line is written where it can't be rewritten.
const PLAIN: Duration = Duration::from_secs(10);
/// How often it is rewritten.
const TERMINAL: Duration = Duration::from_millis(100);

/// The progress of one boot.
#[derive(Debug)]
pub struct Progress {
    title: String,
    /// Unit of the rate, if it is shown.
    unit: Option<&'static str>,
    start: Instant,
    shown: Option<Instant>,
    /// When the work began, and how much was already done.
    begun: Option<(Instant, u64)>,
    /// Estimate of the remaining time, where cells are measured.
    estimate: Option<Estimate>,
    /// How to describe a plan, if at all: by the guessed time it takes.
    speed: Option<Speed>,
    terminal: bool,
    dirty: bool,
}

impl Progress {
    /// Starts the clock.
    pub fn new(title: String) -> Self {
        Self {
            title,
            unit: None,
            start: Instant::now(),
            shown: None,
            begun: None,
            estimate: None,
            speed: None,
            terminal: io::stderr().is_terminal(),
            dirty: false,
        }
    }

    /// Others are shown at the same time, so no line can be rewritten.
    pub const fn beside_others(mut self) -> Self {
        self.terminal = false;
        self
    }

    /// Also shows how many `unit` are done per second.
    pub fn with_rate(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Prints the size of a plan once it is known, and how long it may take.
    pub fn with_plan(mut self, speed: Speed) -> Self {
        self.speed = Some(speed);
        self
    }

    /// Shows how much is done and the last cell, unless that was just shown.
    pub fn show(&mut self, collector: &Collector, stage: Option<&str>) {
        let BootProgress { done, of, .. } = collector.step;
        let cell = &collector.at;
        if of > 0 && self.begun.is_none() {
            self.begun = Some((Instant::now(), done));
        }
        self.learn(collector);
        let interval = if self.terminal { TERMINAL } else { PLAIN };
        if self.shown.unwrap_or(self.start).elapsed() < interval {
            return;
        }
        self.shown = Some(Instant::now());
        let what = match (of, stage) {
            (0, Some(stage)) => stage.split(':').next().unwrap_or(stage).to_owned(),
            (0, None) => "booting".into(),
            _ => format!("{done}/{of} {cell}"),
        };
        let seconds = self.start.elapsed().as_secs();
        let left = self
            .left(done, of)
            .map(|left| format!(", about {} left", time(left)));
        let left = left.unwrap_or_default();
        let rate = self.rate(done).unwrap_or_default();
        let line = format!("{}: {what}{rate}, {seconds} s{left}", self.title);
        if self.terminal {
            self.dirty = true;
            terminal::rewrite(format_args!("{line}"));
        } else {
            note!("{line}");
        }
    }

    /// Follows the steps of a plan, shown or not.
    fn learn(&mut self, collector: &Collector) {
        let now = self.start.elapsed().as_secs_f64();
        if let (None, Some(plan)) = (&self.estimate, collector.plan()) {
            self.estimate = Some(Estimate::new(plan, now));
            if let Some(speed) = self.speed {
                self.clear();
                note!("{}: {}", self.title, sized(plan, speed));
            }
        }
        if let Some(estimate) = &mut self.estimate {
            estimate.step(collector.step, now);
        }
    }

    /// Returns the rate so far.
    fn rate(&self, done: u64) -> Option<String> {
        let (unit, (begun, before)) = (self.unit?, self.begun?);
        let new = done.checked_sub(before).filter(|new| *new > 0)?;
        let rate = new as f64 / begun.elapsed().as_secs_f64();
        Some(format!(", {rate:.0} {unit}/s"))
    }

    /// Returns the remaining seconds; without a plan, at the rate so
    /// far.
    fn left(&self, done: u64, of: u64) -> Option<u64> {
        if let Some(estimate) = &self.estimate {
            let left = estimate.left(self.start.elapsed().as_secs_f64())?;
            return Some(left.ceil() as u64);
        }
        let (begun, before) = self.begun?;
        let new = done.checked_sub(before).filter(|new| *new > 0)?;
        let per_part = begun.elapsed().as_secs_f64() / new as f64;
        Some((per_part * of.saturating_sub(done) as f64).ceil() as u64)
    }

    /// Makes room for other output.
    pub fn clear(&mut self) {
        if self.dirty {
            self.dirty = false;
            terminal::rewrite(format_args!(""));
        }
    }
}

/// Guessed speed of a machine, before anything has been measured on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// An emulator that counts instructions, one per nanosecond.
    Instructions,
    /// The guest's time is that of the wall.
    Time,
    /// Unknown.
    Unknown,
}

/// Guess of the instructions that an emulator executes in a second: those of waits, which
/// take most of the time, are mainly reads of the counter.
const PER_SECOND: f64 = 6e6;

/// Describes the size of a plan, how long it may take, and the basis of that.
fn sized(plan: Size, speed: Speed) -> String {
    let Size {
        cells,
        skipped,
        passes,
        iterations,
        cell_ms,
        ..
    } = plan;
    let guest = plan.guess_us as f64 / 1e6;
    let guess = match speed {
        Speed::Instructions => {
            let seconds = guest * 1e9 / PER_SECOND;
            let text = time(seconds.ceil() as u64);
            format!("about {text} at most (guess: 6 million instructions a second)")
        }
        Speed::Time => {
            let text = time(guest.ceil() as u64);
            format!("about {text} at most (guess: by the pauses and latencies asked for)")
        }
        Speed::Unknown => "how long is known after some cells".into(),
    };
    let bound = match cell_ms {
        0 => String::new(),
        ms => format!(" or {ms} ms of the guest"),
    };
    format!(
        "{cells} cells, {skipped} of them skipped, in {passes} passes; each has up to {iterations} \
         wake-ups{bound}; {guess}"
    )
}

/// Formats seconds for people.
fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_what_was_done_since_it_began() {
        let mut progress = Progress::new("test".into()).with_rate("parts");
        progress.begun = Some((Instant::now() - Duration::from_secs(10), 100));
        assert_eq!(progress.rate(100), None);
        assert_eq!(progress.rate(300).unwrap(), ", 20 parts/s");
        assert_eq!(Progress::new("test".into()).rate(300), None);
    }

    #[test]
    fn what_is_left_takes_as_long_as_the_rest() {
        let mut progress = Progress::new("test".into());
        assert_eq!(progress.left(3, 10), None);
        progress.begun = Some((Instant::now() - Duration::from_secs(9), 1));
        assert_eq!(progress.left(1, 10), None);
        assert_eq!(progress.left(4, 10), Some(19));
        assert_eq!(progress.left(10, 10), Some(0));
    }

    #[test]
    fn a_plan_is_told_with_its_guess_and_what_that_is_based_on() {
        let plan = Size {
            cells: 70,
            skipped: 2,
            passes: 4,
            iterations: 2000,
            cell_ms: 20,
            guess_us: 1_000_000,
        };
        let text = sized(plan, Speed::Instructions);
        assert_eq!(
            text,
            "70 cells, 2 of them skipped, in 4 passes; each has up to 2000 wake-ups or 20 ms of the \
             guest; about 3 min at most (guess: 6 million instructions a second)"
        );
        assert!(sized(plan, Speed::Time).contains("about 1 s at most"));
        assert!(
            sized(Size { cell_ms: 0, ..plan }, Speed::Unknown)
                .ends_with("2000 wake-ups; how long is known after some cells")
        );
        assert_eq!(
            [0, 119, 121, 7300].map(time),
            ["0 s", "119 s", "3 min", "3 h"]
        );
    }
}
