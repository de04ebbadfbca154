// SPDX-License-Identifier: MIT OR Apache-2.0
//! A repeated run leaves all its repetitions in one folder, and `compare` recognizes their boots.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use results::Results;

use shell::partial_files::Scratch;
use shell::{places, processor_time};

/// Systems to boot; each is booted several times.
const UNDERS: &str = "none,rouse";
const RUNS: usize = 2;

/// Boots the systems, and checks the order of the boots, their cells, and that `compare` pairs the boots.
pub fn run() -> Result<()> {
    let place = Scratch::new()?;
    let folder = place.path().join("run");
    let repeat = RUNS.to_string();
    let words = [
        "run",
        "--quick",
        "--workload",
        "ipi",
        "--shape",
        "self",
        "--wait",
        "busy",
    ];
    let more = ["--under", UNDERS, "--repeat", &repeat, "--out"];
    started(&[&words[..], &more].concat(), &[&folder])?;
    let text = fs::read_to_string(folder.join("results.json"))?;
    let results: Results = serde_json::from_str(&text)?;
    ensure!(
        results.runs.len() == RUNS,
        "{} runs are in it",
        results.runs.len()
    );
    let count = |label: &str| {
        results
            .cells
            .iter()
            .filter(|cell| cell.run == label)
            .count()
    };
    let cells = [count("run 1"), count("run 2")];
    ensure!(
        cells[0] > 0 && cells[0] == cells[1],
        "cells of the runs: {cells:?}"
    );
    let commands = fs::read_to_string(folder.join("command.txt"))?;
    let boots = commands
        .lines()
        .filter_map(|line| line.strip_prefix("# under "));
    let boots: Vec<&str> = boots.filter_map(|boot| boot.split(',').next()).collect();
    ensure!(
        boots == ["none", "rouse", "rouse", "none"],
        "the order is {boots:?}"
    );
    // `compare` refuses to compare a folder with itself, because A and B then have the same boots.
    let compared = output(&["compare"], &[&folder, &folder])?;
    let complained = String::from_utf8_lossy(&compared.stderr);
    ensure!(
        compared.status.code() == Some(2) && complained.contains("of both A and B"),
        "{}: {complained}",
        compared.status
    );
    Ok(())
}

fn output(words: &[&str], paths: &[&Path]) -> Result<Output> {
    let mut command = Command::new(places::program()?);
    command.args(words).args(paths);
    processor_time::output(&mut command).context("this program can't be started again")
}

fn started(words: &[&str], paths: &[&Path]) -> Result<()> {
    let output = output(words, paths)?;
    let [said, complained] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    ensure!(
        output.status.success(),
        "`cargo xtask {}` ended with {}; it printed:\n{said}{complained}",
        words.join(" "),
        output.status
    );
    Ok(())
}
