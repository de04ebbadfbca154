// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of one side.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;
use results::compare::Comparison;
use results::merge::{self, Run};
use results::{Build, Results};

use crate::report::inputs::Input;
use crate::saved_runs;
use shell::failure::bad_input;
use shell::places;

/// The runs of one side, at least one.
#[derive(Debug)]
pub struct Side {
    /// The named paths, as messages show them.
    pub shown: String,
    /// The runs, with parts of a sweep joined.
    pub runs: Vec<Run>,
    complaints: Vec<String>,
}

impl Side {
    /// Reads the runs of the side `name`.
    pub fn read_runs(name: &str, paths: &[PathBuf]) -> Result<Self> {
        let inputs = paths.iter().map(|path| Input::read_input(path));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let shown = match inputs.as_slice() {
            [input] => input.shown.clone(),
            [first, .., last] => format!("{} to {}", first.shown, last.shown),
            [] => bad_input!("{name}: no run is named"),
        };
        let complaints = inputs.iter().flat_map(Input::first_complaints).collect();
        let runs = merge::join_sweeps(inputs.into_iter().map(Input::into_run).collect());
        Ok(Self {
            shown,
            runs,
            complaints,
        })
    }

    /// Returns a side that consists of `runs`.
    pub fn from_runs(shown: &str, runs: Vec<Run>) -> Self {
        Self {
            shown: shown.into(),
            runs,
            complaints: Vec::new(),
        }
    }

    /// Returns the results of the first run, from which the side's machine and unit are taken.
    pub fn first_results(&self) -> &Results {
        &self.runs[0].results
    }

    /// Returns complaints about the inputs, for people.
    pub fn complaints(&self) -> impl Iterator<Item = &String> {
        self.complaints.iter()
    }

    /// Returns the notes of the side's runs.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        let notes: BTreeSet<&String> = self
            .runs
            .iter()
            .flat_map(|run| &run.results.notes)
            .collect();
        notes.into_iter()
    }

    /// Returns the known source trees from which the side's images were built.
    pub fn trees(&self) -> Vec<String> {
        let builds = self.runs.iter();
        let builds = builds.filter_map(|run| run.results.build.clone());
        let short = |build: Build| build.short_tree();
        let mut trees: Vec<String> = builds.map(short).collect();
        trees.retain(|tree| !tree.is_empty());
        trees.dedup();
        trees
    }
}

/// Checks that no boot is on both sides, because the test requires distinct boots.
pub fn check_distinct(a: (&Side, &[PathBuf]), b: (&Side, &[PathBuf])) -> Result<()> {
    if a.0.runs.len() + b.0.runs.len() <= 2 {
        return Ok(());
    }
    let place = |path: &PathBuf| saved_runs::find(path).canonicalize().ok();
    let of_a: Vec<PathBuf> = a.1.iter().filter_map(place).collect();
    let named = |path: &&PathBuf| place(path).is_some_and(|path| of_a.contains(&path));
    let named = b.1.iter().find(named).map(|path| places::shown(path));
    let of_a = |run: &&Run| {
        let results = &run.results;
        let mut of_a = a.0.runs.iter();
        !results.began.is_empty() && of_a.any(|run| merge::is_one_boot(&run.results, results))
    };
    let boot = b.0.runs.iter().find(of_a).map(|run| run.label.clone());
    match named.or(boot) {
        Some(both) => bad_input!("{both} is among the runs of both A and B; name each run once"),
        None => Ok(()),
    }
}

/// Checks the units. Instructions can't be compared with time or with cycles.
pub fn check_units(a: &Side, b: &Side) -> Result<()> {
    for side in [a, b] {
        let unit = &side.first_results().unit;
        if let Some(other) = side.runs.iter().find(|run| run.results.unit != *unit) {
            bad_input!(
                "{} has runs that count {} and {}; name one of the runs",
                side.shown,
                unit_name(unit),
                unit_name(&other.results.unit)
            );
        }
    }
    let (a_unit, b_unit) = (&a.first_results().unit, &b.first_results().unit);
    if a_unit != b_unit {
        bad_input!(
            "{} counts {}, {} counts {}, and these units can't be compared; run both with the same --metric, \
             or see how each orders the cells: cargo xtask report {} {}",
            a.shown,
            unit_name(a_unit),
            b.shown,
            unit_name(b_unit),
            a.shown,
            b.shown
        );
    }
    let frequency = a.first_results().machine.cntfrq_hz;
    let mut runs = a.runs.iter().chain(&b.runs);
    let other = runs.find(|run| run.results.machine.cntfrq_hz != frequency);
    if let Some(other) = other.filter(|_| a_unit == "ticks") {
        bad_input!(
            "{} counts ticks of {frequency} Hz, {} ticks of {} Hz; run both on the same CPU model",
            a.shown,
            other.label,
            other.results.machine.cntfrq_hz
        );
    }
    Ok(())
}

/// Checks that each cell has the same unit in all runs of both sides.
pub fn check_cells(found: &Comparison<'_>) -> Result<()> {
    for pair in &found.pairs {
        let mut cells = pair.a.iter().chain(&pair.b);
        if let Some(other) = cells.find(|cell| cell.unit != pair.cell.unit) {
            bad_input!(
                "{} counts {} in one run and {} in another, and these units can't be compared; run both \
                 with the same --metric",
                pair.cell.title(),
                unit_name(&pair.cell.unit),
                unit_name(&other.unit)
            );
        }
    }
    Ok(())
}

fn unit_name(unit: &str) -> &str {
    if unit.is_empty() {
        "something unknown"
    } else {
        unit
    }
}

/// Reads `2%`, `2` or `0.5%`.
pub fn parse_percent(option: &str, text: &str) -> Result<f64> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => bad_input!("{option}: `{text}` is not a percentage; write 2% or 0.5%"),
    }
}
