// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of idle intervals, as docs/governors.md defines them.

mod reader;

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Result;
use cpuidle::{FOREVER, Wake};

use super::{recording, text};
use shell::failure::{BadInput, bad_input};

const COLUMNS: [&str; 6] = [
    "duration_ns",
    "next_timer_ns",
    "wake",
    "busy_ns",
    "utilisation",
    "io",
];

/// Longest time in a trace, in ns: 1000 s. With this limit, no sum can overflow.
pub const LONGEST_NS: u64 = 1_000_000_000_000;

/// An idle interval between two tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Time from the start of idling to the event that ended it, in ns; at least 1.
    pub duration_ns: u64,
    /// Time from the start of idling to the next timer, in ns.
    pub next_timer_ns: u64,
    /// The event: a timer, a request or another interrupt.
    pub wake: Wake,
    /// How long the CPU had run before the interval, in ns.
    pub busy_ns: u64,
    /// Utilisation, in 1024ths.
    pub utilisation: Option<u32>,
    /// Whether I/O was submitted before the interval.
    pub io: bool,
}

/// Idle intervals in order, and their source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Description of the source, for output.
    pub source: String,
    /// The intervals; there is at least one.
    pub intervals: Vec<Interval>,
}

/// Returns the word that stands for an event in a trace.
fn wake_word(wake: Wake) -> &'static str {
    match wake {
        Wake::Timer => "timer",
        Wake::Request => "request",
        _ => "interrupt",
    }
}

impl Trace {
    /// Reads a file (`-` is standard input): a trace, or a recording of Linux. From a recording, takes the intervals of
    /// CPU `cpu`, or of the CPU with the most intervals.
    pub fn read(path: &Path, cpu: Option<u32>) -> Result<Self> {
        let mut bytes = Vec::new();
        let (shown, read) = match path.to_str() {
            Some("-") => ("standard input".into(), io::stdin().read_to_end(&mut bytes)),
            _ => {
                let file = File::open(path);
                let read = file.and_then(|mut file| file.read_to_end(&mut bytes));
                (path.display().to_string(), read)
            }
        };
        if let Err(error) = read {
            bad_input!(
                "--trace: {shown} can't be read ({error}); name a file as docs/governors.md describes it"
            );
        }
        let read = text::decode_text(&bytes).and_then(|text| Self::parse(&text, &shown, cpu));
        read.map_err(|why| BadInput::error(format!("--trace: {shown}: {why}")))
    }

    fn parse(text: &str, shown: &str, cpu: Option<u32>) -> Result<Self, String> {
        if !reader::is_trace(text) {
            let recorded = recording::parse(text, cpu)?;
            let losses = match recorded.losses {
                0 => String::new(),
                losses => format!(", without intervals at {losses} losses of events"),
            };
            return Ok(Self {
                source: format!("{shown}, CPU {} of {}{losses}", recorded.cpu, recorded.cpus),
                intervals: recorded.intervals,
            });
        }
        if cpu.is_some() {
            return Err("it is of one CPU already; leave --trace-cpu out".into());
        }
        Ok(Self {
            source: shown.into(),
            intervals: reader::parse(text)?,
        })
    }

    /// Returns this trace as the text of a file.
    pub fn to_text(&self) -> String {
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
                wake_word(interval.wake),
                interval.busy_ns,
                u8::from(interval.io)
            );
        }
        text
    }

    /// Returns the total time idle, in ns.
    pub fn idle_ns(&self) -> u64 {
        self.intervals
            .iter()
            .map(|interval| interval.duration_ns)
            .sum()
    }
}
