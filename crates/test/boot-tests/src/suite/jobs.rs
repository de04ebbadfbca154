// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulators that run at the same time give the same results, byte for byte, as emulators that run one after another.
//! And a cell's result does not depend on the cells before it, so parts of a plan give the results of the whole plan.
//!
//! One sample of a comparison may differ. In one count, 4 samples in a million did, as if the next CPU had been
//! scheduled early and a polling CPU had polled once more. Besides the thread that runs the CPUs, QEMU has threads that
//! follow the host's clock; it is not known whether one of them is the cause. A dependence on what ran before or at the
//! same time changes more than one sample.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use results::{Cell, Results};

use shell::partial_files::Scratch;
use shell::{places, processor_time};

/// Arguments of every run.
const WORDS: [&str; 7] = [
    "run",
    "--workload=pingpong",
    "--poll-limit-us=10,50",
    "--iterations=4",
    "--stages=off",
    "--memory=64M",
    "--gap-us=0",
];
/// Values that give enough cells to split the plan into parts.
const MANY: [&str; 3] = ["--wait=all", "--trap=all", "--deliver=all"];
/// Values that give some of these cells in another order. Some of these cells wait with a WFE that traps: how such a
/// cell begins depends on how the cell before it ended, unless the guest prevents that.
const SOME: [&str; 3] = [
    "--wait=poll-wfi,wfe,wfet",
    "--trap=both,wfe",
    "--deliver=direct,inject",
];

/// Measures the cells with one emulator at a time and with three, and then some of the cells again.
pub fn run() -> Result<()> {
    let place = Scratch::new()?;
    let folder = |name| place.path().join(name);
    let one = measured(MANY, "1", &folder("one"))?;
    let mut three = measured(MANY, "3", &folder("three"))?;
    let commands = fs::read_to_string(folder("one").join("command.txt"))?;
    let boots = commands.matches("# under rouse, part ").count();
    ensure!(boots > 1, "{boots} boots in parts: nothing was dealt out");
    replace_moved(&mut three.cells, &one.cells)?;
    ensure!(
        one.to_json()? == three.to_json()?,
        "three emulators at a time measured something else"
    );
    let mut some = measured(SOME, "1", &folder("some"))?;
    ensure!(some.has_cells(), "nothing was measured");
    replace_moved(&mut some.cells, &one.cells)?;
    check_equal(&some.cells, &one.cells)
}

/// Makes a run and returns its results, without the time at which it began.
fn measured(cells: [&str; 3], jobs: &str, folder: &Path) -> Result<Results> {
    let mut command = Command::new(places::program()?);
    command.args(WORDS).args(cells);
    command.args(["--jobs", jobs, "--out"]).arg(folder);
    let output = processor_time::output(&mut command).context("it can't be started")?;
    ensure!(
        output.status.success(),
        "--jobs {jobs}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = fs::read_to_string(folder.join("results.json"))?;
    let mut results: Results = serde_json::from_str(&text)?;
    results.began.clear();
    Ok(results)
}

/// The number of cells per comparison in which one sample may differ.
const MOVED: usize = 1;

/// Replaces each cell of `some` that differs by one sample from its counterpart in `all` with that counterpart. Fails
/// if there are more than [`MOVED`] such cells.
fn replace_moved(some: &mut [Cell], all: &[Cell]) -> Result<()> {
    let mut moved = Vec::new();
    for cell in some {
        let other = counterpart(cell, all)?;
        if differs_by_one_sample(cell, other) {
            moved.push(format!("{}: {:?}", cell.title(), cell.stats));
            *cell = other.clone();
        }
    }
    ensure!(
        moved.len() <= MOVED,
        "a sample is another in {} cells: {}",
        moved.len(),
        moved.join("; ")
    );
    Ok(())
}

fn counterpart<'a>(cell: &Cell, all: &'a [Cell]) -> Result<&'a Cell> {
    let mut others = all.iter();
    let same = others.find(|other| other.key() == cell.key());
    same.with_context(|| format!("{}: not among all", cell.title()))
}

/// Returns whether the cells differ, but neither in the median nor in more than one pass.
fn differs_by_one_sample(cell: &Cell, other: &Cell) -> bool {
    let (Some(is), Some(was)) = (cell.stats, other.stats) else {
        return false;
    };
    let passes = cell.pass_p50.iter().zip(&other.pass_p50);
    is != was
        && (is.count, is.p50) == (was.count, was.p50)
        && cell.pass_p50.len() == other.pass_p50.len()
        && passes.filter(|(is, was)| is != was).count() <= 1
}

/// Checks that each cell of `some` has an equal result in `all`.
fn check_equal(some: &[Cell], all: &[Cell]) -> Result<()> {
    for cell in some {
        let other = counterpart(cell, all)?;
        ensure!(
            (cell.stats, &cell.pass_p50) == (other.stats, &other.pass_p50),
            "{}: {:?} after other cells, {:?} among all",
            cell.title(),
            cell.stats,
            other.stats
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plan::Wait;
    use results::Stats;

    use super::*;

    /// Returns a cell with `samples`, one for each pass.
    fn cell(wait: Wait, samples: [u64; 4]) -> Cell {
        let mut cell = Cell::default();
        cell.what.wait = wait;
        let mut sorted = samples;
        sorted.sort_unstable();
        cell.stats = Some(Stats {
            count: 4,
            min: sorted[0],
            p50: sorted[1],
            p90: sorted[3],
            p99: sorted[3],
            p999: sorted[3],
            max: sorted[3],
            mean: samples.iter().sum::<u64>() as f64 / 4.0,
        });
        cell.pass_p50 = samples.to_vec();
        cell
    }

    /// Returns whether the comparison accepts `some` as a part of `all`.
    fn passes(mut some: Vec<Cell>, all: &[Cell]) -> bool {
        replace_moved(&mut some, all).is_ok() && check_equal(&some, all).is_ok()
    }

    #[test]
    fn one_sample_may_be_another_and_no_more() {
        let all = [cell(Wait::Wfe, [229; 4]), cell(Wait::Wfet, [242; 4])];
        let (wfe, wfet) = (all[0].clone(), all[1].clone());
        let odd = |wait, of| cell(wait, [of, of, of + 31, of]);
        assert!(passes(all.to_vec(), &all));
        assert!(passes(vec![odd(Wait::Wfe, 229), wfet.clone()], &all));
        let early = cell(Wait::Wfet, [242, 234, 242, 242]);
        assert!(passes(vec![wfe, early], &all));
        // The comparison must refuse a difference in two cells, a difference in two passes of one cell, a difference
        // in each sample, and a cell that `all` lacks.
        let two = vec![odd(Wait::Wfe, 229), odd(Wait::Wfet, 242)];
        assert!(!passes(two, &all));
        let both = cell(Wait::Wfe, [229, 260, 229, 260]);
        assert!(!passes(vec![both, wfet.clone()], &all));
        assert!(!passes(vec![cell(Wait::Wfe, [260; 4]), wfet], &all));
        assert!(!passes(vec![cell(Wait::Wfi, [229; 4])], &all));
    }
}
