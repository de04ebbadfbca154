// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulators side by side measure what they measure one after another: the results are the same,
//! byte for byte. And what a cell comes to does not depend on the cells before it, so parts come to what
//! the whole comes to.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use results::Results;

use crate::partial::Scratch;
use crate::{places, spent};

/// What all have.
const WORDS: [&str; 7] = [
    "run",
    "--workload=pingpong",
    "--poll-limit-us=10,50",
    "--iterations=4",
    "--stages=off",
    "--memory=64M",
    "--gap-us=0",
];
/// Cells enough for parts.
const MANY: [&str; 3] = ["--wait=all", "--trap=all", "--deliver=all"];
/// Some of them, in an order of their own: those that wait by WFEs that trap. How such a cell
/// begins depends on how another ended, unless the guest sees to it.
const SOME: [&str; 3] = [
    "--wait=poll-wfi,wfe,wfet",
    "--trap=both,wfe",
    "--deliver=direct,inject",
];

/// Measures the same with one emulator at a time and with three, and some of it again.
pub fn run() -> Result<()> {
    let place = Scratch::new()?;
    let folder = |name| place.path().join(name);
    let one = measured(MANY, "1", &folder("one"))?;
    let three = measured(MANY, "3", &folder("three"))?;
    let commands = fs::read_to_string(folder("one").join("command.txt"))?;
    let boots = commands.matches("# under rouse, part ").count();
    ensure!(boots > 1, "{boots} boots in parts: nothing was dealt out");
    ensure!(
        one.to_json()? == three.to_json()?,
        "three emulators at a time measured something else"
    );
    are_in(&measured(SOME, "1", &folder("some"))?, &one)
}

/// What was measured, but for when it began.
fn measured(cells: [&str; 3], jobs: &str, folder: &Path) -> Result<Results> {
    let mut command = Command::new(places::program()?);
    command.args(WORDS).args(cells);
    command.args(["--jobs", jobs, "--out"]).arg(folder);
    let output = spent::output(&mut command).context("it can't be started")?;
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

/// Whether each cell of `some` came to the same in `all`.
fn are_in(some: &Results, all: &Results) -> Result<()> {
    ensure!(some.has_cells(), "nothing was measured");
    for cell in &some.cells {
        let title = cell.title();
        let mut others = all.cells.iter();
        let other = others
            .find(|other| other.key() == cell.key())
            .with_context(|| format!("{title}: not among all"))?;
        ensure!(
            (cell.stats, &cell.pass_p50) == (other.stats, &other.pass_p50),
            "{title}: {:?} after other cells, {:?} among all",
            cell.stats,
            other.stats
        );
    }
    Ok(())
}
