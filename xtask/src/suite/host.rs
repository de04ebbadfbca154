// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of the host: those that Cargo knows, the model checks, and pages in a browser.

use std::fs::{self, File};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use super::ON_TARGET;
use super::pool::Task;
use crate::terminal::say;
use crate::{browser, pages as kinds, places, spent, toolchain};

/// How many of the last lines that Cargo said are shown of tests that failed: it stops at the
/// first program of tests with one.
const SHOWN: usize = 100;

/// A kind of tests.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    /// What this computer lacks to run them.
    lacks: fn() -> Option<String>,
    command: fn() -> Result<Command>,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "tests-of-the-host",
        lacks: || None,
        command: || Ok(host()),
    },
    Kind {
        name: "model-checks",
        lacks: || None,
        command: || Ok(models()),
    },
    Kind {
        name: "pages-in-a-browser",
        lacks: browser::lacks,
        command: pages,
    },
];

/// Runs the first of them in front of people, and meanwhile the others aside: what became of those is said at
/// the end.
pub fn aloud(filter: &str) -> Result<()> {
    let [first, others @ ..] = KINDS;
    let (status, others) = thread::scope(|scope| {
        let others = scope.spawn(|| others.map(|kind| (kind.name, kind.beside(filter))));
        let status = first.filtered(filter).map(|mut cargo| cargo.status());
        let others = others.join().unwrap_or_else(|panic| resume_unwind(panic));
        (status, others)
    });
    let well = status?.context("cargo can't be started")?.success();
    let mut failed = Vec::from_iter((!well).then_some(first.name));
    for (name, outcome) in others {
        match outcome {
            Ok(what) => say!("{name}: {what}"),
            Err(why) => {
                say!("{name}: FAILED, {why:#}");
                failed.push(name);
            }
        }
    }
    ensure!(
        failed.is_empty(),
        "{} failed; what cargo said is above",
        failed.join(", ")
    );
    Ok(())
}

/// The same beside others: what Cargo says goes to a file.
pub fn tasks(filter: &str) -> Vec<Task<'_>> {
    let kinds = KINDS.into_iter();
    let tasks = kinds.map(|kind| Task::new(kind.name, (kind.lacks)(), move || kind.aside(filter)));
    tasks.collect()
}

/// What Cargo said of them last.
pub fn said() -> Result<String> {
    let run = KINDS.iter().filter(|kind| (kind.lacks)().is_none());
    let texts = run.map(|kind| {
        let path = log(kind.name);
        fs::read_to_string(&path).with_context(|| places::shown(&path))
    });
    texts.collect()
}

/// Where what Cargo says goes.
fn log(name: &str) -> PathBuf {
    places::target().join("tests").join(format!("{name}.log"))
}

impl Kind {
    fn filtered(self, filter: &str) -> Result<Command> {
        let mut command = (self.command)()?;
        if !filter.is_empty() {
            command.arg(filter);
        }
        Ok(command)
    }

    /// Runs them aside if nothing is lacking; what became of them.
    fn beside(self, filter: &str) -> Result<String> {
        match (self.lacks)() {
            Some(why) => Ok(format!("skipped, {why}")),
            None => Ok(format!("ok{}", self.aside(filter)?)),
        }
    }

    /// Runs them; where what they say is.
    fn aside(self, filter: &str) -> Result<String> {
        let path = log(self.name);
        let place = || places::shown(&path);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).with_context(place)?;
        let log = File::create(&path).with_context(place)?;
        let mut command = self.filtered(filter)?;
        command.stdin(Stdio::null());
        command.stdout(log.try_clone().with_context(place)?);
        let status = spent::status(command.stderr(log));
        if status.context("cargo can't be started")?.success() {
            return Ok(format!(" ({})", place()));
        }
        let said = fs::read(&path).with_context(place)?;
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<_> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
        bail!("see {}, which ends with:\n{last}", place())
    }
}

/// Everything that Cargo tests.
fn host() -> Command {
    let mut cargo = Command::new(toolchain::cargo());
    cargo
        .current_dir(places::root())
        .arg("test")
        .args(packages());
    cargo
}

/// The packages that the host tests, in Cargo's words. What Cargo compiles of one package depends on
/// which others are named beside it.
pub fn packages() -> impl Iterator<Item = &'static str> {
    let others = ON_TARGET
        .into_iter()
        .flat_map(|package| ["--exclude", package]);
    ["--workspace"].into_iter().chain(others)
}

/// A page of each kind in a headless browser, and the plants that its checks find: tests that Cargo alone
/// ignores.
fn pages() -> Result<Command> {
    let program = browser::provide()?;
    let pages = kinds::make()?;
    let pages: Vec<String> = pages
        .iter()
        .map(|page| page.display().to_string())
        .collect();
    let mut cargo = host();
    cargo
        .env(browser::VARIABLE, program)
        .env("ROUSE_PAGES", pages.join("\n"));
    for file in ["pages", "plants", "tables"] {
        cargo.args(["--test", file]);
    }
    cargo.args(["--", "--ignored"]);
    Ok(cargo)
}

/// The model checks: tests built with loom's atomics, which need a build of their own. One at a time: each makes
/// and drops the stacks of its threads for every order that it tries, and two tests of one process wait for each
/// other in the kernel then, longer than both take.
fn models() -> Command {
    let mut cargo = Command::new(toolchain::cargo());
    cargo
        .current_dir(places::root())
        .env("RUSTFLAGS", "--cfg loom")
        .args(["test", "--release", "--package", "wait", "--test", "wakeup"])
        .args(["--package", "sched", "--lib"])
        .arg("--target-dir")
        .arg(places::inside("target/model"))
        .args(["--", "--test-threads=1"]);
    cargo
}
