// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `test`: the host's tests, then those that boot.

mod case;
mod cells;
mod counted;
mod cut;
#[cfg(test)]
mod documented;
mod exceptions;
mod exclusives;
mod expectation;
mod firmware;
mod gate;
mod kernel;
mod killed;
mod monitor;
mod named;
mod options;
mod order;
mod repeated;
mod same;
mod strict;
mod together;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cli::TestArgs;
use crate::failure::bad_input;
use crate::terminal::say;
use crate::{audit, coverage, interrupt, miri, places, qemu, toolchain};
use case::Case;
use gate::Gate;

/// Packages that only exist on the target.
pub const ON_TARGET: [&str; 5] = [
    "arch",
    "dirty-firmware",
    "hypervisor",
    "guest-kernel-shim",
    "test-kernel",
];

/// Name of the test that all results are put to.
const SCHEMA: &str = "results-follow-their-schema";

/// Runs what was asked for.
pub fn run(args: &TestArgs) -> Result<()> {
    // The tests of the host may build this program anew.
    places::program()?;
    let filter = args.filter.as_deref().unwrap_or("");
    if args.coverage {
        return coverage::run();
    }
    if args.miri {
        return miri::run(filter);
    }
    if args.strict {
        return strict::run(filter);
    }
    if args.audit {
        return audit::run(args.advisory_db.as_deref());
    }
    let cases = if args.host_only {
        Vec::new()
    } else {
        cases(filter)?
    };
    let gates = if args.host_only {
        Vec::new()
    } else {
        gate::all(filter)
    };
    // Compiling them takes minutes, so what is surely not among them is known before.
    let of_host = !args.target_only && named::any(filter)?;
    if !of_host && cases.is_empty() && gates.is_empty() {
        let which = match (args.host_only, args.target_only) {
            (true, _) => "of the host ",
            (_, true) => "that boots ",
            _ => "",
        };
        bad_input!("no test {which}has `{filter}` in its name; without a name all are run");
    }
    // Without an emulator none of them failed: they could not be tried.
    if !gates.is_empty() || cases.iter().any(Case::needs_qemu) {
        interrupt::or(qemu::ensure())?;
    }
    if of_host {
        host(filter)?;
        models(filter)?;
    }
    boot(&cases, &gates)
}

/// Everything that Cargo tests.
fn host(filter: &str) -> Result<()> {
    let mut cargo = Command::new(toolchain::cargo());
    cargo
        .current_dir(places::root())
        .args(["test", "--workspace"])
        .args(ON_TARGET.iter().flat_map(|package| ["--exclude", package]));
    if !filter.is_empty() {
        cargo.arg(filter);
    }
    let status = cargo.status().context("cargo can't be started")?;
    if !status.success() {
        bail!("tests of the host failed; what cargo said is above");
    }
    Ok(())
}

/// The results that boots wrote in `folders`.
fn results_in(folders: &[PathBuf]) -> Vec<String> {
    let files = folders.iter().map(|folder| folder.join("results.json"));
    let files = files.filter(|file| file.is_file());
    files.map(|file| file.display().to_string()).collect()
}

/// Compares files of results with docs/results.schema.json, by a test of crates/results.
fn follow_the_schema(written: &[String]) -> Result<String> {
    let output = Command::new(toolchain::cargo())
        .current_dir(places::root())
        .env("ROUSE_RESULTS", written.join("\n"))
        .env("RUST_BACKTRACE", "0")
        .args([
            "test",
            "--quiet",
            "--package",
            "results",
            "--test",
            "schema",
        ])
        .args(["--", "--exact", "named_files_follow_it"])
        .output()
        .context("cargo can't be started")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(format!(" ({} files)", written.len()))
}

/// The model checks: tests built with loom's atomics, which need a build of
/// their own.
fn models(filter: &str) -> Result<()> {
    let mut cargo = Command::new(toolchain::cargo());
    cargo
        .current_dir(places::root())
        .env("RUSTFLAGS", "--cfg loom")
        .args(["test", "--release", "--package", "wait", "--test", "wakeup"])
        .args(["--package", "sched", "--lib"])
        .arg("--target-dir")
        .arg(places::inside("target/model"));
    if !filter.is_empty() {
        cargo.arg(filter);
    }
    let status = cargo.status().context("cargo can't be started")?;
    if !status.success() {
        bail!("model checks failed; what cargo said is above");
    }
    Ok(())
}

/// The tests that boot, sorted by name. All are read first: a mistake in one
/// should not show up after minutes.
fn cases(filter: &str) -> Result<Vec<Case>> {
    let folder = places::inside("tests");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    paths.retain(|path| {
        path.file_stem()
            .is_some_and(|name| name.to_string_lossy().contains(filter))
    });
    paths.sort();
    paths.iter().map(|path| Case::load(path)).collect()
}

/// Runs the tests that boot, and fails if one of them fails.
fn boot(cases: &[Case], gates: &[&Gate]) -> Result<()> {
    let mut tally = Tally::default();
    let mut folders = Vec::new();
    for case in cases {
        let run = || case.run().map(|place| format!(" ({place})"));
        if tally.test(&case.name, case.lacks(), run)? {
            folders.extend(case.folders());
        }
    }
    let written = results_in(&folders);
    if !written.is_empty() {
        tally.test(SCHEMA, None, || follow_the_schema(&written))?;
    }
    for gate in gates {
        tally.test(gate.name, gate.lacks(), || {
            gate.run().map(|()| String::new())
        })?;
    }
    tally.judge()
}

/// What came of the tests that boot.
#[derive(Debug, Default)]
struct Tally {
    tests: usize,
    skipped: Vec<String>,
    failed: Vec<String>,
}

impl Tally {
    /// Runs a test unless this computer lacks something that it needs; whether it ran. What
    /// `run` returns is shown if it succeeds.
    fn test(
        &mut self,
        name: &str,
        lacks: Option<String>,
        run: impl FnOnce() -> Result<String>,
    ) -> Result<bool> {
        self.tests += 1;
        if let Some(why) = lacks {
            say!("{name}: skipped, {why}");
            self.skipped.push(name.into());
            return Ok(false);
        }
        match run() {
            Ok(more) => say!("{name}: ok{more}"),
            Err(error) => {
                say!("{name}: FAILED, {error:#}");
                self.failed.push(name.into());
            }
        }
        if interrupt::requested() {
            bail!("interrupted in test {name}");
        }
        Ok(true)
    }

    /// Names what was skipped; fails if a test failed.
    fn judge(self) -> Result<()> {
        if !self.skipped.is_empty() {
            say!("skipped: {}", self.skipped.join(", "));
        }
        ensure!(
            self.failed.is_empty(),
            "{} of {} tests that boot failed: {}",
            self.failed.len(),
            self.tests,
            self.failed.join(", ")
        );
        Ok(())
    }
}
