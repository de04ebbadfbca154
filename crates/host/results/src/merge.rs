// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins several inputs: the parts of a sweep become one run again, runs of
//! other machines or at other times stay separate.

mod boots;

pub use boots::{boots, is_one_boot};

use std::collections::BTreeSet;

use plan::{Shape, Under, Workload};

use crate::{Cell, Machine, Origin, Results, Serrors, core_clocks};

/// Measurements on one machine, each cell once.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name that distinguishes it from the others.
    pub label: String,
    /// Its machine and its cells.
    pub results: Results,
    /// The commands that made it, as far as they are known.
    pub commands: Vec<String>,
}

/// Returns the runs of some inputs: a part of a sweep continues its run.
pub fn runs(inputs: Vec<Run>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for part in boots(inputs) {
        match runs.iter_mut().find(|run| continues(run, &part)) {
            Some(run) => join(run, part),
            None => runs.push(part),
        }
    }
    name_apart(&mut runs);
    runs
}

/// Whether `part` is a further part of the sweep `run`: the same
/// images, the same machine, the same unit, and no cell that `run` has.
fn continues(run: &Run, part: &Run) -> bool {
    let (a, b) = (&run.results, &part.results);
    let same = a.board == b.board
        && a.build == b.build
        && is_one_machine(&a.machine, &b.machine)
        && a.fidelity == b.fidelity
        && a.unit == b.unit
        // Each boot measures again how many cycles a tick has.
        && (a.unit_how == b.unit_how || a.unit == "cycles");
    let known: BTreeSet<_> = a.cells.iter().map(|cell| cell.key()).collect();
    same && b.cells.iter().all(|cell| !known.contains(&cell.key()))
}

/// Whether two descriptions are of one machine. The clock of its core is measured,
/// to 1 in 500; the clocks of all that measured belong to a boot, like values.
fn is_one_machine(a: &Machine, b: &Machine) -> bool {
    let apart = a.core_hz.abs_diff(b.core_hz);
    let alike = Machine {
        core_hz: a.core_hz,
        core_clocks: a.core_clocks.clone(),
        ..b.clone()
    };
    *a == alike && apart <= a.core_hz.min(b.core_hz) / 500
}

fn join(run: &mut Run, part: Run) {
    run.label = format!("{}+{}", run.label, part.label);
    run.commands.extend(part.commands);
    let (all, more) = (&mut run.results, part.results);
    all.cells.extend(more.cells);
    // Each part has every nth cell.
    all.cells.sort_by_key(rank);
    all.incomplete |= more.incomplete;
    all.missing.extend(more.missing);
    all.damaged.extend(more.damaged);
    all.problems.extend(more.problems);
    all.serrors.add(&more.serrors);
    core_clocks::add(&mut all.machine.core_clocks, more.machine.core_clocks);
    let new: Vec<String> = more
        .notes
        .into_iter()
        .filter(|note| !all.notes.contains(note))
        .collect();
    all.notes.extend(new);
}

/// Returns the rank of a cell among those of one plan: within workload and shape by the
/// layer below the guest, then in the order of the plan.
fn rank(cell: &Cell) -> (Workload, Shape, Under, [u64; plan::COUNT]) {
    let plan::Cell {
        workload, shape, ..
    } = cell.what;
    (workload, shape, cell.under, cell.what.rank())
}

