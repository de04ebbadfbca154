// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `test`: runs the tests of the host and the tests that boot.

mod settings;

pub use settings::TestArgs;

mod case;
mod cells;
mod concurrent_runs;
mod dist_folder;
mod equal_runs;
mod exceptions;
mod exclusives;
mod expectation;
#[cfg(test)]
mod feature_sets;
mod firmware;
mod gate;
mod host;
mod host_test_names;
mod jobs;
mod kernel;
mod kvm_program;
mod mainline;
mod monitor;
mod options;
mod order;
mod pass_cache;
mod pool;
mod refused;
mod repetitions;
mod signals;
mod strict;
mod timings;
mod truncated_log;
mod workers;

use std::cmp::Reverse;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use case::Case;
use gate::Gate;
use pool::{Outcomes, Task};
use providing::{qemu, toolchain};
use shell::failure::bad_input;
use shell::terminal::print_lines;
use shell::{interrupt, places, processor_time};

/// Packages that are built only for the target.
pub const ON_TARGET: [&str; 6] = [
    "arch",
    "dirty-firmware",
    "hypervisor",
    "guest-kernel-shim",
    "guest-trials",
    "test-kernel",
];

/// Name of the test that checks all written results against the schema.
const SCHEMA: &str = "results-follow-their-schema";

pub fn run(args: &TestArgs) -> Result<()> {
    let filter = args.filter.as_deref().unwrap_or("");
    let jobs = args.jobs.unwrap_or_else(pool::all_cpus);
    if args.strict {
        return strict::run(filter, jobs);
    }
    let cases = if args.host_only {
        Vec::new()
    } else {
        cases(filter)?
    };
    let gates = if args.host_only {
        Vec::new()
    } else {
        gate::matching(filter)
    };
    // Compiling the host tests takes minutes, so first find out whether the filter can match one of them.
    let of_host = !args.target_only && host_test_names::any_has(filter)?;
    if !of_host && cases.is_empty() && gates.is_empty() {
        let which = match (args.host_only, args.target_only) {
            (true, _) => "of the host ",
            (_, true) => "that boots ",
            _ => "",
        };
        bad_input!("no test {which}has `{filter}` in its name; without a name all are run");
    }
    // A test that can't run because an emulator is missing is skipped, and does not fail.
    if !gates.is_empty() || cases.iter().any(Case::needs_qemu) {
        interrupt::or(qemu::ensure())?;
    }
    let how = host::How {
        filter,
        again: args.again,
    };
    if cases.is_empty() && gates.is_empty() {
        return host::run_shown(how);
    }
    // The host tests may rebuild this program while other tests start it.
    let _program = places::keep_program()?;
    let of_host = if of_host {
        host::tasks(how)
    } else {
        Vec::new()
    };
    run_tasks(of_host, &cases, &gates, jobs, args)
}

/// Returns the names of the results files that boots wrote to `folders`.
fn results_in(folders: &[PathBuf]) -> Vec<String> {
    let files = folders.iter().map(|folder| folder.join("results.json"));
    let files = files.filter(|file| file.is_file());
    files.map(|file| file.display().to_string()).collect()
}

/// Checks results files against docs/results.schema.json, using a test of crates/host/results.
fn follow_the_schema(written: &[String]) -> Result<String> {
    let mut cargo = toolchain::cargo();
    cargo
        .env("ROUSE_RESULTS", written.join("\n"))
        .env("RUST_BACKTRACE", "0")
        .args(["test", "--quiet"])
        // Selects the same packages as for the host's tests. With another selection, Cargo would compile them again.
        .args(host::packages())
        .args(["--test", "schema"])
        .args(["--", "--exact", "named_files_follow_it"]);
    let output = processor_time::output(&mut cargo).with_context(toolchain::no_cargo)?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(format!(" ({} files)", written.len()))
}

/// Reads the tests that boot, sorted by name. Reads all of them before any test runs, so that a mistake in one file is
/// reported at once, not minutes later.
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

/// Runs all tests, and fails if one of them fails. Starts the tests that may take longest first (the tests of the host,
/// the gates, and the boots with the longest time limits), so that the others fill the rest of the time. Prints the
/// times of the longest tests if `args` ask for them.
fn run_tasks(
    of_host: Vec<Task>,
    cases: &[Case],
    gates: &[&Gate],
    jobs: NonZeroUsize,
    args: &TestArgs,
) -> Result<()> {
    let folders = Mutex::new(Vec::new());
    let host = !of_host.is_empty();
    let mut tasks = of_host;
    tasks.extend(gates.iter().map(|gate| {
        let run = || gate.run(args.again);
        Task::new(gate.name, || gate.lacks(), run)
    }));
    let mut sorted: Vec<&Case> = cases.iter().collect();
    sorted.sort_by_key(|case| Reverse(case.patience()));
    tasks.extend(sorted.into_iter().map(|case| {
        let run = || {
            let place = case.run(args.again)?;
            let mut folders = folders.lock().unwrap_or_else(PoisonError::into_inner);
            folders.extend(case.folders());
            Ok(format!(" ({place})"))
        };
        Task::new(&case.name, || case.lacks(), run)
    }));
    let mut tally = Outcomes::default();
    tally.run(tasks, jobs)?;
    let written = results_in(&folders.into_inner().unwrap_or_else(PoisonError::into_inner));
    if !written.is_empty() {
        let schema = Task::new(SCHEMA, || None, || follow_the_schema(&written));
        tally.run(vec![schema], jobs)?;
    }
    if let Some(count) = args.timings {
        print_lines(timings::table(tally.took(), count).lines());
        if host {
            print_lines(timings::host_table(&host::last_output()?, count).lines());
        }
    }
    tally.judge()
}
