// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of idle intervals: what docs/governors.md says they look like.
//!
//! Read line by line and not by the `csv` crate, which counts lines wrongly after
//! comments; nothing in a trace needs quotes.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;
use cpuidle::{FOREVER, Wake};

use crate::failure::{BadInput, bad_input};

/// Longest time in a trace, ns: 1000 s. Nothing that is added up can overflow.
const LONGEST_NS: u64 = 1_000_000_000_000;
/// Columns, and how many of them have to be there.
const COLUMNS: [&str; 6] = [
    "duration_ns",
    "next_timer_ns",
    "wake",
    "busy_ns",
    "utilisation",
    "io",
];
const REQUIRED: usize = 3;

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
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => bad_input!(
                "--trace: {shown} can't be read ({error}); name a file as docs/governors.md describes it"
            ),
        };
        match parse(&bytes) {
            Ok(intervals) => Ok(Self {
                source: shown.to_string(),
                intervals,
            }),
            Err(why) => Err(BadInput::error(format!("--trace: {shown}: {why}"))),
        }
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

/// The intervals of a text; what is wrong with it and where, if it is.
fn parse(bytes: &[u8]) -> Result<Vec<Interval>, String> {
    let mut lines = bytes
        .split(|&byte| byte == b'\n')
        .zip(1..)
        .filter_map(values);
    let (number, header) = lines.next().unwrap_or((1, Ok(Vec::new())));
    let header = header.map_err(|why| format!("line {number}: {why}"))?;
    let places = places(&header)?;
    let mut intervals = Vec::new();
    for (number, values) in lines {
        let interval = values.and_then(|values| interval(&values, header.len(), &places));
        intervals.push(interval.map_err(|why| format!("line {number}: {why}"))?);
    }
    if intervals.is_empty() {
        return Err("there is no interval in it; a line has duration_ns,next_timer_ns,wake".into());
    }
    Ok(intervals)
}

/// The values of a line and its number; nothing if it is blank or a comment.
fn values((line, number): (&[u8], usize)) -> Option<(usize, Result<Vec<&str>, String>)> {
    let Ok(line) = str::from_utf8(line) else {
        return Some((number, Err("not UTF-8 text".into())));
    };
    let line = line.trim();
    let skipped = line.is_empty() || line.starts_with('#');
    (!skipped).then(|| (number, Ok(line.split(',').map(str::trim).collect())))
}

/// Where each of [`COLUMNS`] is.
type Places = [Option<usize>; COLUMNS.len()];

fn places(header: &[&str]) -> Result<Places, String> {
    let mut places: Places = [None; COLUMNS.len()];
    for (place, &title) in header.iter().enumerate() {
        let Some(column) = COLUMNS.iter().position(|&column| column == title) else {
            let known = COLUMNS.join(", ");
            return Err(format!(
                "the first line names column `{title}`; there are {known}"
            ));
        };
        if places[column].replace(place).is_some() {
            return Err(format!("the first line names column `{title}` twice"));
        }
    }
    match places[..REQUIRED].iter().position(Option::is_none) {
        Some(column) => Err(format!(
            "the first line does not name column `{}`",
            COLUMNS[column]
        )),
        None => Ok(places),
    }
}

fn interval(values: &[&str], columns: usize, places: &Places) -> Result<Interval, String> {
    if values.len() != columns {
        let count = values.len();
        return Err(format!(
            "{count} values, and the first line names {columns} columns"
        ));
    }
    let value = |column: usize| places[column].map_or("", |place| values[place]);
    let time = |column: usize, min: u64| number(COLUMNS[column], value(column), min, LONGEST_NS);
    let interval = Interval {
        duration_ns: time(0, 1)?,
        next_timer_ns: match value(1) {
            "none" => FOREVER,
            _ => time(1, 0).map_err(|why| format!("{why}, or `none`"))?,
        },
        wake: wake(value(2))?,
        busy_ns: if value(3).is_empty() { 0 } else { time(3, 0)? },
        utilisation: match value(4) {
            "" => None,
            text => Some(number(COLUMNS[4], text, 0, 1024)? as u32),
        },
        io: match value(5) {
            "" | "0" => false,
            "1" => true,
            other => return Err(format!("io: `{other}` is neither 0 nor 1")),
        },
    };
    let (duration_ns, timer_ns) = (interval.duration_ns, interval.next_timer_ns);
    if interval.wake == Wake::Timer && timer_ns > duration_ns {
        let due = if timer_ns == FOREVER {
            "never".into()
        } else {
            format!("after {timer_ns} ns")
        };
        return Err(format!(
            "a timer can't end it after {duration_ns} ns: it is due {due}"
        ));
    }
    Ok(interval)
}

