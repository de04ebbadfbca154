// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boots of a job, and the folder that they leave, whatever happens.

use std::env;
use std::fs::File;

use anyhow::Result;
use plan::Under;

use crate::boot::{self, Outcome, Show, Watch};
use crate::console::Console;
use crate::emulator::Emulator;
use crate::folder::Folder;
use crate::images::{self, Built};
use crate::job::Job;
use crate::progress::Progress;
use crate::results::{self, Results};
use crate::symbols::{self, Symbols};
use crate::verdict::{Failure, judge, judge_results};
use crate::{interrupt, launch, report, toolchain};

/// What came of a job.
#[derive(Debug)]
pub struct Session {
    /// What was measured; cells of complete blocks only.
    pub results: Results,
    /// What did not happen of what was asked for.
    pub failure: Option<Failure>,
    /// Everything that the console said.
    pub console: String,
    /// The folder, for people.
    pub place: String,
}

/// Builds, then boots once for each `under`.
pub fn run(job: &Job, folder: Folder, show: Show) -> Result<Session> {
    // From here on: what was begun, a folder above all, is to be cleaned up.
    interrupt::catch()?;
    let emulator = interrupt::or(Emulator::ensure(job))?;
    let built = interrupt::or(images::build(&job.board().name, job.load.guest.as_deref()))?;
    let mut boots = Boots {
        job,
        emulator: &emulator,
        built: &built,
        log: folder.create("serial.log")?,
        commands: heading(&emulator.shown()),
        results: Results::new(&job.board().name, &job.model, Some(emulator.describe(job))),
        dump: String::new(),
        survey: String::new(),
        show,
    };
    let mut failure = None;
    for &under in &job.unders {
        failure = boots.boot(under)?;
        if failure.is_some() {
            break;
        }
    }
    boots.close(failure, folder)
}

/// The boots so far.
struct Boots<'j> {
    job: &'j Job,
    emulator: &'j Emulator,
    built: &'j Built,
    log: File,
    commands: String,
    results: Results,
    dump: String,
    survey: String,
    show: Show,
}

impl Boots<'_> {
    fn boot(&mut self, under: Under) -> Result<Option<Failure>> {
        let job = self.job;
        let place = tempfile::tempdir()?;
        let command = self
            .emulator
            .command(job, under, self.built, place.path())?;
        self.commands += &format!("\n# under {under}\n{}\n", launch::typed(&command));
        let watch = Watch {
            place: place.path(),
            timeout: job.timeout,
            show: self.show,
            progress: Progress::new(format!("{} under {under}", job.board().name)),
        };
        let console = Console::new(symbols(job, under, self.built));
        let mut outcome = boot::boot(command, console, &mut self.log, watch)?;
        let records = std::mem::take(&mut outcome.console.collector).finish();
        self.results.add(Some(under), &records);
        self.keep_dump(&outcome);
        for line in &outcome.console.survey {
            self.survey += line;
            self.survey.push('\n');
        }
        // Somebody else's guest need not know our records.
        let owes_records = job.load.guest.is_none() || records.begun;
        Ok(judge(
            &outcome,
            under,
            job.timeout,
            owes_records && !records.ended,
        ))
    }

    fn keep_dump(&mut self, outcome: &Outcome) {
        for line in outcome.console.crash.iter().chain(&outcome.registers) {
            self.dump += line;
            self.dump.push('\n');
        }
        if self.show >= Show::Dumps {
            outcome
                .registers
                .iter()
                .for_each(|line| eprintln!("{line}"));
        }
    }

    fn close(self, failure: Option<Failure>, folder: Folder) -> Result<Session> {
        folder.write("command.txt", &self.commands)?;
        for (name, text) in [("dump.txt", &self.dump), ("survey.txt", &self.survey)] {
            if !text.is_empty() {
                folder.write(name, text)?;
            }
        }
        if self.results.has_cells() {
            folder.write("results.json", &self.results.to_json()?)?;
            folder.write("results.csv", &results::csv(&self.results)?)?;
            let page = report::of_run(&folder.name(), &self.results, &self.commands)?;
            folder.write(report::PAGE, &page)?;
        }
        let console = folder.read("serial.log")?;
        let place = folder.shown();
        folder.publish()?;
        Ok(Session {
            failure: failure.or_else(|| judge_results(&self.results, self.job.metric)),
            results: self.results,
            console,
            place,
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