/// Numbers runs that would have the same name.
fn name_apart(runs: &mut [Run]) {
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

/// Returns all runs as one results.json; [`runs`] divides it again.
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
        all.serrors.add(&results.serrors);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CoreClock;
    use crate::samples::{in_cycles, results};

    fn input(label: &str, cells: std::ops::Range<usize>) -> Run {
        let mut results = results();
        results.cells = results.cells[cells].to_vec();
        Run {
            label: label.into(),
            results,
            commands: Vec::new(),
        }
    }

    #[test]
    fn parts_of_a_sweep_are_one_run() {
        let parts = vec![input("a", 0..1), input("b", 1..2)].into_iter();
        let runs = runs(
            parts
                .map(|mut part| {
                    part.results.serrors.corrected = 2;
                    part
                })
                .collect(),
        );
        assert_eq!(runs[0].results.serrors.corrected, 4);
        assert_eq!(runs.len(), 1);
        assert_eq!(
            (runs[0].label.as_str(), runs[0].results.cells.len()),
            ("a+b", 2)
        );
    }

    #[test]
    fn a_cell_twice_makes_two_runs_and_so_does_another_machine() {
        let mut other = input("a", 1..2);
        other.results.machine.cpus = 64;
        let runs = runs(vec![input("a", 0..1), input("a", 0..2), other]);
        let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
        assert_eq!(labels, ["a", "a (2)", "a (3)"]);
    }

    #[test]
    fn other_images_are_another_run() {
        let built = |label: &str, cells, rustc: &str| {
            let mut run = input(label, cells);
            run.results.build = Some(crate::Build {
                rustc: rustc.into(),
                ..crate::Build::default()
            });
            run
        };
        let count = |rustc| runs(vec![built("a", 0..1, "1.95.0"), built("b", 1..2, rustc)]).len();
        assert_eq!((count("1.95.0"), count("1.96.0")), (1, 2));
        // And each keeps its own in a file with both.
        let both = runs(vec![built("a", 0..1, "1.95.0"), built("b", 0..1, "1.96.0")]);
        let again = Run {
            results: into_one(&both),
            ..input("c", 0..0)
        };
        let builds = runs(vec![again]).into_iter().map(|run| run.results.build);
        let builds: Vec<String> = builds.map(|build| build.unwrap().rustc).collect();
        assert_eq!(builds, ["1.95.0", "1.96.0"]);
    }

    #[test]
    fn the_clock_of_a_core_is_measured_anew_in_each_part() {
        let part = |label, cells: std::ops::Range<usize>, core_hz, how: &str| {
            let mut input = input(label, 0..0);
            input.results = in_cycles();
            input.results.cells = in_cycles().cells[cells].to_vec();
            input.results.machine.core_hz = core_hz;
            input.results.machine.core_clocks = vec![CoreClock {
                begin_hz: Some(core_hz),
                drift_ppm: Some(core_hz as i64 % 1000),
                ..CoreClock::default()
            }];
            input.results.unit_how = how.into();
            input
        };
        let whole = |second| {
            let first = part("a", 0..1, 2_600_000_000, "104.000");
            runs(vec![first, part("b", 1..2, second, "104.01")]).len()
        };
        assert_eq!(whole(2_600_900_000), 1);
        // The clocks of all that measured are from the part in which they drifted most.
        let first = part("a", 0..1, 2_600_000_000, "104.000");
        let one = runs(vec![first, part("b", 1..2, 2_600_900_007, "104.036")]);
        let clocks = &one[0].results.machine.core_clocks;
        assert_eq!((clocks.len(), clocks[0].drift_ppm), (1, Some(7)));
        assert_eq!(whole(2_700_000_000), 2);
        assert_eq!(whole(0), 2);
        // Nor are runs of different units ever joined.
        let apart = runs(vec![input("a", 0..1), part("b", 1..2, 0, "x")]);
        assert_eq!(apart.len(), 2);
    }

    #[test]
    fn what_was_put_together_comes_apart_again() {
        let mut damaged = input("a", 0..1);
        damaged.results.damaged.push("cell 7".into());
        let serrors = Serrors {
            left: 1,
            corrected: 2,
            restartable: 3,
        };
        damaged.results.serrors = serrors;
        let before = runs(vec![damaged, input("b", 0..2)]);
        let one = into_one(&before);
        assert_eq!(one.damaged, ["a: cell 7"]);
        assert_eq!(one.serrors, serrors);
        let text = one.to_json().unwrap();
        let again = Run {
            results: serde_json::from_str(&text).unwrap(),
            ..input("c", 0..0)
        };
        let after = runs(vec![again]);
        assert_eq!(after.len(), 2);
        assert_eq!(after[0].results.damaged, ["cell 7"]);
        assert_eq!(after[0].results.serrors, serrors);
        assert_eq!(after[1].results.serrors.left, 0);
        assert_eq!(
            (after[1].label.as_str(), after[1].results.cells.len()),
            ("b", 2)
        );
        assert!(
            after[1]
                .results
                .cells
                .iter()
                .all(|cell| cell.run.is_empty())
        );
    }
}
