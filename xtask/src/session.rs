// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boots of a job, and the folder that they leave, whatever happens.

use std::env;

use abi::Ended;
use anyhow::Result;
use plan::Under;
use results::Results;

use crate::boot::{self, Ending, Outcome, Show, Watch};
use crate::cli::Metric;
use crate::completeness::Completeness;
use crate::console::Console;
use crate::critical::{self, Watcher};
use crate::emulator::Emulator;
use crate::folder::Folder;
use crate::images::{self, Built};
use crate::job::Job;
use crate::log::Log;
use crate::partial::Scratch;
use crate::progress::{Progress, Speed};
use crate::symbols::{self, Symbols};
use crate::terminal::{self, note};
use crate::verdict::{Failure, judge, judge_reset, judge_results, unwritten};
use crate::{interrupt, launch, memory, report, toolchain};

/// How many of its last lines are shown of an emulator that died.
const SAID_SHOWN: usize = 10;

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
    // From here on: what was begun, a folder above all, is to be cleaned up.
    interrupt::catch()?;
    let emulator = interrupt::or(Emulator::ensure(job))?;
    let built = interrupt::or(images::build(&job.board().name, job.load.packed()))?;
    memory::check(job, &built)?;
    let mut boots = Boots {
        job,
        emulator: &emulator,
        built: &built,
        log: folder.log()?,
        commands: heading(&emulator.shown()),
        results: Results {
            build: toolchain::build(),
            ..Results::new(&job.board().name, &job.model, Some(emulator.describe(job)))
        },
        dump: String::new(),
        survey: String::new(),
        said: String::new(),
        show,
        ended: None,
    };
    let failure = boots.all()?;
    boots.close(failure, folder)
}

/// The boots so far.
struct Boots<'j> {
    job: &'j Job,
    emulator: &'j Emulator,
    built: &'j Built,
    log: Log,
    commands: String,
    results: Results,
    dump: String,
    survey: String,
    /// What the emulators said.
    said: String,
    show: Show,
    ended: Option<Ended>,
}

impl Boots<'_> {
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
        let place = Scratch::new()?;
        let mut command = self
            .emulator
            .command(job, under, self.built, place.path())?;
        let watcher = Watcher::attach(&mut command, job, under, self.built, place.path());
        self.commands += &format!("\n# under {under}\n{}\n", launch::typed(&command));
        let watch = Watch {
            place: place.path(),
            limits: job.limits,
            disturb: job.disturb,
            show: self.show,
            progress: self.progress(under),
        };
        let console = Console::new(symbols(job, under, self.built));
        let mut outcome = boot::boot(command, console, &mut self.log, watch)?;
        if let Some(done) = outcome.disturbed {
            self.commands += &format!("# disturbed: {done}\n");
        }
        let records = std::mem::take(&mut outcome.console.collector).finish();
        self.results.add(Some(under), &records);
        let samples = match watcher {
            Ok(watcher) => watcher.map(|watcher| watcher.samples()),
            Err(error) => Some(Err(format!("{error:#}"))),
        };
        if let Some(samples) = samples {
            critical::add(&mut self.results, under, samples);
        }
        self.keep_dump(&outcome);
        self.keep_said(under, &outcome);
        for line in &outcome.console.survey {
            self.survey += line;
            self.survey.push('\n');
        }
        // Somebody else's guest need not know our records.
        let owes_records = job.load.guest.is_none() || records.begun;
        self.ended = outcome.console.ended;
        let failure = judge(&outcome, under, owes_records && !records.ended);
        Ok(match job.expect_reset {
            true => judge_reset(&outcome, under, failure),
            false => failure,
        })
    }

    /// Keeps what the emulator itself said, and shows the end of it if that is all
    /// that there is to say why it died.
    fn keep_said(&mut self, under: Under, outcome: &Outcome) {
        if outcome.said.is_empty() {
            return;
        }
        self.said += &format!("# under {under}\n{}\n", outcome.said.join("\n"));
        if self.show >= Show::Dumps && matches!(outcome.ending, Ending::Died(..)) {
            let shown = outcome.said.len().saturating_sub(SAID_SHOWN);
            let last = outcome.said[shown..].iter();
            last.for_each(|line| note!("emulator: {}", terminal::plain(line)));
        }
    }

    /// What tells how far a boot is; of its plan too, where somebody looks on.
    fn progress(&self, under: Under) -> Progress {
        let job = self.job;
        let progress = Progress::new(format!("{} under {under}", job.board().name));
        if self.show == Show::Nothing {
            return progress;
        }
        progress.with_plan(match (job.board().gem5.is_some(), job.metric) {
            (true, _) | (_, Metric::Cycles) => Speed::Unknown,
            (false, Metric::Insns) => Speed::Instructions,
            (false, Metric::Time) => Speed::Time,
        })
    }

    fn keep_dump(&mut self, outcome: &Outcome) {
        for line in outcome.console.crash.iter().chain(&outcome.registers) {
            self.dump += line;
            self.dump.push('\n');
        }
        if self.show >= Show::Dumps {
            outcome.registers.iter().for_each(|line| note!("{line}"));
        }
    }

    /// A failure with how much there is in spite of it.
    fn with_cells(&self, mut failure: Failure) -> Failure {
        if let Some(cells) = Completeness::of(self.job, &self.results) {
            failure.why += &format!("; {cells}");
        }
        failure
    }

    fn close(self, failure: Option<Failure>, mut folder: Folder) -> Result<Session> {
        folder.write("command.txt", &self.commands);
        for (name, text) in [
            ("dump.txt", &self.dump),
            ("survey.txt", &self.survey),
            ("emulator.log", &self.said),
        ] {
            if !text.is_empty() {
                folder.write(name, text);
            }
        }
        if self.results.has_cells() {
            folder.write("results.json", &self.results.to_json()?);
            folder.write("results.csv", &results::csv(&self.results)?);
            let page = report::of_run(&folder.name(), &self.results, &self.commands)?;
            folder.write(report::PAGE, &page);
        }
        let console = self.log.text()?;
        let closed = folder.close(Some(&self.log));
        let log = self.log.place(&closed.place);
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

/// The names of functions in the images of a boot.
pub fn symbols(job: &Job, under: Under, built: &Built) -> Symbols {
    let mut symbols = Symbols::default();
    let base = job.board().image_base;
    if under == Under::Rouse {
        symbols.add(symbols::HYPERVISOR, &built.hypervisor, base);
    }
    if let Some(guest) = &built.guest {
        symbols.add(symbols::GUEST, guest, base.filter(|_| under == Under::None));
    }
    symbols
}

/// What command.txt begins with: how this was started, and by what.
pub fn heading(emulator: &str) -> String {
    let words: Vec<String> = env::args()
        .skip(1)
        .map(|word| launch::quoted(&word))
        .collect();
    let commit = toolchain::output("git", &["describe", "--always", "--dirty"]);
    let commit = commit.map_or("unknown".into(), |commit| commit.trim().to_owned());
    let rustc = toolchain::rustc_version().unwrap_or_else(|| "rustc unknown".into());
    format!(
        "cargo xtask {}\n\n# rouse {} (commit {commit})\n# {rustc}\n# {emulator}\n",
        words.join(" "),
        env!("CARGO_PKG_VERSION"),
    )
}
