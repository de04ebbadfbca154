// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boots of a job, and the folder that they leave, whatever happens.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use jiff::Timestamp;
use plan::Under;
use results::merge::{self, Run as Measured};
use results::{Emulator, Results};

use crate::board::Machine;
use crate::boot::{Boots, Lacks, Launch, Ready, Show};
use crate::cli::Metric;
use crate::completeness::Completeness;
use crate::critical::Watcher;
use crate::folder::Folder;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::log::Log;
use crate::partial::Scratch;
use crate::progress::{Progress, Speed};
use crate::strict::{Checker, Found};
use crate::terminal::note;
use crate::verdict::{Failure, judge, judge_reset, judge_results, unwritten};
use crate::{interrupt, report, toolchain};

/// What came of a job.
#[derive(Debug)]
pub struct Session {
    /// What was measured, in all repetitions; cells of complete blocks only.
    pub results: Results,
    /// What did not happen of what was asked for.
    pub failure: Option<Failure>,
    /// What broke rules of the architecture, where they were watched.
    pub found: Vec<Found>,
    /// Everything that the console said.
    pub console: String,
    /// How the guest of the last boot ended it, where it gave no exit status.
    pub ended: Option<String>,
    /// The folder, for people.
    pub place: String,
    /// The console's log, for people.
    pub log: String,
}

/// Builds, then boots once for each variant, and all of that as often as it is to be repeated.
pub fn run(job: &Job, folder: Folder, show: Show) -> Result<Session> {
    let ready = Ready::for_some(job)?;
    let mut run = Run::new(job, &ready, &folder, show, None)?;
    let failure = run.all()?;
    run.close(failure, folder)
}

/// The same for two jobs with names, by turns, so that what changes meanwhile meets both alike.
/// What ends one ends the other.
pub fn alternately(
    names: [&str; 2],
    jobs: [&Job; 2],
    folders: [Folder; 2],
    show: Show,
) -> Result<[Session; 2]> {
    let ready = [Ready::for_some(jobs[0])?, Ready::for_some(jobs[1])?];
    let run = |n: usize| Run::new(jobs[n], &ready[n], &folders[n], show, Some(names[n]));
    let mut runs = [run(0)?, run(1)?];
    let mut failed = [None, None];
    'all: for number in 1..=jobs[0].repeat {
        let turns = if number.is_multiple_of(2) {
            [1, 0]
        } else {
            [0, 1]
        };
        for n in turns {
            failed[n] = runs[n].repetition(number)?;
            if failed[n].is_some() {
                break 'all;
            }
        }
    }
    let ([a, b], [of_a, of_b], [to_a, to_b]) = (runs, failed, folders);
    Ok([a.close(of_a, to_a)?, b.close(of_b, to_b)?])
}

/// What is known of `job` before its first boot.
fn nothing(job: &Job, emulator: Option<Emulator>, built: &Built) -> Results {
    let mut results = Results {
        build: toolchain::build(),
        ..Results::new(&job.board().name, &job.model, emulator)
    };
    let unders = job.unders.iter();
    let below = unders.filter_map(|under| Some((under.to_string(), built.below(*under)?.into())));
    results.machine.below = below.collect();
    results
}

/// Runs `job` and returns its results; its folder is not kept.
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
    /// What it is called, where it is one of two.
    name: Option<&'j str>,
    boots: Boots<'j, Log>,
    /// The release of the kernel that is to be measured, where that is known.
    kernel: Option<String>,
    /// What is known before the first boot.
    nothing: Results,
    /// Hypervisors of others that are missing, or failed, and are not tried again.
    failed: BTreeMap<Under, Failure>,
    /// What this repetition has measured.
    results: Results,
    /// What those before have.
    done: Vec<Measured>,
    show: Show,
    found: Vec<Found>,
    ended: Option<String>,
}

