// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boots of a job, and the folder of results, which is filled even after failures.

mod boot_results;
mod stage;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Result, bail};
use results::Results;

use boot_results::{Boot, BootResults};
use stage::Stage;

use crate::boot::{Lacks, Ready, Show, Turns};
use crate::completeness::Completeness;
use crate::critical::build_if_needed;
use crate::job::{Job, Variant};
use crate::strict::BrokenRule;
use crate::traces::TracesOfBoot;
use crate::verdict::{Failure, judge_results, unwritten};
use reporting::{compare, report};
use shell::folder::Folder;
use shell::log::Log;
use shell::partial_files::Scratch;
use shell::terminal::step;
use shell::timings::{self, Part};
use shell::{interrupt, side_by_side};

#[derive(Debug)]
pub struct Session {
    /// Results of all repetitions, with only the cells of complete blocks.
    pub results: Results,
    /// Why not everything was measured.
    pub failure: Option<Failure>,
    /// Violations of the architecture's rules, if they were watched.
    pub found: Vec<BrokenRule>,
    /// The instructions of each boot's samples, if they were requested.
    pub traces: Vec<TracesOfBoot>,
    /// The complete output of the console.
    pub console: String,
    /// How the guest ended the last boot, if it reported no exit status.
    pub ended: Option<String>,
    /// The folder, for people.
    pub place: String,
    /// The console's log, for people.
    pub log: String,
}

/// Builds the images, boots once for each variant, and repeats these boots the requested number of times.
pub fn run(job: &Job, folder: Folder, show: Show) -> Result<Session> {
    let ready = Ready::make_available(job, build_if_needed)?;
    let mut run = Run::new(job, &ready, &folder, show, None)?;
    let failure = run.run_all()?;
    run.close(failure, folder)
}

/// Like [`run`], for two named jobs whose boots alternate, so that slow changes affect both jobs alike. A failure that
/// ends one job also ends the other.
pub fn alternately(
    names: [&str; 2],
    jobs: [&Job; 2],
    folders: [Folder; 2],
    show: Show,
) -> Result<[Session; 2]> {
    let ready = |n: usize| Ready::make_available(jobs[n], build_if_needed);
    let ready = [ready(0)?, ready(1)?];
    let run = |n: usize| Run::new(jobs[n], &ready[n], &folders[n], show, Some(names[n]));
    let mut runs = [run(0)?, run(1)?];
    for run in &mut runs {
        run.at_a_time = NonZeroUsize::new(run.at_a_time.get() / 2).unwrap_or(NonZeroUsize::MIN);
    }
    let mut failed = [None, None];
    'all: for number in 1..=jobs[0].repeat {
        if number == 2 {
            let [a, b] = runs.each_ref().map(|run| run.came.first_results());
            for line in compare::first_look(a, b, jobs[0].repeat) {
                step!("{line}");
            }
        }
        // Boots of both jobs run in parallel if several emulators may run. If values are times, only one emulator may.
        if jobs[0].jobs.get() > 1 {
            let [a, b] = &mut runs;
            let [a, b] = run_both(|| a.run_repetition(number), || b.run_repetition(number));
            failed = [a?, b?];
            if failed.iter().any(Option::is_some) {
                break 'all;
            }
            continue;
        }
        let turns = if number.is_multiple_of(2) {
            [1, 0]
        } else {
            [0, 1]
        };
        for n in turns {
            failed[n] = runs[n].run_repetition(number)?;
            if failed[n].is_some() {
                break 'all;
            }
        }
    }
    let ([a, b], [of_a, of_b], [to_a, to_b]) = (runs, failed, folders);
    Ok([a.close(of_a, to_a)?, b.close(of_b, to_b)?])
}

/// Calls both functions at the same time.
fn run_both<T: Send>(one: impl FnOnce() -> T + Send, other: impl FnOnce() -> T + Send) -> [T; 2] {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        [
            one,
            other.join().unwrap_or_else(|panic| resume_unwind(panic)),
        ]
    })
}

/// Runs `job`, and returns its results. Does not keep the job's folder.
pub fn measure(job: &Job) -> Result<Results> {
    let place = Scratch::new()?;
    let folder = Folder::claim(Some(&place.path().join("run")), &job.board().name)?;
    let session = run(job, folder, Show::Dumps)?;
    match session.failure {
        Some(failure) => bail!("{}", failure.told()),
        None => Ok(session.results),
    }
}

