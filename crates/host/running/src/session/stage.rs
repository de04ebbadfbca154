// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot of a job, and the data that all boots of the job share.

use std::io::Write;

use anyhow::Result;
use critical::Samples;

use crate::boot::{Boots, Launch, Outcome, Show, TextFiles};
use crate::critical::{Watched, Watcher};
use crate::emulator::Emulator;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::strict::{BrokenRule, Checker};
use crate::traces::TracesOfBoot;
use shell::progress::Progress;

/// Data that all boots share.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'j> {
    pub job: &'j Job,
    /// Name of the job, if it is one of two.
    pub name: Option<&'j str>,
    pub emulator: &'j Emulator,
    pub built: &'j Built,
    pub show: Show,
}

/// Results of a boot.
#[derive(Debug)]
pub struct Left {
    pub variant: Variant,
    pub outcome: Outcome,
    /// Violations of the architecture's rules, if they are watched.
    pub found: Vec<BrokenRule>,
    /// The observed samples, or why they are missing. `None` if samples are not observed.
    pub watched: Option<Result<Samples, String>>,
    /// The instructions of samples, if they were requested.
    pub traces: Option<Result<TracesOfBoot, String>>,
    pub kept: TextFiles,
}

impl Stage<'_> {
    /// Boots `variant` for repetition `number`. Writes the console's output to `log`.
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
            progress: self.progress(&title, variant)?,
            title,
            recorder: watching
                .map(Watcher::recorder)
                .or(checker.as_ref().map(Checker::recorder)),
        })?;
        let found = match &checker {
            Some(checker) => checker.broken_rules(&outcome.console.symbols)?,
            None => Vec::new(),
        };
        let Watched { samples, traces } = match watcher {
            Ok(watcher) => watcher.map(Watcher::end).unwrap_or_default(),
            Err(error) => Watched {
                samples: Some(Err(format!("{error:#}"))),
                traces: None,
            },
        };
        let traces = traces.map(|traces| {
            let of_boot = TracesOfBoot::of(job, variant, self.built, traces?);
            of_boot.map_err(|error| format!("{error:#}"))
        });
        Ok(Left {
            variant,
            outcome,
            found,
            watched: samples,
            traces,
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

    /// Returns a progress display, with the boot's cells and their time.
    fn progress(self, title: &str, variant: Variant) -> Result<Progress> {
        let progress = Progress::new(format!("{} {title}", self.job.board().name));
        if self.show == Show::Nothing || !self.job.measures() {
            return Ok(progress);
        }
        Ok(progress.with_plan(self.job.planned(variant)?))
    }
}
