// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `run`: measures, shows, judges.

mod list;
mod pair;

pub use list::list;

use std::path::Path;
use std::time::Instant;

use anyhow::{Error, Result, bail};

use crate::boot::Show;
use crate::job::Job;
use crate::options::RunArgs;
use crate::session::Session;
use crate::{critical, debug, kvm, session};
use reporting::compare::Worse;
use reporting::format::FormatArgs;
use reporting::{report, saved_runs};
use shell::failure::{self, bad_input};
use shell::folder::Folder;
use shell::output::Output;
use shell::terminal::{note, say};
use shell::timings::{self, Part};

/// Runs `cargo xtask run`.
pub fn run(args: &RunArgs) -> Result<()> {
    let begun = Instant::now();
    let done = measure(args);
    if args.bisect.is_some()
        && let Err(error) = &done
    {
        failure::exit_with(bisect_status(error));
    }
    if args.timings {
        timings::tell(begun);
    }
    done
}

/// Returns the exit status of a failure for `git bisect run` (git-bisect(1)): 1 for a bad commit, 125 for a commit that
/// can't be tested, and 128 to end the search, because a wrong request is wrong for every commit.
fn bisect_status(error: &Error) -> u8 {
    if error.is::<Worse>() {
        1
    } else if failure::is_bad_input(error) {
        128
    } else {
        125
    }
}

fn measure(args: &RunArgs) -> Result<()> {
    let mut args = args.clone();
    if let Some(name) = &args.save {
        args.out = Some(saved_runs::folder(name)?);
    }
    let args = &args;
    let boots = Boots::of(args)?;
    if args.list {
        args.format.claim()?;
        return match &boots {
            Boots::Job(job) => list([&**job], &args.format),
            Boots::Pair(jobs) => list(jobs.iter(), &args.format),
            Boots::Stopped(_) | Boots::Here => bad_input!(
                "--list: the machine here lists its cells itself; use --kvm emulator to list those of an emulator"
            ),
        };
    }
    match boots {
        Boots::Stopped(port) => debug::debug(&args.job, port),
        Boots::Here => kvm::local_run::run(args),
        Boots::Pair(jobs) => pair::run(args, &jobs),
        Boots::Job(job) => measure_job(args, &job),
    }
}

/// Measures as `run` does, and keeps the instructions of the samples. Returns one session for each compared kernel, or
/// the only session.
pub fn traced(args: &RunArgs) -> Result<Vec<Session>> {
    let mut args = args.clone();
    if let Some(name) = &args.save {
        args.out = Some(saved_runs::folder(name)?);
    }
    // One boot is enough: further boots differ only in the phase of the tick.
    args.repeat = args.repeat.or(Some(1));
    let mut boots = Boots::of(&args)?;
    let jobs: &mut [Job] = match &mut boots {
        Boots::Pair(jobs) => &mut **jobs,
        Boots::Job(job) => std::slice::from_mut(&mut **job),
        Boots::Stopped(_) | Boots::Here => bad_input!(
            "explain: an emulator observes the samples; leave out --debug, and use --kvm emulator"
        ),
    };
    for job in jobs {
        if !critical::has_samples(job) {
            bad_input!(
                "explain: instructions (--metric insns) and cycles of gem5 (--board gem5) can be explained, of workloads like pingpong, ipi and linux-pipe"
            );
        }
        job.traces = true;
    }
    match boots {
        Boots::Pair(jobs) => Ok(pair::sessions(&args, &jobs)?.into()),
        Boots::Job(job) => {
            let folder = Folder::claim(args.out.as_deref(), &job.board().name)?;
            Ok(vec![session::run(&job, folder, Show::Dumps)?])
        }
        Boots::Stopped(_) | Boots::Here => Ok(Vec::new()),
    }
}

/// The boots that the options of `run` request.
enum Boots {
    /// A boot that waits for a debugger at a port.
    Stopped(u16),
    /// Boots under this machine's own KVM.
    Here,
    /// Boots of two kernels, alternately.
    Pair(Box<[Job; 2]>),
    /// The boots of a job.
    Job(Box<Job>),
}

impl Boots {
    fn of(args: &RunArgs) -> Result<Self> {
        if let Some(port) = args.debug {
            return Ok(Self::Stopped(port));
        }
        if kvm::place::is_measured_here(args)? {
            return Ok(Self::Here);
        }
        match pair::two_jobs(args)? {
            Some(jobs) => Ok(Self::Pair(Box::new(jobs))),
            None => Ok(Self::Job(Box::new(Job::of_run(args)?))),
        }
    }
}

/// Measures the job, and shows its results.
fn measure_job(args: &RunArgs, job: &Job) -> Result<()> {
    let copy = Output::claim_any("--json", args.json.as_ref())?;
    args.format.claim()?;
    let folder = Folder::claim(args.out.as_deref(), &job.board().name)?;
    // A run that need not have cells shows the console instead.
    let show = match job.measures() {
        true => Show::Dumps,
        false => Show::Console,
    };
    let session = session::run(job, folder, show)?;
    let told = timings::time_part(Part::Shown, || print_results(&session, &args.format));
    // A run that measured nothing must not overwrite an older file.
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

/// Prints how the guest ended, and returns the failure, if any.
pub fn ended(session: Session) -> Result<()> {
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

/// Prints the table, and where the run's other files are.
fn print_results(session: &Session, format: &FormatArgs) -> Result<()> {
    if !session.results.has_cells() {
        say!("");
        say!("log: {}", session.log);
        return Ok(());
    }
    let shown = format.show_results(&session.results);
    let place = &session.place;
    say!("");
    say!("results: {place}");
    // The page may be missing, because the disk was full.
    if Path::new(place).join(report::PAGE).exists() {
        say!("report: {place}/{}", report::PAGE);
    }
    shown
}
