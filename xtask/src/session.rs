// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boots of a job, and the folder that they leave, whatever happens.

use abi::Ended;
use anyhow::{Result, bail};
use plan::Under;
use results::Results;

use crate::board::Machine;
use crate::boot::{Boots, Launch, Ready, Show};
use crate::cli::Metric;
use crate::completeness::Completeness;
use crate::folder::Folder;
use crate::job::Job;
use crate::log::Log;
use crate::partial::Scratch;
use crate::progress::{Progress, Speed};
use crate::verdict::{Failure, judge, judge_reset, judge_results, unwritten};
use crate::{interrupt, report, toolchain};

/// What came of a job.
#[derive(Debug)]
pub struct Session {
    /// What was measured; cells of complete blocks only.
    pub results: Results,
    /// What did not happen of what was asked for.
    pub failure: Option<Failure>,
    /// Everything that the console said.
    pub console: String,
    /// How the guest of the last boot ended it, where it gave no exit status.
    pub ended: Option<Ended>,
    /// The folder, for people.
    pub place: String,
    /// The console's log, for people.
    pub log: String,
}

/// Builds, then boots once for each `under`.
pub fn run(job: &Job, folder: Folder, show: Show) -> Result<Session> {
    let Ready { emulator, built } = Ready::make(job)?;
    let described = Some(emulator.describe(job));
    let mut run = Run {
        job,
        boots: Boots::new(&emulator, &built, show, folder.log()?),
        results: Results {
            build: toolchain::build(),
            ..Results::new(&job.board().name, &job.model, described)
        },
        show,
        ended: None,
    };
    let failure = run.all()?;
    run.close(failure, folder)
}

/// What `job` measures, where nobody wants its folder.
pub fn measure(job: &Job) -> Result<Results> {
    let place = Scratch::new()?;
    let folder = Folder::claim(Some(&place.path().join("run")), &job.board().name)?;
    let session = run(job, folder, Show::Dumps)?;
    match session.failure {
        Some(failure) => bail!("{}", failure.told()),
        None => Ok(session.results),
    }
}

/// What the boots so far came to.
struct Run<'j> {
    job: &'j Job,
    boots: Boots<'j, Log>,
    results: Results,
    show: Show,
    ended: Option<Ended>,
}

impl Run<'_> {
    /// Boots until something is wrong; an error only if there is nothing to keep.
    fn all(&mut self) -> Result<Option<Failure>> {
        for &under in &self.job.unders {
            if let Some(signal) = interrupt::signal() {
                return Ok(Some(Failure::interrupted(signal)));
            }
            match self.boot(under) {
                Ok(None) => {}
                Err(error) if self.results.has_cells() => {
                    return Ok(Some(Failure::broken(&error)));
                }
                failed => return failed,
            }
        }
        Ok(None)
    }

    fn boot(&mut self, under: Under) -> Result<Option<Failure>> {
        let job = self.job;
        let mut outcome = self.boots.boot(Launch {
            job,
            under,
            title: format!("under {under}"),
            progress: self.progress(under),
            recorder: None,
        })?;
        let records = std::mem::take(&mut outcome.console.collector).finish();
        self.results.add(Some(under), &records);
        // Somebody else's guest need not know our records.
        let owes_records = job.load.guest.is_none() || records.begun;
        self.ended = outcome.console.ended;
        let failure = judge(&outcome, under, owes_records && !records.ended);
        Ok(match job.expect_reset {
            true => judge_reset(&outcome, under, failure),
            false => failure,
        })
    }

    /// What tells how far a boot is; of its plan too, where somebody looks on.
    fn progress(&self, under: Under) -> Progress {
        let job = self.job;
        let progress = Progress::new(format!("{} under {under}", job.board().name));
        if self.show == Show::Nothing {
            return progress;
        }
        progress.with_plan(match (&job.board().machine, job.metric) {
            (Machine::Gem5(_), _) | (_, Metric::Cycles) => Speed::Unknown,
            (Machine::Qemu(_), Metric::Insns) => Speed::Instructions,
            (Machine::Qemu(_), Metric::Time) => Speed::Time,
        })
    }

    /// A failure with how much there is in spite of it.
    fn with_cells(&self, mut failure: Failure) -> Failure {
        if let Some(cells) = Completeness::of(self.job, &self.results) {
            failure.why += &format!("; {cells}");
        }
        failure
    }

    fn close(self, failure: Option<Failure>, mut folder: Folder) -> Result<Session> {
        self.boots.kept.write(&mut folder);
        if self.results.has_cells() {
            folder.write("results.json", &self.results.to_json()?);
            folder.write("results.csv", &results::csv(&self.results)?);
            let page = report::of_run(&folder.name(), &self.results, self.boots.kept.commands());
            folder.write(report::PAGE, &page);
        }
        let console = self.boots.log.text()?;
        let closed = folder.close(Some(&self.boots.log));
        let log = self.boots.log.place(&closed.place);
        let failure = failure
            .or_else(|| judge_results(&self.results, self.job.metric))
            .or_else(|| closed.lacks.map(unwritten))
            .map(|failure| self.with_cells(failure));
        Ok(Session {
            failure,
            results: self.results,
            console,
            ended: self.ended,
            place: closed.place,
            log,
        })
    }
}