fn number(column: &str, text: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("{column}: `{text}` is not a number from {min} to {max}"))
}

fn wake(text: &str) -> Result<Wake, String> {
    let mut wakes = [Wake::Timer, Wake::Request, Wake::Interrupt].into_iter();
    let wake = wakes.find(|&wake| word(wake) == text);
    wake.ok_or_else(|| format!("wake: `{text}` is none of timer, request, interrupt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "duration_ns,next_timer_ns,wake\n";

    #[test]
    fn a_trace_reads_back() {
        let intervals = vec![
            Interval {
                duration_ns: 5,
                next_timer_ns: 5,
                wake: Wake::Timer,
                busy_ns: 7,
                utilisation: Some(16),
                io: true,
            },
            Interval {
                duration_ns: LONGEST_NS,
                next_timer_ns: FOREVER,
                wake: Wake::Request,
                busy_ns: 0,
                utilisation: None,
                io: false,
            },
        ];
        let source = "made up".into();
        let trace = Trace { source, intervals };
        assert_eq!(parse(trace.text().as_bytes()).unwrap(), trace.intervals);
    }

    #[test]
    fn columns_are_found_by_name() {
        let text = "# recorded\nwake, io, duration_ns, next_timer_ns\nrequest, 1, 10, 20\n";
        let [interval] = parse(text.as_bytes()).unwrap()[..] else {
            panic!()
        };
        assert_eq!((interval.duration_ns, interval.next_timer_ns), (10, 20));
        assert_eq!((interval.wake, interval.io), (Wake::Request, true));
    }

    /// The example of the documentation is one.
    #[test]
    fn the_documented_example_is_read() {
        let text = include_str!("../../../docs/governors.md");
        let start = text.find(HEADER.trim_end()).unwrap();
        let example = text[start..].split("```").next().unwrap();
        let [_, timer] = parse(example.as_bytes()).unwrap()[..] else {
            panic!("{example}")
        };
        assert_eq!((timer.wake, timer.busy_ns), (Wake::Timer, 9000));
    }

    #[test]
    fn bad_lines_are_refused_by_number() {
        for (text, told) in [
            (String::new(), "does not name column `duration_ns`"),
            (HEADER.into(), "there is no interval"),
            (
                "duration,wake\n".into(),
                "names column `duration`; there are duration_ns,",
            ),
            (
                "duration_ns,wake\n".into(),
                "does not name column `next_timer_ns`",
            ),
            ("wake,wake\n".into(), "names column `wake` twice"),
            (
                format!("{HEADER}1,2,timer\n"),
                "line 2: a timer can't end it after 1 ns: it is due after 2 ns",
            ),
            (format!("{HEADER}1,none,timer\n"), "it is due never"),
            (
                format!("{HEADER}1,1,timer\n# x\n\n0,1,timer\n"),
                "line 5: duration_ns: `0`",
            ),
            (
                format!("{HEADER}1,x,timer\n"),
                "line 2: next_timer_ns: `x` is not a number",
            ),
            (
                format!("{HEADER}1000000000001,none,request\n"),
                "line 2: duration_ns",
            ),
            (
                format!("{HEADER}1,1,tick\n"),
                "line 2: wake: `tick` is none of",
            ),
            (
                format!("{HEADER}1,1\n"),
                "line 2: 2 values, and the first line names 3",
            ),
        ] {
            let why = parse(text.as_bytes()).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
        let why = parse(b"duration_ns,next_timer_ns,wake\n1,1,\xff\n").unwrap_err();
        assert!(why.contains("line 2: not UTF-8"), "{why}");
    }
}