impl<'j> Run<'j> {
    /// Before the first boot.
    fn new(
        job: &'j Job,
        (Ready { emulator, built }, lacks): &'j (Ready, Lacks),
        folder: &Folder,
        show: Show,
        name: Option<&'j str>,
    ) -> Result<Self> {
        let described = Some(emulator.describe(job));
        let mut run = Self {
            job,
            name,
            kernel: job.load.kernel(),
            boots: Boots::new(emulator, built, show, folder.log()?),
            nothing: nothing(job, described, built),
            failed: BTreeMap::new(),
            results: Results::default(),
            done: Vec::new(),
            show,
            found: Vec::new(),
            ended: None,
        };
        for (under, why) in lacks {
            let failure = Failure::lacking(why);
            // One reason may be that of several.
            if run.failed.values().all(|other| *other != failure) {
                note!("{}", failure.why);
            }
            run.failed.insert(*under, failure);
        }
        Ok(run)
    }

    /// Repeats until something is wrong; an error only if there is nothing to keep.
    fn all(&mut self) -> Result<Option<Failure>> {
        for number in 1..=self.job.repeat {
            if let Some(failure) = self.repetition(number)? {
                return Ok(Some(failure));
            }
        }
        Ok(None)
    }

    /// Does everything once more, and keeps what was measured.
    fn repetition(&mut self, number: usize) -> Result<Option<Failure>> {
        self.results = Results {
            began: began(),
            ..self.nothing.clone()
        };
        let failure = self.once(number);
        if let Some(watts) = &self.job.watts {
            self.results.model_energy(watts);
        }
        let kept = !self.done.is_empty();
        // Of a repetition that measured nothing there is nothing to keep, unless it is the only one.
        if self.results.has_cells() || !kept {
            self.done.push(Measured {
                label: format!("run {number}"),
                results: std::mem::take(&mut self.results),
                commands: Vec::new(),
            });
        }
        match failure {
            Err(error) if kept => Ok(Some(Failure::broken(&error))),
            failed => failed,
        }
    }

    /// Boots once for each variant, until something is wrong.
    fn once(&mut self, number: usize) -> Result<Option<Failure>> {
        let mut variants = self.job.variants()?;
        // By turns, A B B A: what changes meanwhile meets both alike.
        if number.is_multiple_of(2) {
            variants.reverse();
        }
        for mut variant in variants {
            variant.seed = number as u64;
            if self.failed.contains_key(&variant.under) {
                continue;
            }
            if let Some(signal) = interrupt::signal() {
                return Ok(Some(Failure::interrupted(signal)));
            }
            match self.boot(variant, number) {
                Ok(None) => {}
                // What another hypervisor fails at says nothing of the others.
                Ok(Some(failure)) if variant.under.is_other() && !failure.ends_all() => {
                    self.failed.insert(variant.under, failure);
                }
                Err(error) if self.results.has_cells() => {
                    return Ok(Some(Failure::broken(&error)));
                }
                failed => return failed,
            }
        }
        for (under, failure) in &self.failed {
            self.results.lack(*under, &failure.why);
        }
        Ok(None)
    }

