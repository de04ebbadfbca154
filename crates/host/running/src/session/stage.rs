// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts that all boots of a job share, and one of them.

use std::io::Write;

use anyhow::Result;
use critical::Samples;

use crate::board::EmulatedMachine;
use crate::boot::{Boots, Launch, Outcome, Show, TextFiles};
use crate::critical::Watcher;
use crate::emulator::Emulator;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::options::Metric;
use crate::strict::{BrokenRule, Checker};
use shell::progress::{Progress, Speed};

/// Parts that all boots share.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'j> {
    pub job: &'j Job,
    /// Name of the job, if it is one of two.
    pub name: Option<&'j str>,
    pub emulator: &'j Emulator,
    pub built: &'j Built,
    pub show: Show,
    /// Whether others may boot at the same time.
    pub beside: bool,
}

/// Results of a boot.
#[derive(Debug)]
pub struct Left {
    pub variant: Variant,
    pub outcome: Outcome,
    /// Violations of rules of the architecture, where they are watched.
    pub found: Vec<BrokenRule>,
    /// The samples that were looked at, where they are; or why not.
    pub watched: Option<Result<Samples, String>>,
    pub kept: TextFiles,
}

impl Stage<'_> {
    /// Boots for repetition `number`. Writes the console's output to `log`.
    pub fn boot(self, variant: Variant, number: usize, log: impl Write) -> Result<Left> {
        let Self { job, emulator, .. } = self;
        let watcher = Watcher::new(emulator, job, variant, self.built);
        let watching = watcher.as_ref().ok().and_then(Option::as_ref);
        let checker = match job.strict {
            true => Some(Checker::new(emulator)?),
            false => None,
        };
        let title = self.title(variant, number);
        let mut boots = Boots::part(emulator, self.built, self.show, log);
        let outcome = boots.boot(Launch {
            job,
            variant,
            progress: self.progress(&title),
            title,
            recorder: watching
                .map(Watcher::recorder)
                .or(checker.as_ref().map(Checker::recorder)),
        })?;
        let found = match &checker {
            Some(checker) => checker.found(&outcome.console.symbols)?,
            None => Vec::new(),
        };
        let watched = match &watcher {
            Ok(watcher) => watcher.as_ref().map(Watcher::samples),
            Err(error) => Some(Err(format!("{error:#}"))),
        };
        Ok(Left {
            variant,
            outcome,
            found,
            watched,
            kept: boots.kept,
        })
    }

    fn title(self, variant: Variant, number: usize) -> String {
        let mut title = variant.to_string();
        if !self.job.board().has_el2() {
            title = title.replacen("under rouse", "at EL1", 1);
        }
        if let Some(name) = self.name {
            title = format!("{name} {title}");
        }
        if self.job.repeat > 1 {
            title += &format!(", run {number} of {}", self.job.repeat);
        }
        title
    }

    /// Returns a progress display, with the time left if a terminal shows it.
    fn progress(self, title: &str) -> Progress {
        let job = self.job;
        let mut progress = Progress::new(format!("{} {title}", job.board().name));
        if self.beside {
            progress = progress.beside_others();
        }
        if self.show == Show::Nothing {
            return progress;
        }
        progress.with_plan(match (&job.board().machine, job.metric) {
            (EmulatedMachine::Gem5(_), _) | (_, Metric::Cycles) => Speed::Unknown,
            (EmulatedMachine::Qemu(_), Metric::Insns) => Speed::Instructions,
            (EmulatedMachine::Qemu(_), Metric::Time) => Speed::Time,
        })
    }
}
