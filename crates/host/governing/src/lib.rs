// SPDX-License-Identifier: MIT OR Apache-2.0

// This crate is only for programs of this workspace, so a field with a clear name needs no comment.
#![allow(missing_docs)]
//! The verb `governors`: replays a trace of idle intervals to each idle governor, and counts the cost of its choices.
//!
//! The governors and the idle loop are the guest's own code. A [`trace`], which was [recorded](recording) or
//! [generated](generate), is [replayed](replay) to each governor with the states from a [file](states). The [`ledger`]
//! counts the cost, and [`oracle`] makes the choices of an oracle that knows the future. [`table`] and
//! [`json_document`] show the results.

mod generate;
mod json_document;
mod ledger;
mod oracle;
mod recording;
mod replay;
mod states;
mod table;
mod text;
mod trace;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use cpuidle::{FOREVER, Hz, Name, Setup};
use results::json;

use generate::{Generated, Pattern};
use ledger::Ledger;
use replay::Setting;
use reporting::format::FormatArgs;
use shell::failure::{BadInput, bad_input};
use shell::output::Output;
pub use states::{FULL_POWER, States};
use trace::Trace;

/// Options of `governors`.
#[derive(Args, Debug)]
pub struct GovernorsArgs {
    /// Trace to replay: a CSV file (docs/governors.md), or Linux's recorded power:cpu_idle events, as text from perf
    /// script --show-lost-events, trace-cmd report, or ftrace's file trace; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["generate", "seed", "count", "mean_us"])]
    pub trace: Option<PathBuf>,
    /// CPU whose part of Linux's recording is replayed [default: the one with the most idle intervals]
    #[arg(long, value_name = "N", requires = "trace")]
    pub trace_cpu: Option<u32>,
    /// Replay a generated trace
    #[arg(long, value_name = "KIND", value_enum)]
    pub generate: Option<Pattern>,
    /// Random seed; equal seeds make equal traces [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Number of idle intervals to generate, 1 to 10000000 [default: 10000]
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Mean length of these intervals in microseconds, 1 to 1000000 [default: 500]
    #[arg(long, value_name = "US")]
    pub mean_us: Option<u64>,
    /// Write the trace to FILE, in the CSV form; - is standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Idle states: a table as `run --states` takes it (poll+wfi+standby, arm_poll_idle:100), or a TOML file, whose name
    /// has a dot or a slash [default: crates/host/governing/src/states.toml]
    #[arg(long, value_name = "TABLE|FILE")]
    pub states: Option<String>,
    #[arg(long, value_name = "LIST", help = format!("Governors: {} [default: all, with fixed:{FIXED_US}]", governor_words("US")))]
    pub governor: Option<String>,
    /// Longest exit latency that is allowed, in microseconds [default: any]
    #[arg(long, value_name = "US")]
    pub latency_limit_us: Option<u64>,
    #[arg(long, value_name = "HZ", value_parser = parse_hz, help = format!("How often the tick comes: {} [default: as the states' file says, 250]", Hz::WORDS.join(", ")))]
    pub hz: Option<Hz>,
    /// Utilisation of the CPU, in 1024ths, where the trace does not give one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub util: u32,
    /// Keep the CPU in shallow states for this many milliseconds after the trace submits I/O; 0 is off
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub psd_ms: u32,
    /// Write the results to FILE; - means the same as for --save
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The form of the output.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// The poll limit of the governor `fixed`, in microseconds, if no governor is named.
const FIXED_US: u32 = 50;

/// The checked options.
struct Request {
    trace: Trace,
    states: States,
    names: Vec<Setup>,
    setting: Setting,
}

/// Results of the replays.
struct Answer {
    request: Request,
    oracle: Ledger,
    governors: Vec<(Setup, Ledger)>,
}

/// Runs `cargo xtask governors`.
pub fn governors(args: &GovernorsArgs) -> Result<()> {
    let answer = replay_to_governors(args)?;
    let written = || json::text(&json_document::Document::new(&answer));
    args.format.show_with(&table::document(&answer), written)
}

/// Replays the trace to all governors, and writes the requested files.
fn replay_to_governors(args: &GovernorsArgs) -> Result<Answer> {
    let request = Request::new(args)?;
    let save = Output::claim_any("--save", args.save.as_ref())?;
    let json = Output::claim_any("--json", args.json.as_ref())?;
    args.format.claim()?;
    if let Some(save) = save {
        save.write(&request.trace.to_text())?;
    }
    let answer = Answer::new(request);
    if let Some(json) = json {
        json.write(&json::text(&json_document::Document::new(&answer))?)?;
    }
    Ok(answer)
}

impl Request {
    fn new(args: &GovernorsArgs) -> Result<Self> {
        let mut states = match &args.states {
            Some(text) => States::named(text)?,
            None => States::parse_default(),
        };
        if let Some(hz) = args.hz {
            states = states.with_tick(hz);
        }
        Ok(Self {
            setting: setting_of_args(args)?,
            names: parse_governors(args.governor.as_deref())?,
            trace: match (&args.trace, args.generate) {
                (Some(path), _) => Trace::read(path, args.trace_cpu)?,
                (None, Some(kind)) => pattern_of_args(kind, args)?.make_trace(),
                (None, None) => {
                    bad_input!("no trace is named; use --trace FILE or --generate KIND")
                }
            },
            states,
        })
    }
}

impl Answer {
    fn new(request: Request) -> Self {
        let Request {
            trace,
            states,
            names,
            setting,
        } = &request;
        let replay = |&name| (name, replay::replay(name, trace, states, setting));
        Self {
            oracle: oracle::oracle(trace, states, setting),
            governors: names.iter().map(replay).collect(),
            request,
        }
    }