    fn boot(&mut self, variant: Variant, number: usize) -> Result<Option<Failure>> {
        let job = self.job;
        let under = variant.under;
        let mut title = variant.to_string();
        if let Some(name) = self.name {
            title = format!("{name} {title}");
        }
        if job.repeat > 1 {
            title += &format!(", run {number} of {}", job.repeat);
        }
        let watcher = Watcher::new(self.boots.emulator, job, variant, self.boots.built);
        let watching = watcher.as_ref().ok().and_then(Option::as_ref);
        let checker = match job.strict {
            true => Some(Checker::new(self.boots.emulator)?),
            false => None,
        };
        let mut outcome = self.boots.boot(Launch {
            job,
            variant,
            progress: self.progress(&title),
            title,
            recorder: watching
                .map(Watcher::recorder)
                .or(checker.as_ref().map(Checker::recorder)),
        })?;
        if let Some(checker) = &checker {
            self.found.extend(checker.found(&outcome.console.symbols)?);
        }
        let watched = match &watcher {
            Ok(watcher) => watcher.as_ref().map(Watcher::samples),
            Err(error) => Some(Err(format!("{error:#}"))),
        };
        let records = std::mem::take(&mut outcome.console.collector).finish();
        self.results.add(Some(under), &records);
        let ran = records.machine.get("atomics");
        let other = ran.and_then(|ran| job.other_image(variant, ran));
        // It was the other image that was watched.
        if let Some(watched) = watched.filter(|_| other.is_none()) {
            self.results
                .add_samples(under, variant.choice.atomics, watched);
        }
        // Another kernel need not know our records.
        let owes_records = job.load.guest.is_none() || job.load.linux() || records.begun;
        self.ended = outcome.ended();
        let failure = judge(&outcome, under, owes_records && !records.ended)
            .or_else(|| other.map(|other| Failure::broken(&anyhow!(other))))
            .or_else(|| self.other_kernel(under, records.features.get("linux")?));
        let silent = job.load.linux() && !records.begun;
        let failure = failure.map(|failure| {
            if silent {
                failure.of_silent_linux()
            } else {
                failure
            }
        });
        Ok(match job.expect_reset {
            true => judge_reset(&outcome, under, failure),
            false => failure,
        })
    }

    /// What is wrong if it was another kernel than the one asked for that `ran`.
    fn other_kernel(&self, under: Under, ran: &str) -> Option<Failure> {
        let asked = self.kernel.as_ref().filter(|asked| *asked != ran)?;
        let why = format!("under {under}: Linux {ran} was measured, and not {asked}");
        Some(Failure::broken(&anyhow!(why)))
    }

    /// Shows how far a boot is; with an estimate, if the terminal shows anything of it.
    fn progress(&self, title: &str) -> Progress {
        let job = self.job;
        let progress = Progress::new(format!("{} {title}", job.board().name));
        if self.show == Show::Nothing {
            return progress;
        }
        progress.with_plan(match (&job.board().machine, job.metric) {
            (Machine::Gem5(_), _) | (_, Metric::Cycles) => Speed::Unknown,
            (Machine::Qemu(_), Metric::Insns) => Speed::Instructions,
            (Machine::Qemu(_), Metric::Time) => Speed::Time,
        })
    }

    /// All repetitions as one, which says which are missing.
    fn together(&self) -> Results {
        let mut all = merge::into_one(&self.done);
        let of = self.job.repeat;
        if self.done.len() < of && all.has_cells() {
            all.incomplete = true;
            all.missing.push(format!(
                "{} of {of} runs without any cell",
                of - self.done.len()
            ));
        }
        all
    }

    fn close(mut self, failure: Option<Failure>, mut folder: Folder) -> Result<Session> {
        let failure = failure.or_else(|| self.failed.pop_first().map(|(_, failure)| failure));
        self.boots.kept.write(&mut folder);
        let all = self.together();
        if all.has_cells() {
            folder.write("results.json", &all.to_json()?);
            folder.write("results.csv", &results::csv(&all)?);
            let page = report::of_run(&folder.name(), &all, self.boots.kept.commands());
            folder.write(report::PAGE, &page);
        }
        let console = self.boots.log.text()?;
        let closed = folder.close(Some(&self.boots.log));
        let log = self.boots.log.place(&closed.place);
        let failure = failure
            .or_else(|| judge_results(&all, self.job.metric))
            .or_else(|| closed.lacks.map(unwritten))
            .map(|failure| with_cells(failure, self.job, &all));
        Ok(Session {
            failure,
            results: all,
            found: self.found,
            console,
            ended: self.ended,
            place: closed.place,
            log,
        })
    }
}

/// A failure with how much there is in spite of it.
fn with_cells(mut failure: Failure, job: &Job, results: &Results) -> Failure {
    if let Some(cells) = Completeness::of(job, results) {
        failure.why += &format!("; {cells}");
    }
    failure
}

/// This moment, in a form that sorts as text does.
fn began() -> String {
    Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
}
