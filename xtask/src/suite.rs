// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `test`: the host's tests, then those that boot.

mod case;
mod counted;
mod cut;
#[cfg(test)]
mod documented;
mod exceptions;
mod expectation;
mod gate;
mod kernel;
mod killed;
mod named;
mod options;
mod order;
mod repeated;
mod same;
mod together;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cli::TestArgs;
use crate::failure::bad_input;
use crate::terminal::say;
use crate::{audit, coverage, interrupt, miri, places, qemu, toolchain};
use case::Case;
use gate::Gate;

/// Packages that only exist on the target.
pub const ON_TARGET: [&str; 4] = ["arch", "hypervisor", "guest-kernel-shim", "test-kernel"];

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

/// Whether what boots wrote in `folders` is as docs/results.schema.json says. The test
/// that knows how to tell is one of crates/results.
fn follow_the_schema(folders: &[PathBuf]) -> Result<()> {
    let written = folders.iter().map(|folder| folder.join("results.json"));
    let written: Vec<String> = written
        .filter(|file| file.is_file())
        .map(|file| file.display().to_string())
        .collect();
    if written.is_empty() {
        return Ok(());
    }
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
    say!("{SCHEMA}: ok ({} files)", written.len());
    Ok(())
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

fn boot(cases: &[Case], gates: &[&Gate]) -> Result<()> {
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    let mut folders = Vec::new();
    for case in cases {
        if let Some(why) = case.lacks() {
            say!("{}: skipped, {why}", case.name);
            skipped.push(case.name.as_str());
            continue;
        }
        match case.run() {
            Ok(place) => say!("{}: ok ({place})", case.name),
            Err(error) => {
                say!("{}: FAILED, {error:#}", case.name);
                failed.push(case.name.as_str());
            }
        }
        folders.extend(case.folders());
        if interrupt::requested() {
            bail!("interrupted in test {}", case.name);
        }
    }
    if let Err(error) = follow_the_schema(&folders) {
        say!("{SCHEMA}: FAILED, {error:#}");
        failed.push(SCHEMA);
    }
    for gate in gates {
        if let Some(why) = gate.lacks() {
            say!("{}: skipped, {why}", gate.name);
            skipped.push(gate.name);
            continue;
        }
        match gate.run() {
            Ok(()) => say!("{}: ok", gate.name),
            Err(error) => {
                say!("{}: FAILED, {error:#}", gate.name);
                failed.push(gate.name);
            }
        }
        if interrupt::requested() {
            bail!("interrupted in test {}", gate.name);
        }
    }
    if !skipped.is_empty() {
        say!("skipped: {}", skipped.join(", "));
    }
    if !failed.is_empty() {
        bail!(
            "{} of {} tests that boot failed: {}",
            failed.len(),
            cases.len() + gates.len() + usize::from(!folders.is_empty()),
            failed.join(", ")
        );
    }
    Ok(())
}
