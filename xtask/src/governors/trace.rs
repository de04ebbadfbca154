// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of idle intervals: what docs/governors.md says they look like.

mod reader;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;
use cpuidle::{FOREVER, Wake};

use super::recorded;
use crate::failure::{BadInput, bad_input};

const COLUMNS: [&str; 6] = [
    "duration_ns",
    "next_timer_ns",
    "wake",
    "busy_ns",
    "utilisation",
    "io",
];

/// Longest time in a trace, ns: 1000 s. Nothing that is added up can overflow.
pub const LONGEST_NS: u64 = 1_000_000_000_000;

/// What happened between two tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Time from having nothing to do to the event that ended it, ns; from 1 on.
    pub duration_ns: u64,
    /// Time from having nothing to do to the next timer, ns.
    pub next_timer_ns: u64,
    /// The event: a timer, a request or another interrupt.
    pub wake: Wake,
    /// How long the CPU had run before, ns.
    pub busy_ns: u64,
    /// Utilisation, 1024ths.
    pub utilisation: Option<u32>,
    /// I/O was submitted before.
    pub io: bool,
}

/// Idle intervals in order, and where they are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// For people.
    pub source: String,
    /// At least one.
    pub intervals: Vec<Interval>,
}

/// The word for an event of a trace.
fn word(wake: Wake) -> &'static str {
    match wake {
        Wake::Timer => "timer",
        Wake::Request => "request",
        _ => "interrupt",
    }
}

impl Trace {
    /// Reads a file: a trace, or a recording of Linux, of which CPU `cpu` counts or the one
    /// that has the most intervals.
    pub fn read(path: &Path, cpu: Option<u32>) -> Result<Self> {
        let shown = path.display();
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => bad_input!(
                "--trace: {shown} can't be read ({error}); name a file as docs/governors.md describes it"
            ),
        };
        let read = match (recorded::is(&bytes), cpu) {
            (true, _) => recorded::parse(&bytes, cpu).map(|recorded| Self {
                source: format!("{shown}, CPU {} of {}", recorded.cpu, recorded.cpus),
                intervals: recorded.intervals,
            }),
            (false, None) => reader::parse(&bytes).map(|intervals| Self {
                source: shown.to_string(),
                intervals,
            }),
            (false, Some(_)) => Err("it is of one CPU already; leave --trace-cpu out".into()),
        };
        read.map_err(|why| BadInput::error(format!("--trace: {shown}: {why}")))
    }

    /// The text of a file that reads back as this trace.
    pub fn text(&self) -> String {
        let mut text = format!("# {}\n{}\n", self.source, COLUMNS.join(","));
        for interval in &self.intervals {
            let timer = match interval.next_timer_ns {
                FOREVER => "none".to_owned(),
                time => time.to_string(),
            };
            let util = interval
                .utilisation
                .map_or(String::new(), |util| util.to_string());
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{timer},{},{},{util},{}",
                interval.duration_ns,
                word(interval.wake),
                interval.busy_ns,
                u8::from(interval.io)
            );
        }
        text
    }

    /// Time idle altogether, ns.
    pub fn idle_ns(&self) -> u64 {
        self.intervals
            .iter()
            .map(|interval| interval.duration_ns)
            .sum()
    }
}