/// The boots of a job.
struct Run<'j> {
    stage: Stage<'j>,
    log: Log,
    came: BootResults<'j>,
    /// How many emulators run at the same time.
    at_a_time: NonZeroUsize,
}

impl<'j> Run<'j> {
    /// Creates the state before the first boot.
    fn new(
        job: &'j Job,
        (Ready { emulator, built }, lacks): &'j (Ready, Lacks),
        folder: &Folder,
        show: Show,
        name: Option<&'j str>,
    ) -> Result<Self> {
        let came = BootResults::new(job, emulator, built, lacks)?;
        let stage = Stage {
            job,
            name,
            emulator,
            built,
            show,
        };
        let log = folder.log()?;
        let at_a_time = job.jobs;
        Ok(Self {
            stage,
            log,
            came,
            at_a_time,
        })
    }

    /// Runs all repetitions, or stops at a failure. Returns an error only if there are no results to keep.
    fn run_all(&mut self) -> Result<Option<Failure>> {
        for number in 1..=self.stage.job.repeat {
            if let Some(failure) = self.run_repetition(number)? {
                return Ok(Some(failure));
            }
        }
        Ok(None)
    }

    /// Runs one repetition, and keeps its results.
    fn run_repetition(&mut self, number: usize) -> Result<Option<Failure>> {
        self.came.begin_repetition();
        let failure = self.boot_all(number);
        self.came.keep_repetition(number, failure)
    }

    /// Boots once for each variant, with as many boots in parallel as the job allows. Stops at a failure.
    fn boot_all(&mut self, number: usize) -> Result<Option<Failure>> {
        let Self {
            stage,
            log,
            came,
            at_a_time,
        } = self;
        let stage = *stage;
        let variants = stage.job.variants_of(number)?;
        let turns = Turns::new(log);
        let failed = Mutex::new(came.failed.keys().copied().collect::<BTreeSet<_>>());
        let mut ended = Ok(None);
        side_by_side::in_order(
            variants,
            *at_a_time,
            |place, variant: Variant| {
                if lock(&failed).contains(&variant.under) {
                    return Boot::Skipped;
                }
                if let Some(signal) = interrupt::signal() {
                    return Boot::Interrupted(signal);
                }
                let log = turns.writer(place);
                Boot::Booted(
                    variant.under,
                    stage.boot(variant, number, log).map(Box::new),
                )
            },
            |boot| {
                // This cannot fail: see `Log`.
                let _ = turns.next();
                let this = timings::time_part(Part::Records, || came.take_boot(boot));
                lock(&failed).extend(came.failed.keys());
                if matches!(this, Ok(None)) {
                    return ControlFlow::Continue(());
                }
                // The first boot that ends the repetition determines the reason.
                if matches!(ended, Ok(None)) {
                    ended = this;
                }
                ControlFlow::Break(())
            },
        );
        if matches!(ended, Ok(None)) {
            for (under, failure) in &came.failed {
                came.results.lack(*under, &failure.why);
            }
        }
        ended
    }

    fn close(self, failure: Option<Failure>, mut folder: Folder) -> Result<Session> {
        let Self { log, mut came, .. } = self;
        let failure = failure.or_else(|| came.failed.pop_first().map(|(_, failure)| failure));
        came.kept.write(&mut folder);
        let all = came.join_repetitions();
        if all.has_cells() {
            timings::time_part(Part::Written, || {
                folder.write("results.json", &all.to_json()?);
                folder.write("results.csv", &results::csv(&all)?);
                let page = report::of_run(&folder.name(), &all, came.kept.commands());
                folder.write(report::PAGE, &page);
                anyhow::Ok(())
            })?;
        }
        let console = log.text()?;
        let closed = folder.close(Some(&log));
        let log = log.place(&closed.place);
        let failure = failure
            .or_else(|| judge_results(&all, came.job.metric))
            .or_else(|| closed.lacks.map(unwritten))
            .map(|failure| add_cell_count(failure, came.job, &all));
        Ok(Session {
            failure,
            results: all,
            found: came.found,
            traces: came.traces,
            console,
            ended: came.ended,
            place: closed.place,
            log,
        })
    }
}

/// Adds to a failure the number of cells that were measured before it.
fn add_cell_count(mut failure: Failure, job: &Job, results: &Results) -> Failure {
    if let Some(cells) = Completeness::of(job, results) {
        failure.why += &format!("; {cells}");
    }
    failure
}

/// Locks `mutex`. Ignores poisoning: a panic in a boot ends the program, so nothing reads a value that the panic left
/// incomplete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
