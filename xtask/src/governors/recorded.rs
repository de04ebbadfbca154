// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that Linux recorded: the event `power:cpu_idle` as text, from `perf script`,
//! from ftrace's file `trace`, from `trace-cmd report`.
//!
//! A CPU says which state it enters, and 4294967295 when it has left it (Linux,
//! Documentation/trace/events-power.rst). What is between is an idle interval; [`cpu`] says
//! what ended it, as far as other events of the recording tell.
//!
//! A recording that lacks events would make one long interval of two. So whatever says that
//! events were lost is refused, and so is an order of events that no CPU has.

mod cpu;
mod line;

use std::collections::BTreeMap;

use super::trace::Interval;
use cpu::Cpu;
use line::Line;

/// What a recording says.
#[derive(Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The CPU.
    pub cpu: u32,
    /// How many CPUs have intervals.
    pub cpus: usize,
    /// Those of the CPU, in order.
    pub intervals: Vec<Interval>,
}

/// Beginnings of files that tools have to turn into text first, and how.
const BINARY: [(&[u8], &str); 3] = [
    (
        b"PERFILE2",
        "it is a recording of perf, not text; `perf script --ns -i FILE > TEXT` makes text of it",
    ),
    (
        b"\x17\x08\x44tracing",
        "it is a recording of trace-cmd, not text; `trace-cmd report -i FILE > TEXT` makes text of it",
    ),
    (b"\x1f\x8b", "it is compressed; `gunzip` makes a text of it"),
];

/// What to do about events that are lost.
const ROOM: &str = "intervals around them would be wrong; record again with more room (perf record -m 16M, trace-cmd -b \
                    16384, or 16384 into tracing/buffer_size_kb) and with this event alone";

/// What text of ftrace begins with, and text of trace-cmd.
const HEADS: [&str; 3] = ["# tracer:", "cpus=", "version = "];

/// How many lines are looked at to recognise a recording.
const LOOKED_AT: usize = 1000;

/// Whether these are recorded by Linux, and not in the form of docs/governors.md.
pub fn is(bytes: &[u8]) -> bool {
    if BINARY.iter().any(|(begin, _)| bytes.starts_with(begin)) {
        return true;
    }
    let mut lines = bytes.split(|&byte| byte == b'\n').take(LOOKED_AT);
    lines.any(|line| match str::from_utf8(line) {
        Ok(line) => {
            HEADS.iter().any(|head| line.starts_with(head))
                || matches!(Line::read(line), Line::Event(_) | Line::Lost(_))
        }
        Err(_) => false,
    })
}

/// The intervals of `wanted`, or of the CPU that has most of them; what is wrong and where, if
/// anything is.
pub fn parse(bytes: &[u8], wanted: Option<u32>) -> Result<Recorded, String> {
    if let Some((_, remedy)) = BINARY.iter().find(|(begin, _)| bytes.starts_with(begin)) {
        return Err((*remedy).into());
    }
    let mut cpus: BTreeMap<u32, Cpu> = BTreeMap::new();
    let mut idles = 0;
    for (line, number) in bytes.split(|&byte| byte == b'\n').zip(1..) {
        let read = String::from_utf8_lossy(line);
        let done = match Line::read(&read) {
            Line::Other => Ok(()),
            Line::Lost(what) => Err(format!("{what}: {ROOM}")),
            Line::Broken(why) => Err(why),
            Line::Event(event) => {
                idles += usize::from(event.is_idle());
                cpus.entry(event.cpu()).or_default().take(&event, number)
            }
        };
        done.map_err(|why| format!("line {number}: {why}"))?;
    }
    if idles == 0 {
        return Err(
            "there is no event cpu_idle in it; record it: perf record -a -e power:cpu_idle -- sleep 10".into(),
        );
    }
    let mut cpus: BTreeMap<u32, Vec<Interval>> = cpus
        .into_iter()
        .map(|(number, cpu)| (number, cpu.intervals()))
        .collect();
    cpus.retain(|_, intervals| !intervals.is_empty());
    chosen(cpus, wanted)
}

/// The CPU that is wanted, or the one with the most intervals, of several the first.
fn chosen(mut cpus: BTreeMap<u32, Vec<Interval>>, wanted: Option<u32>) -> Result<Recorded, String> {
    let most = cpus
        .iter()
        .max_by_key(|(number, intervals)| (intervals.len(), u32::MAX - **number));
    let Some((&most, _)) = most else {
        return Err(
            "no CPU is idle from an entry to an exit (state=4294967295) in it; record for longer"
                .into(),
        );
    };
    let count = cpus.len();
    let cpu = wanted.unwrap_or(most);
    match cpus.remove(&cpu) {
        Some(intervals) => Ok(Recorded {
            cpu,
            cpus: count,
            intervals,
        }),
        None => {
            let names = cpus.iter();
            let names = names.map(|(number, intervals)| format!("{number} ({})", intervals.len()));
            let names: Vec<_> = names.collect();
            Err(format!(
                "CPU {cpu} has no idle interval in it; with --trace-cpu name one of these, each with the number of its intervals: {}",
                names.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests;
