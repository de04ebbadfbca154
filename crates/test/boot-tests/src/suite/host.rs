// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of the host: Cargo's tests, the model checks, and pages in a browser.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use super::ON_TARGET;
use super::pass_cache::{Given, Passed};
use super::pool::{self, Task};
use providing::{browser, toolchain};
use publishing::pages as kinds;
use shell::terminal::print_lines;
use shell::{places, processor_time};

/// How many of the last lines of Cargo's output are shown of tests that failed: it stops at the first program of tests
/// with a failure.
const SHOWN: usize = 100;
/// Replaces Cargo's output for tests that were not run.
const UNCHANGED: &str = "not run: they passed before, and nothing of them has changed\n";

/// A kind of tests.
#[derive(Clone, Copy, Debug)]
struct TestKind {
    name: &'static str,
    /// Names the thing that this computer lacks to run them.
    lacks: fn() -> Option<String>,
    tests: fn() -> Result<Tests>,
}

/// Tests, as arguments for Cargo.
#[derive(Debug, Default)]
struct Tests {
    environment: Vec<(&'static str, OsString)>,
    /// Arguments that select and configure the packages to compile.
    compiled: Vec<OsString>,
    /// Arguments of their programs.
    told: &'static [&'static str],
    /// Inputs besides their programs; `None` if these are not known.
    given: Option<Given>,
}

/// How tests are run.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Only tests with this in their names; all, if it is empty.
    pub filter: &'a str,
    /// Also run tests that can only end as they did before.
    pub again: bool,
}

const KINDS: [TestKind; 3] = [
    TestKind {
        name: "tests-of-the-host",
        lacks: || None,
        tests: || Ok(host()),
    },
    TestKind {
        name: "model-checks",
        lacks: || None,
        tests: || Ok(models()),
    },
    TestKind {
        name: "pages-in-a-browser",
        lacks: browser::lacks,
        tests: pages,
    },
];

/// Runs the first kind with its output shown, and meanwhile the others without. Prints the outcomes of those at the
/// end.
pub fn aloud(how: How) -> Result<()> {
    let [first, others @ ..] = KINDS;
    let (status, others) = thread::scope(|scope| {
        let others = scope.spawn(|| others.map(|kind| (kind.name, kind.beside(how))));
        let status = (first.tests)().map(|tests| tests.command(how.filter).status());
        let others = others.join().unwrap_or_else(|panic| resume_unwind(panic));
        (status, others)
    });
    let well = status?.with_context(toolchain::no_cargo)?.success();
    let mut failed = Vec::from_iter((!well).then_some(first.name));
    for (name, outcome) in others {
        match outcome {
            Ok(what) => print_lines(format!("{name}: {what}").lines()),
            Err(why) => {
                print_lines(format!("{name}: FAILED, {why:#}").lines());
                failed.push(name);
            }
        }
    }
    ensure!(
        failed.is_empty(),
        "{} failed; cargo's output is above",
        failed.join(", ")
    );
    Ok(())
}

/// Tasks that run them next to others: Cargo's output goes to a file.
pub fn tasks(how: How<'_>) -> Vec<Task<'_>> {
    let kinds = KINDS.into_iter();
    let tasks = kinds.map(|kind| Task::new(kind.name, (kind.lacks)(), move || kind.aside(how)));
    tasks.collect()
}

/// Returns Cargo's last output about them.
pub fn said() -> Result<String> {
    let run = KINDS.iter().filter(|kind| (kind.lacks)().is_none());
    let texts = run.map(|kind| {
        let path = log(kind.name);
        fs::read_to_string(&path).with_context(|| places::shown(&path))
    });
    texts.collect()
}

/// The file for Cargo's output.
fn log(name: &str) -> PathBuf {
    places::target().join("tests").join(format!("{name}.log"))
}

impl TestKind {
    /// Runs them aside if nothing is lacking. Returns the outcome.
    fn beside(self, how: How) -> Result<String> {
        match (self.lacks)() {
            Some(why) => Ok(format!("skipped, {why}")),
            None => Ok(format!("ok{}", self.aside(how)?)),
        }
    }

    /// Runs them, unless they can only end as they did before. Returns the place of their output.
    fn aside(self, how: How) -> Result<String> {
        let path = log(self.name);
        let place = || places::shown(&path);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).with_context(place)?;
        let tests = (self.tests)()?;
        let passed = match how.filter {
            "" => tests.passed(self.name)?,
            // Records only what ran without a filter.
            _ => None,
        };
        if !how.again && passed.as_ref().is_some_and(Passed::stands) {
            fs::write(&path, UNCHANGED).with_context(place)?;
            return Ok(
                ", they passed before and nothing of them has changed; --again runs them".into(),
            );
        }
        passed.as_ref().map_or(Ok(()), Passed::forget)?;
        self.run(&tests, how.filter, &path)?;
        if let Some(passed) = passed {
            // Files edited meanwhile may have been compiled and run.
            let now = tests.passed(self.name)?;
            now.filter(|now| *now == passed)
                .map_or(Ok(()), |now| now.keep())?;
        }
        Ok(format!(" ({})", place()))
    }

    /// Runs the tests, with their output in a file.
    fn run(self, tests: &Tests, filter: &str, path: &Path) -> Result<()> {
        let place = || places::shown(path);
        let log = File::create(path).with_context(place)?;
        let mut command = tests.command(filter);
        command.stdin(Stdio::null());
        command.stdout(log.try_clone().with_context(place)?);
        let status = processor_time::status(command.stderr(log));
        if status.with_context(toolchain::no_cargo)?.success() {
            return Ok(());
        }
        let said = fs::read(path).with_context(place)?;
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<_> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
        bail!("see {}, which ends with:\n{last}", place())
    }
}

