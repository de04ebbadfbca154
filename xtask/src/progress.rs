// SPDX-License-Identifier: MIT OR Apache-2.0
//! Telling people that something goes on: one line that is rewritten on a
//! terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often a line is written where it can't be rewritten.
const PLAIN: Duration = Duration::from_secs(10);
/// How often it is rewritten.
const TERMINAL: Duration = Duration::from_millis(100);

/// The progress of one boot.
#[derive(Debug)]
pub struct Progress {
    title: String,
    /// What is done per second, if that is to be shown.
    unit: Option<&'static str>,
    start: Instant,
    shown: Option<Instant>,
    /// When measuring began, and how much was done then.
    begun: Option<(Instant, u64)>,
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
            terminal: io::stderr().is_terminal(),
            dirty: false,
        }
    }

    /// Shows how many `unit` are done per second as well.
    pub fn with_rate(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Shows how much is done and which cell was last, unless that was just shown.
    pub fn show(&mut self, (done, of): (u64, u64), cell: &str, stage: Option<&str>) {
        if of > 0 && self.begun.is_none() {
            self.begun = Some((Instant::now(), done));
        }
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
        let left = self.left(done, of).map(|left| format!(", {left} s left"));
        let left = left.unwrap_or_default();
        let rate = self.rate(done).unwrap_or_default();
        let line = format!("{}: {what}{rate}, {seconds} s{left}", self.title);
        // There is nobody to tell of an error of standard error.
        let _ = if self.terminal {
            self.dirty = true;
            write!(io::stderr(), "\r\x1b[K{line}")
        } else {
            writeln!(io::stderr(), "{line}")
        };
    }

    /// What was done per second so far.
    fn rate(&self, done: u64) -> Option<String> {
        let (unit, (begun, before)) = (self.unit?, self.begun?);
        let new = done.checked_sub(before).filter(|new| *new > 0)?;
        let rate = new as f64 / begun.elapsed().as_secs_f64();
        Some(format!(", {rate:.0} {unit}/s"))
    }

    /// Seconds that what is left will take, if it takes as long as the rest.
    fn left(&self, done: u64, of: u64) -> Option<u64> {
        let (begun, before) = self.begun?;
        let new = done.checked_sub(before).filter(|new| *new > 0)?;
        let per_part = begun.elapsed().as_secs_f64() / new as f64;
        Some((per_part * of.saturating_sub(done) as f64).ceil() as u64)
    }

    /// Makes room for other output.
    pub fn clear(&mut self) {
        if self.dirty {
            self.dirty = false;
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
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
}
