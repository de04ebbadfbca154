// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that `image --for kvm` makes, on a machine with KVM: its results equal the results of `run --under
//! kvm`, and it refuses requests that it can't fulfil.
//!
//! The machine is emulated and runs Debian's kernel, with the program as the first process. So the program takes the
//! same code path as on a real machine; only real time differs.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use plan::{Program, Trap};
use results::{Results, capture};

use super::monitor;
use running::boot_cache::BootCache;
use running::images::{self, Guest};
use running::job::Job;
use running::kvm::{self, Host, program};
use running::options::{JobArgs, Unders};
use running::{launch, session};
use shell::partial_files::Scratch;

/// Iterations of the request. The program and `run` get this number and the lists of values below.
const ITERATIONS: u64 = 60;
const LISTS: [(&str, &str); 3] = [
    ("workload", "pingpong"),
    ("wait", "busy,wfi,poll-wfi"),
    ("deliver", "inject"),
];
/// The largest difference between two medians, in per cent. The guest and the instructions of a wake-up are the same,
/// but the host has one more process.
const APART: f64 = 1.0;
/// The traps that KVM sets on this host.
const TRAP: Trap = Trap::None;

/// Arguments of runs that the program refuses, each with a part of the expected message.
const REFUSED: [(&[&str], &str); 5] = [
    (&["--wiat", "wfi"], "refused: unexpected argument '--wiat'"),
    (&["--wait", "sleep"], "refused: --wait"),
    (
        &["--trap", "wfi", "--wait", "wfi"],
        "kvm-arm.wfi_trap_policy",
    ),
    (&["--under", "kvm-nvhe"], "--mode: KVM runs here as `VHE`"),
    (&["--json", "/init"], "/init is there already"),
];

/// Boots the host with the program, and compares its results with the results of `run --under kvm`.
pub fn run(before: &Arc<BootCache>) -> Result<()> {
    let built = images::build("virt", Guest::Ours(Program::Measuring))?;
    let file = program::bytes(&built, &images::monitor()?)?;
    let plain = request_words(&[]);
    let mut runs = vec![plain];
    runs.extend(REFUSED.map(|(words, _)| owned(words)));
    runs.push(request_words(&["--table", "--wait=wfi"]));
    let said = boot(before, file, &runs)?;
    let mut rest = &*said;
    let table = rest.find("@r1 ").context("no record")?;
    rest = &rest[table..];
    for (words, wanted) in REFUSED {
        let found = rest.find(wanted);
        let found = found.with_context(|| {
            format!("{words:?}: `{wanted}` is not in the output there:\n{said}")
        })?;
        rest = &rest[found + wanted.len()..];
    }
    ensure!(
        !capture::has_records(rest) && rest.contains("pingpong: "),
        "--table: records, or no table:\n{rest}"
    );
    let carried = capture::results(&said).context("its records can't be read")?;
    let mut job = Job::new(&job())?;
    job.before = Some(before.clone());
    let here = session::measure(&job)?;
    compare(&carried, &here)
}

/// Checks that two results have the same cells, with medians at most [`APART`] apart.
fn compare(carried: &Results, here: &Results) -> Result<()> {
    let [carried, here] = [carried, here].map(medians);
    ensure!(
        !here.is_empty() && carried.keys().eq(here.keys()),
        "the cells differ: {carried:?}, and under xtask {here:?}"
    );
    for (cell, &here) in &here {
        let apart = (carried[cell] as f64 / here as f64 - 1.0).abs() * 100.0;
        ensure!(
            apart <= APART,
            "{cell}: {} and {here} instructions, {apart:.1} % apart",
            carried[cell]
        );
    }
    Ok(())
}

fn medians(results: &Results) -> BTreeMap<String, u64> {
    let cells = results.cells.iter();
    cells
        .filter_map(|cell| Some((cell.title(), cell.stats.as_ref()?.p50)))
        .collect()
}

/// Returns the request in the form that `run` takes.
fn job() -> JobArgs {
    let mut args = JobArgs::on("virt");
    let trap = TRAP.to_string();
    let lists: Vec<_> = LISTS.into_iter().chain([("trap", &*trap)]).collect();
    args.load.plan = request::PlanArgs::exactly(ITERATIONS, &lists);
    args.under = Some(Unders::Named(vec![plan::Under::Kvm]));
    args
}

/// Returns the request as arguments of the program. `others` are added, or replace arguments of the request.
fn request_words(others: &[&str]) -> Vec<String> {
    let mut words = job().load.plan.words();
    // `run` also uses these CPUs and this pause before the start.
    words.extend(owned(&["--pin=1,2", "--memory=512M", "--rest=3"]));
    words.retain(|word| {
        let key = word.split('=').next();
        !others.iter().any(|other| other.split('=').next() == key)
    });
    words.extend(owned(others));
    words
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Boots a host on which `program` makes `runs`, one after another. Returns the host's output.
fn boot(before: &BootCache, program: Vec<u8>, runs: &[Vec<String>]) -> Result<String> {
    let place = Scratch::new()?;
    let host = Host::of(program)?;
    let mut command = monitor::machine()?;
    let boot = kvm::Boot {
        cpus: 2,
        memory: 512,
        arguments: kvm::arguments("", TRAP),
        runs,
        guests: &[],
    };
    host.boot(&mut command, &boot, place.path())?;
    launch::end_with_us(&mut command);
    monitor::output_of(command, place.path(), before)
}
