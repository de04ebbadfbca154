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
    start: Instant,
    shown: Option<Instant>,
    terminal: bool,
    dirty: bool,
}

impl Progress {
    /// Starts the clock.
    pub fn new(title: String) -> Self {
        Self {
            title,
            start: Instant::now(),
            shown: None,
            terminal: io::stderr().is_terminal(),
            dirty: false,
        }
    }

    /// Shows how much is done, unless that was just shown.
    pub fn show(&mut self, (done, of): (u64, u64), stage: Option<&str>) {
        let interval = if self.terminal { TERMINAL } else { PLAIN };
        if self.shown.unwrap_or(self.start).elapsed() < interval {
            return;
        }
        self.shown = Some(Instant::now());
        let what = match (of, stage) {
            (0, Some(stage)) => stage.split(':').next().unwrap_or(stage).to_owned(),
            (0, None) => "booting".into(),
            _ => format!("{done}/{of}"),
        };
        let line = format!(
            "{}: {what}, {} s",
            self.title,
            self.start.elapsed().as_secs()
        );
        // There is nobody to tell of an error of standard error.
        let _ = if self.terminal {
            self.dirty = true;
            write!(io::stderr(), "\r\x1b[K{line}")
        } else {
            writeln!(io::stderr(), "{line}")
        };
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