impl Tests {
    /// Runs the tests with `filter` in their names.
    fn command(&self, filter: &str) -> Command {
        let mut cargo = self.cargo();
        if !filter.is_empty() {
            cargo.arg(filter);
        }
        cargo.arg("--").args(self.told);
        cargo
    }

    /// Returns the tests as they are now, if their inputs are known: compiles them.
    fn passed(&self, name: &str) -> Result<Option<Passed>> {
        let Some(given) = &self.given else {
            return Ok(None);
        };
        let mut cargo = self.cargo();
        let built = processor_time::output(cargo.args(["--no-run", "--message-format=json"]));
        let built = built.with_context(toolchain::no_cargo)?;
        let said = String::from_utf8_lossy(&built.stderr);
        ensure!(built.status.success(), "it can't be compiled:\n{said}");
        let programs = toolchain::executables(&built.stdout);
        Passed::new(name, &programs, given.clone()).map(Some)
    }

    fn cargo(&self) -> Command {
        let mut cargo = toolchain::cargo();
        cargo
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .arg("test")
            .args(&self.compiled);
        cargo
    }
}

/// A variable with the number of tests of a program that run at a time (The rustc book, Tests).
const THREADS: &str = "RUST_TEST_THREADS";

/// Everything that Cargo tests; their inputs are too many to list. Some tests wait for a process or a time, so more run
/// at a time than there are CPUs.
fn host() -> Tests {
    let threads = 2 * pool::all_cpus().get();
    let threads = env::var_os(THREADS).unwrap_or_else(|| threads.to_string().into());
    Tests {
        environment: vec![(THREADS, threads)],
        compiled: packages().map(OsString::from).collect(),
        ..Tests::default()
    }
}

/// The packages that the host tests, in Cargo's words. Features of one package, as Cargo compiles it, depend on
/// the others that are named with it.
pub fn packages() -> impl Iterator<Item = &'static str> {
    let others = ON_TARGET
        .into_iter()
        .flat_map(|package| ["--exclude", package]);
    ["--workspace"].into_iter().chain(others)
}

/// A page of each kind in a headless browser, and the plants that its checks find: tests that Cargo alone
/// ignores.
fn pages() -> Result<Tests> {
    let program = browser::provide()?;
    let pages = kinds::make()?;
    let version = processor_time::output(Command::new(&program).arg("--version"));
    let version = version.with_context(|| program.display().to_string())?;
    let mut given = Given::from([("browser".into(), version.stdout)]);
    for page in &pages {
        let bytes = fs::read(page).with_context(|| places::shown(page))?;
        given.insert(places::shown(page), bytes);
    }
    let names: Vec<String> = pages
        .iter()
        .map(|page| page.display().to_string())
        .collect();
    let files = ["pages", "plants", "tables"];
    let files = files.into_iter().flat_map(|file| ["--test", file]);
    Ok(Tests {
        environment: vec![
            (browser::VARIABLE, program.into()),
            ("ROUSE_PAGES", names.join("\n").into()),
        ],
        compiled: packages().chain(files).map(OsString::from).collect(),
        told: &["--ignored"],
        given: Some(given),
    })
}

/// The model checks: tests built with loom's atomics, which need a build of their own. One at a time: each makes
/// and drops the stacks of its threads for every order that it tries, and two tests of one process wait for each
/// other in the kernel then, longer than both take.
fn models() -> Tests {
    let words = [
        "--release",
        "--package",
        "wait",
        "--test",
        "wakeup",
        "--package",
        "vgic",
        "--test",
        "switching",
        "--package",
        "sched",
        "--lib",
        "--target-dir",
    ];
    let mut compiled = words.map(OsString::from).to_vec();
    compiled.push(places::inside("target/model").into());
    Tests {
        environment: vec![("RUSTFLAGS", "--cfg loom".into())],
        compiled,
        told: &["--test-threads=1"],
        given: Some(Given::new()),
    }
}
