// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `run`: measure, show, judge.

mod pair;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::boot::Show;
use crate::job::Job;
use crate::options::RunArgs;
use crate::session::Session;
use crate::{debug, kvm, session};
use reporting::format::FormatArgs;
use reporting::{report, saved_runs};
use shell::failure::bad_input;
use shell::folder::Folder;
use shell::output::Output;
use shell::terminal::{note, say};
use shell::timings::{self, Part};

/// Does what `cargo xtask run` promises.
pub fn run(args: &RunArgs) -> Result<()> {
    let begun = Instant::now();
    let done = measure(args);
    if args.timings {
        timings::tell(begun);
    }
    done
}

fn measure(args: &RunArgs) -> Result<()> {
    let mut args = args.clone();
    if let Some(name) = &args.save {
        args.out = Some(saved_runs::folder(name)?);
    }
    let args = &args;
    if let Some(port) = args.debug {
        return debug::debug(&args.job, port);
    }
    if kvm::place::is_here(args)? {
        return kvm::local_run::run(args);
    }
    if let Some(sides) = pair::sides(args)? {
        return pair::run(args, sides);
    }
    let job = Job::of_run(args)?;
    let copy = Output::claim_any("--json", args.json.as_ref())?;
    args.format.claim()?;
    let folder = Folder::claim(args.out.as_deref(), &job.board().name)?;
    // Where there may be no cells, the console is all that there is to see.
    let show = match job.measures() {
        true => Show::Dumps,
        false => Show::Console,
    };
    let session = session::run(&job, folder, show)?;
    let told = timings::part(Part::Shown, || tell(&session, &args.format));
    // Of a run that measured nothing there is nothing to replace an older file with.
    let keeps = session.failure.is_none() || session.results.has_cells();
    let copied = match copy.filter(|_| keeps) {
        Some(copy) => copy.write(&session.results.to_json()?),
        None => Ok(()),
    };
    match (ended(session), copied.and(told)) {
        (Ok(()), copied) => copied,
        (failed, Ok(())) => failed,
        (failed, Err(error)) => {
            note!("{error:#}");
            failed
        }
    }
}

/// Says how the guest ended, and what went wrong, if anything did.
fn ended(session: Session) -> Result<()> {
    if let Some(ended) = &session.ended {
        say!("{ended}");
    }
    let Some(failure) = session.failure else {
        return Ok(());
    };
    let told = format!("{}; the console's log is {}", failure.told(), session.log);
    match failure.is_bad_input() {
        true => bad_input!("{told}"),
        false => bail!("{told}"),
    }
}

/// Prints the table, and where the rest is.
fn tell(session: &Session, format: &FormatArgs) -> Result<()> {
    if !session.results.has_cells() {
        say!("");
        say!("log: {}", session.log);
        return Ok(());
    }
    let shown = format.show_results(&session.results);
    let place = &session.place;
    say!("");
    say!("results: {place}");
    // A full disk may have left no room for it.
    if Path::new(place).join(report::PAGE).exists() {
        say!("report: {place}/{}", report::PAGE);
    }
    shown
}
