// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host tests: Cargo's tests, the model checks, and the checks of pages in a browser.

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

/// Number of lines to print from the end of Cargo's output if tests fail. Cargo stops at the first test program with a
/// failure, so the failure is near the end.
const SHOWN: usize = 100;
/// Replaces Cargo's output for tests that were not run.
const UNCHANGED: &str = "not run: they passed before, and nothing of them has changed\n";

/// A kind of host test.
#[derive(Clone, Copy, Debug)]
struct TestKind {
    name: &'static str,
    /// Returns the name of the tool that these tests need but this computer lacks.
    lacks: fn() -> Option<String>,
    tests: fn() -> Result<Tests>,
}

/// Tests, in the form of arguments for Cargo.
#[derive(Debug, Default)]
struct Tests {
    environment: Vec<(&'static str, OsString)>,
    /// Arguments that select and configure the packages to compile.
    compiled: Vec<OsString>,
    /// Arguments for the test programs.
    told: &'static [&'static str],
    /// Inputs besides the programs; `None` if some inputs are unknown.
    given: Option<Given>,
}

/// How tests are run.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Text that a test's name must contain for the test to run; empty for all tests.
    pub filter: &'a str,
    /// Whether to repeat even tests whose outcome can't have changed.
    pub again: bool,
}

const KINDS: [TestKind; 3] = [
    TestKind {
        name: "tests-of-the-host",
        lacks: || None,
        tests: || Ok(default_tests()),
    },
    TestKind {
        name: "model-checks",
        lacks: || None,
        tests: || Ok(model_checks()),
    },
    TestKind {
        name: "pages-in-a-browser",
        lacks: browser::lacks,
        tests: browser_tests,
    },
];

/// Runs the first kind of test and shows its output. Meanwhile, runs the other kinds without output, and prints their
/// outcomes at the end.
pub fn run_shown(how: How) -> Result<()> {
    let [first, others @ ..] = KINDS;
    let (status, others) = thread::scope(|scope| {
        let others = scope.spawn(|| others.map(|kind| (kind.name, kind.run_or_skip(how))));
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

/// Returns a task for each kind of test, to run at the same time as other tests; Cargo's output then goes to a file.
pub fn tasks(how: How<'_>) -> Vec<Task<'_>> {
    let kinds = KINDS.into_iter();
    let tasks = kinds.map(|kind| Task::new(kind.name, kind.lacks, move || kind.run_quiet(how)));
    tasks.collect()
}

/// Returns the output of Cargo's last run of each kind of test.
pub fn last_output() -> Result<String> {
    let run = KINDS.iter().filter(|kind| (kind.lacks)().is_none());
    let texts = run.map(|kind| {
        let path = log_path(kind.name);
        fs::read_to_string(&path).with_context(|| places::shown(&path))
    });
    texts.collect()
}

/// Returns the path of the file for Cargo's output of the tests `name`.
fn log_path(name: &str) -> PathBuf {
    places::target().join("tests").join(format!("{name}.log"))
}

impl TestKind {
    /// Runs the tests with their output in a file, unless a tool is missing. Returns the outcome as text.
    fn run_or_skip(self, how: How) -> Result<String> {
        match (self.lacks)() {
            Some(why) => Ok(format!("skipped, {why}")),
            None => Ok(format!("ok{}", self.run_quiet(how)?)),
        }
    }

    /// Runs the tests, unless their outcome can't have changed. Returns the path of their output.
    fn run_quiet(self, how: How) -> Result<String> {
        let path = log_path(self.name);
        let place = || places::shown(&path);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).with_context(place)?;
        let tests = (self.tests)()?;
        let passed = match how.filter {
            "" => tests.current(self.name)?,
            // A filtered run proves nothing about the other tests, so its pass is not recorded.
            _ => None,
        };
        if !how.again && passed.as_ref().is_some_and(Passed::is_recorded) {
            fs::write(&path, UNCHANGED).with_context(place)?;
            return Ok(
                ", they passed before and nothing of them has changed; --again runs them".into(),
            );
        }
        passed.as_ref().map_or(Ok(()), Passed::forget)?;
        self.run(&tests, how.filter, &path)?;
        if let Some(passed) = passed {
            // If files were edited meanwhile, it is unknown which version ran, so the pass is not recorded.
            let now = tests.current(self.name)?;
            now.filter(|now| *now == passed)
                .map_or(Ok(()), |now| now.record())?;
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
    /// Returns the command that runs the tests with `filter` in their names.
    fn command(&self, filter: &str) -> Command {
        let mut cargo = self.cargo();
        if !filter.is_empty() {
            cargo.arg(filter);
        }
        cargo.arg("--").args(self.told);
        cargo
    }

    /// Compiles the tests and returns the checksums of their programs and inputs, if all inputs are known.
    fn current(&self, name: &str) -> Result<Option<Passed>> {
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

/// The environment variable that sets how many tests of one program run at a time (The rustc book, Tests).
const THREADS: &str = "RUST_TEST_THREADS";

/// Returns all tests that Cargo runs by default; they have too many inputs to list. Some of these tests wait for a
/// process or a time, so more of them run at a time than there are CPUs.
fn default_tests() -> Tests {
    let threads = 2 * pool::all_cpus().get();
    let threads = env::var_os(THREADS).unwrap_or_else(|| threads.to_string().into());
    Tests {
        environment: vec![(THREADS, threads)],
        compiled: packages().map(OsString::from).collect(),
        ..Tests::default()
    }
}

/// Returns Cargo's arguments for the packages that are tested on the host. The features with which Cargo compiles a
/// package depend on the other packages that are selected with it.
pub fn packages() -> impl Iterator<Item = &'static str> {
    let others = ON_TARGET
        .into_iter()
        .flat_map(|package| ["--exclude", package]);
    ["--workspace"].into_iter().chain(others)
}

/// Makes a page of each kind. Returns the tests that check these pages in a headless browser, and the tests that plant
/// errors for the checks to find. Cargo runs these tests only with `--ignored`.
fn browser_tests() -> Result<Tests> {
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

/// Returns the model checks: tests with loom's atomics, which need a separate build. Model checks run one at a time:
/// for every order that it tries, a model check allocates and frees the stacks of its threads, and two checks in one
/// process would wait so long for each other in the kernel that they would take longer than if they ran in sequence.
fn model_checks() -> Tests {
    let words = [
        "--profile",
        "model",
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
