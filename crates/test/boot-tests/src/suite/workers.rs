// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sweep on several workers, as docs/results.md describes it: GNU parallel gives each worker a part and repeats a
//! part that failed, and `report` puts the parts together.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use results::{Cell, Results};
use serde_json::Value;

use shell::partial_files::Scratch;
use shell::{places, processor_time};

/// The sweep.
const SWEEP: &str = "run --quick --workload ipi --wait wfi,busy --trap none";

/// If this computer lacks GNU parallel, returns the reason.
pub fn lacks() -> Option<String> {
    let version = Command::new("parallel").arg("--version").output().ok();
    let is_gnu = version.is_some_and(|output| output.stdout.starts_with(b"GNU parallel"));
    (!is_gnu).then(|| "GNU parallel is missing; install it (Debian: parallel)".into())
}

/// Runs the sweep on two workers, of which one fails at first, and compares the joined results with a single run's.
pub fn run() -> Result<()> {
    let scratch = Scratch::new()?;
    let place = scratch.path();
    // A part can't be written to a folder of another part, so the second worker fails.
    fs::create_dir(place.join("part-2"))?;
    fs::write(place.join("part-2/serial.log"), "")?;
    let first = workers(place, &[])?;
    ensure!(
        first.status.code() == Some(1) && place.join("part-1/results.json").exists(),
        "one of two parts was to fail: {}",
        printed(&first)
    );
    fs::remove_dir_all(place.join("part-2"))?;
    let part = fs::read(place.join("part-1/results.json"))?;
    let again = workers(place, &["--resume-failed"])?;
    ensure!(again.status.success(), "{}", printed(&again));
    ensure!(
        fs::read(place.join("part-1/results.json"))? == part,
        "part 1 was made again"
    );
    let whole = cells(
        place,
        &format!("report {0}/part-1 {0}/part-2", place.display()),
        "whole",
    )?;
    let alone = cells(place, SWEEP, "alone")?;
    ensure!(
        whole == alone,
        "{} cells of two parts differ from {} of one run",
        whole.len(),
        alone.len()
    );
    Ok(())
}

/// Runs the parts of the sweep that have not run or, with `more`, those that have failed.
fn workers(place: &Path, more: &[&str]) -> Result<Output> {
    let (program, shown) = (places::program()?, place.display());
    let part = format!(
        "{} {SWEEP} --shard {{}}/2 --out {shown}/part-{{}}",
        program.display()
    );
    let mut command = Command::new("parallel");
    command
        .args(["--will-cite", "--jobs", "2", "--joblog"])
        .arg(place.join("log"))
        .args(more)
        .args([&part, ":::", "1", "2"]);
    processor_time::output(&mut command).context("GNU parallel can't be started again")
}

/// Runs this program with `words`. Returns the cells of its results, without the run's label and each cell's number.
fn cells(place: &Path, words: &str, folder: &str) -> Result<Vec<(String, Value)>> {
    let folder = place.join(folder);
    let mut command = Command::new(places::program()?);
    command.args(words.split(' ')).arg("--out").arg(&folder);
    let output =
        processor_time::output(&mut command).context("this program can't be started again")?;
    ensure!(
        output.status.success(),
        "`cargo xtask {words}`: {}",
        printed(&output)
    );
    let text = fs::read_to_string(folder.join("results.json"))?;
    let results: Results = serde_json::from_str(&text)?;
    let cells = results.cells.into_iter().map(|cell| {
        let run = String::new();
        let title = cell.title();
        Ok((title, serde_json::to_value(Cell { run, id: 0, ..cell })?))
    });
    let mut cells = cells.collect::<Result<Vec<_>>>()?;
    cells.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(cells)
}

fn printed(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}; it printed:\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}
