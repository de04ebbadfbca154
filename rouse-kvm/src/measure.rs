// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performs the boots of a command line and collects their results.

use std::env;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant, SystemTime};

use plan::Atomics;
use results::Results;
use results::merge::{self, Run};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use vmm::payload::Payload;

use crate::boots::{Boot, Job};
use crate::command_line::Words;
use crate::failure::Failure;
use crate::follow::{Limits, follow};
use crate::host::Host;
use crate::output::Output;

/// This program's own file, which is started again for each guest.
const SELF: &str = "/proc/self/exe";

/// Measures what `words` request, prints the results, and writes them as JSON if requested.
///
/// # Errors
/// [`Failure`]. Results that were measured before the failure are still printed and written.
pub fn measure(mut words: Words) -> Result<(), Failure> {
    let host = Host::find()?;
    Host::keep_away(&mut words)?;
    let words = &words;
    let job = Job::new(words, &host)?;
    let file = fs::read(SELF).map_err(|error| {
        Failure::bad_input(format!("{SELF} can't be read ({error}); mount /proc"))
    })?;
    let payload = Payload::find(&file).map_err(Failure::bad_input)?;
    let mut output = Output::claim(words)?;
    let limits = Limits {
        signal: catch_signals()?,
        until: words
            .time_limit
            .map(|limit| Instant::now() + Duration::from_secs(limit)),
    };
    let mut runs = Vec::new();
    let mut failure = None;
    for number in 1..=words.repeat {
        let mut results = Results {
            build: serde_json::from_str(payload.build).ok(),
            began: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            ..Results::new(&host.name, "", None)
        };
        for (n, boot) in job.boots.iter().enumerate() {
            eprintln!(
                "rouse-kvm: {}, boot {} of {}, run {number} of {}",
                boot.title,
                n + 1,
                job.boots.len(),
                words.repeat
            );
            let (records, ended) = follow(command(boot), image(&payload, boot), &limits, |line| {
                output.print_guest_line(line)
            });
            results.add(Some(job.under), &records);
            failure = ended.or_else(|| {
                let cut = !records.ended;
                cut.then(|| Failure::run_failed("the guest's records are not complete"))
            });
            if failure.is_some() {
                break;
            }
        }
        if results.has_cells() {
            runs.push(Run {
                label: format!("run {number}"),
                results,
                commands: vec![env::args().collect::<Vec<_>>().join(" ")],
            });
        }
        if failure.is_some() {
            break;
        }
    }
    let results = match runs.as_slice() {
        [] => Results::default(),
        runs => merge::into_one(runs),
    };
    let closed = output.close(&results);
    failure.map_or(closed, Err)
}

/// Returns the command that starts the process of a boot.
fn command(boot: &Boot) -> Command {
    let mut command = Command::new(SELF);
    command.args(&boot.words);
    command
}

/// Returns the image of the guest for a boot.
fn image<'f>(payload: &Payload<'f>, boot: &Boot) -> &'f [u8] {
    match boot.image {
        Atomics::Llsc => payload.llsc,
        Atomics::Lse => payload.lse,
    }
}

/// Installs handlers for signals that ask the program to end. Returns the variable in which the handlers store a
/// signal's number. A second signal ends the program at once.
fn catch_signals() -> Result<Arc<AtomicUsize>, Failure> {
    let came = Arc::new(AtomicUsize::new(0));
    let twice = Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let set = flag::register_conditional_shutdown(signal, 128 + signal, twice.clone())
            .and_then(|_| flag::register(signal, twice.clone()))
            .and_then(|_| flag::register_usize(signal, came.clone(), signal as usize));
        set.map_err(|error| Failure::run_failed(format!("signals can't be set up ({error})")))?;
    }
    Ok(came)
}