    /// Returns the rows of the table, the oracle first.
    fn rows(&self) -> impl Iterator<Item = (String, &Ledger)> {
        let governors = self.governors.iter();
        let governors = governors.map(|(name, ledger)| (name.to_string(), ledger));
        std::iter::once(("oracle".to_owned(), &self.oracle)).chain(governors)
    }
}

/// Returns the words for governors, with the placeholder `limit` where a governor takes a limit.
fn governor_words(limit: &str) -> String {
    let words = Name::ALL.iter().map(|name| match name.limited() {
        true => format!("{name}:{limit}"),
        false => name.to_string(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Parses a tick frequency.
fn parse_hz(word: &str) -> Result<Hz, String> {
    let known = Hz::WORDS.join(", ");
    Hz::parse(word).ok_or_else(|| format!("there is no `{word}`; use {known}"))
}

/// Parses the names of governors.
fn parse_governors(text: Option<&str>) -> Result<Vec<Setup>> {
    let Some(text) = text.filter(|&text| text != "all") else {
        return Ok(Setup::all(FIXED_US).collect());
    };
    let mut names = Vec::new();
    for word in text.split(',') {
        let Some(name) = Setup::parse(word) else {
            bad_input!(
                "--governor: there is no `{word}`; use all, {} with at most {} us",
                governor_words("<us>"),
                Setup::MAX_LIMIT_US
            );
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

fn pattern_of_args(kind: Pattern, args: &GovernorsArgs) -> Result<Generated> {
    Ok(Generated {
        kind,
        seed: args.seed.unwrap_or(1),
        count: check_range("--count", args.count.unwrap_or(10_000), 1, 10_000_000)?,
        mean_us: check_range("--mean-us", args.mean_us.unwrap_or(500), 1, 1_000_000)?,
    })
}

fn setting_of_args(args: &GovernorsArgs) -> Result<Setting> {
    let limit_us = args.latency_limit_us;
    let limit_us =
        limit_us.map(|limit_us| check_range("--latency-limit-us", limit_us, 0, 1_000_000_000));
    Ok(Setting {
        latency_limit_ns: limit_us.transpose()?.map_or(FOREVER, |us| us * 1000),
        utilisation: check_range("--util", args.util.into(), 0, 1024)? as u32,
        psd_ms: check_range("--psd-ms", args.psd_ms.into(), 0, 10_000)? as u32,
    })
}

fn check_range(option: &str, value: u64, min: u64, max: u64) -> Result<u64> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    let nearest = value.clamp(min, max);
    Err(BadInput::error(format!(
        "{option}: {value} is not within {min} to {max}; the nearest is {nearest}"
    )))
}

#[cfg(test)]
mod tests;
