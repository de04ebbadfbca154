// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test that boots: `tests/<name>.toml`.
//!
//! ```toml
//! about = "what it shows"
//!
//! [run]                       # options of `cargo xtask run`, without dashes
//! workload = "pingpong"
//! wait = ["wfi", "spin"]      # a list is joined with commas
//! iterations = 400            # a `guest` is a path in the workspace
//!
//! [expect]
//! status = "ok"               # or crash, hang, stopped-early, exit-status, damaged, bad-input
//! says = "text"               # part of the error
//! console = ["stage", "text"] # parts of the console's log, in this order
//! skipped = 0                 # how many cells may be skipped; any number if absent
//!
//! [[cell]]                    # every cell that `select` chooses, at least one
//! select = { wait = "wfi", trap = "wfi" }
//! exits = { wfi = 2, irq = [0, 1] }   # per sample: about this, or within these
//! no_exits = ["sgi"]
//! ipis = { sent = 2 }
//! wakes = { irq = 2 }
//! p50 = [100, 5000]
//! max_p50 = 5000
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use serde::Deserialize;

use super::expectation::{Expect, Expected};
use crate::board::one_line;
use crate::boot::Show;
use crate::cli::{self, Cli, RunArgs, Verb};
use crate::failure::{BadInput, is_bad_input};
use crate::folder::Folder;
use crate::job::Job;
use crate::{places, session};

/// A test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name: that of the file.
    #[serde(skip)]
    pub name: String,
    /// What it shows.
    #[expect(
        dead_code,
        reason = "for whoever reads the file; required so that it is written"
    )]
    about: String,
    /// Options of `run`.
    #[serde(default)]
    run: BTreeMap<String, toml::Value>,
    /// What must come of the run.
    #[serde(default)]
    expect: Expect,
    /// What must hold for cells.
    #[serde(default, rename = "cell")]
    cells: Vec<Expected>,
}

impl Case {
    /// Reads a test.
    pub fn load(path: &Path) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(path).with_context(|| places::shown(path))?;
        Self::parse(&name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let place = || BadInput::error(format!("tests/{name}.toml can't be used; correct it"));
        let parsed = toml::from_str(text).map_err(|error| anyhow!(one_line(&error)));
        let mut case: Self = parsed.with_context(place)?;
        case.name = name.into();
        case.expect.check().with_context(place)?;
        case.options().with_context(place)?;
        Ok(case)
    }

    /// The options as `run` would get them.
    fn options(&self) -> Result<RunArgs> {
        let mut line = vec!["cargo xtask".to_owned(), "run".into()];
        for (option, value) in &self.run {
            line.push(format!("--{}={}", option.replace('_', "-"), typed(value)));
        }
        match Cli::try_parse_from(line)
            .map_err(|error| anyhow!(cli::one_line(&error)))?
            .verb
        {
            Verb::Run(mut args) => {
                let guest = args.job.load.guest.take();
                args.job.load.guest = guest.map(|path| places::root().join(path));
                Ok(*args)
            }
            _ => bail!("only `run` can be tested"),
        }
    }

    /// Boots and compares; the folder with the logs for people.
    pub fn run(&self) -> Result<String> {
        let job = match Job::new(&self.options()?.job) {
            Err(error) if is_bad_input(&error) && self.expect.wants_bad_input() => {
                self.expect.says(&format!("{error:#}"))?;
                return Ok("refused".into());
            }
            other => other?,
        };
        let out = places::target().join("tests").join(&self.name);
        if out.exists() {
            fs::remove_dir_all(&out).with_context(|| places::shown(&out))?;
        }
        let session = session::run(
            &job,
            Folder::claim(Some(&out), &job.board().name)?,
            Show::Nothing,
        )?;
        let compared = self.expect.compare(&session).and_then(|()| {
            let mut cells = self.cells.iter();
            cells.try_for_each(|expected| expected.compare(&session.results))
        });
        compared.map_err(|error| anyhow!("{error:#}; see {}", session.place))?;
        Ok(session.place)
    }
}

/// A value as it is typed behind an option.
fn typed(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(values) => values.iter().map(typed).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_run() {
        let text = "about = 'x'\n[run]\nwait = ['wfi', 'wfe']\npoll_limit_us = 5\ncpus = 4";
        let args = Case::parse("x", text).unwrap().options().unwrap();
        assert_eq!(args.job.load.plan.wait.as_deref(), Some("wfi,wfe"));
        assert_eq!(args.job.load.plan.poll_limit_us.as_deref(), Some("5"));
        assert_eq!(args.job.cpus, Some(4));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, named) in [
            ("about = 'x'\n[run]\nwiat = 'wfi'", "--wiat"),
            ("about = 'x'\n[expect]\nstatus = 'fine'", "`fine`"),
            ("about = 'x'\nexpects = 1", "expects"),
            ("[run]", "about"),
        ] {
            let error = format!("{:#}", Case::parse("name", text).unwrap_err());
            assert!(
                error.contains("tests/name.toml") && error.contains(named),
                "{error}"
            );
        }
    }

    #[test]
    fn every_test_of_the_tree_can_be_read() {
        super::super::cases("").unwrap();
    }
}
