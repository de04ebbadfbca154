// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins several inputs. The parts of a sweep become one run, while runs on other machines or at other times stay
//! separate.

mod boots;

pub use boots::{distinct_runs, is_one_boot, merge_run_texts};

use std::collections::BTreeSet;

use plan::{Shape, Under, Workload};

use crate::{Cell, Machine, Origin, Results, Serrors, core_clocks};

/// Measurements on one machine, with each cell once.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name that distinguishes the run from the others.
    pub label: String,
    /// The run's machine and cells.
    pub results: Results,
    /// The commands that made the run, if they are known.
    pub commands: Vec<String>,
}

impl Run {
    /// Creates a run whose commands are not known.
    pub fn new(label: &str, results: Results) -> Self {
        Self {
            label: label.into(),
            results,
            commands: Vec::new(),
        }
    }
}

/// Returns the runs in `inputs`. Parts of one sweep become one run.
pub fn join_sweeps(inputs: Vec<Run>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for part in distinct_runs(inputs) {
        match runs.iter_mut().find(|run| is_next_part(run, &part)) {
            Some(run) => append_part(run, part),
            None => runs.push(part),
        }
    }
    make_names_unique(&mut runs);
    runs
}

/// Groups repetitions, which are runs that differ only in their time.
pub fn group_repetitions(runs: &[Run]) -> Vec<Vec<&Run>> {
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for run in runs {
        let mut known = groups.iter_mut();
        match known.find(|group| is_one_setup(&group[0].results, &run.results)) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

/// Whether `part` is a part of the same sweep as `run`, and has no cell in common with `run`.
fn is_next_part(run: &Run, part: &Run) -> bool {
    let (a, b) = (&run.results, &part.results);
    let known: BTreeSet<_> = a.cells.iter().map(|cell| cell.key()).collect();
    is_one_setup(a, b) && b.cells.iter().all(|cell| !known.contains(&cell.key()))
}

/// Whether `a` and `b` have images of the same sources, the same machine and the same unit.
fn is_one_setup(a: &Results, b: &Results) -> bool {
    a.board == b.board
        && a.is_of_same_sources(b)
        && is_one_machine(&a.machine, &b.machine)
        && a.fidelity == b.fidelity
        && a.unit == b.unit
        // The text contains the number of cycles per tick, which each boot measures again.
        && (a.unit_how == b.unit_how || a.unit == "cycles")
}

/// Whether two descriptions are of the same machine. The core's clock is measured with an error of 1 in 500. The clocks
/// of all measuring cores are measured anew in each boot, as values are, and may differ.
fn is_one_machine(a: &Machine, b: &Machine) -> bool {
    let apart = a.core_hz.abs_diff(b.core_hz);
    let alike = Machine {
        core_hz: a.core_hz,
        core_clocks: a.core_clocks.clone(),
        ..b.clone()
    };
    *a == alike && apart <= a.core_hz.min(b.core_hz) / 500
}

fn append_part(run: &mut Run, part: Run) {
    run.label = format!("{}+{}", run.label, part.label);
    run.commands.extend(part.commands);
    let (all, more) = (&mut run.results, part.results);
    all.cells.extend(more.cells);
    // Each part of a sweep has every nth cell, so the cells are sorted again.
    all.cells.sort_by_key(rank_in_plan);
    all.incomplete |= more.incomplete;
    all.missing.extend(more.missing);
    all.damaged.extend(more.damaged);
    all.problems.extend(more.problems);
    all.serrors.add_counts(&more.serrors);
    core_clocks::add_boot(&mut all.machine.core_clocks, more.machine.core_clocks);
    let new: Vec<String> = more
        .notes
        .into_iter()
        .filter(|note| !all.notes.contains(note))
        .collect();
    all.notes.extend(new);
}

/// Returns the rank of a cell in its plan. Cells of a workload and shape are sorted by the layer below the guest, then
/// in the order of the plan.
fn rank_in_plan(cell: &Cell) -> (Workload, Shape, Under, [u64; plan::COUNT]) {
    let plan::Cell {
        workload, shape, ..
    } = cell.what;
    (workload, shape, cell.under, cell.what.rank())
}

/// Appends numbers to the names of runs that share a name.
fn make_names_unique(runs: &mut [Run]) {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for run in runs {
        let numbered = (2..).map(|number| format!("{} ({number})", run.label));
        let mut names = std::iter::once(run.label.clone()).chain(numbered);
        if let Some(free) = names.find(|name| !known.contains(name)) {
            run.label = free;
        }
        known.insert(run.label.clone());
    }
}

/// Returns all runs in the form of one results.json. [`join_sweeps`] divides it into runs again.
pub fn into_one(runs: &[Run]) -> Results {
    let [first, ..] = runs else {
        return Results::default();
    };
    let mut all = first.results.clone();
    if runs.len() == 1 {
        return all;
    }
    all.cells.clear();
    let (mut damaged, mut problems, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    all.missing.clear();
    all.serrors = Serrors::default();
    for run in runs {
        let results = &run.results;
        all.serrors.add_counts(&results.serrors);
        let labelled = |texts: &[String]| -> Vec<String> {
            texts
                .iter()
                .map(|text| format!("{}: {text}", run.label))
                .collect()
        };
        all.incomplete |= results.incomplete;
        all.missing.extend(labelled(&results.missing));
        damaged.extend(labelled(&results.damaged));
        problems.extend(labelled(&results.problems));
        notes.extend(labelled(&results.notes));
        all.cells
            .extend(results.cells.iter().cloned().map(|mut cell| {
                cell.run.clone_from(&run.label);
                cell
            }));
        all.runs.push(Origin::of(&run.label, results));
    }
    (all.damaged, all.problems, all.notes) = (damaged, problems, notes);
    all
}
