// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests comparisons of the same cells in instructions and in cycles.

use results::{Results, Stats};

use super::*;
use plan::{Wait, Wait as W};

/// Returns cells with the waits and medians in `medians`.
fn cells(unit: &str, medians: &[(Wait, u64)]) -> Vec<Cell> {
    let cell = |&(wait, p50): &(Wait, u64)| {
        let stats = Stats {
            count: 100,
            p50,
            ..Stats::default()
        };
        results::samples::measured_cell(wait, unit, stats)
    };
    medians.iter().map(cell).collect()
}

/// Returns a run in instructions and a run in cycles, which have three cells in common.
pub(crate) fn runs() -> Vec<Run> {
    let run = |label: &str, mut results: Results, medians: &[(Wait, u64)]| {
        results.cells = cells(&results.unit, medians);
        Run {
            label: label.into(),
            results,
            commands: Vec::new(),
        }
    };
    let insns = results::samples::results();
    let cycles = results::samples::results_in_cycles();
    vec![
        run(
            "A",
            insns,
            &[(W::Busy, 150), (W::Wfi, 200), (W::Spin, 300), (W::Wfe, 90)],
        ),
        run(
            "B",
            cycles,
            &[
                (W::Wfi, 8000),
                (W::Spin, 6000),
                (W::Busy, 4000),
                (W::Wfet, 1),
            ],
        ),
    ]
}

/// Returns the lines of a table: groups, titles and rows.
fn lines(columns: &[Column]) -> Vec<String> {
    let line =
        |text: &dyn Fn(&Column) -> String| columns.iter().map(text).collect::<Vec<_>>().join(" ");
    let mut lines = vec![
        line(&|column| column.group().into()),
        line(&|column| column.title().into()),
    ];
    let rows = columns[0].texts().len();
    lines.extend((0..rows).map(|row| line(&|column| column.texts()[row].clone())));
    lines
}

#[test]
fn cells_of_both_machines_stand_beside_each_other_in_their_own_units() {
    let runs = runs();
    let groups = comparable_groups(&runs);
    assert_eq!((groups.len(), groups[0].cell_count()), (1, 3));
    assert_eq!(groups[0].reference_name().as_deref(), Some("wfi"));
    let table = lines(&groups[0].columns());
    assert_eq!(
        table,
        [
            " A: instructions A: instructions B: cycles B: cycles",
            "wait p50 ratio p50 ratio",
            "busy 150 0.75 4,000 0.50",
            "wfi 200 1.00 8,000 1.00",
            "spin 300 1.50 6,000 0.75",
        ]
    );
}

#[test]
fn where_the_orders_differ_is_said() {
    let runs = runs();
    assert_eq!(
        order_sentences(&comparable_groups(&runs)),
        [
            "pingpong: by cycles (B), 1 of 3 pairs of cells are in another order than by \
             instructions (A), cheapest first: wfi is 3rd, not 2nd; spin is 2nd, not 3rd."
        ]
    );
}

#[test]
fn numbers_tell_cells_apart_by_name() {
    let mut runs = runs();
    for run in &mut runs {
        let mut longer = run.results.cells[0].clone();
        longer.what.gap_us = 20;
        run.results.cells = vec![run.results.cells[0].clone(), longer];
        run.results
            .cells
            .iter_mut()
            .for_each(|cell| cell.what.wait = W::Wfi);
    }
    let groups = comparable_groups(&runs);
    let names: Vec<String> = groups[0]
        .rows
        .iter()
        .map(|row| groups[0].row_name(row))
        .collect();
    assert_eq!(names, ["wfi", "wfi, gap-us 20"]);
}

#[test]
fn one_machine_or_nothing_in_common_has_no_group() {
    let mut runs = runs();
    assert!(comparable_groups(&runs[..1]).is_empty() && comparable_groups(&[]).is_empty());
    for cell in &mut runs[1].results.cells {
        cell.cpus = 64;
    }
    assert!(
        comparable_groups(&runs).is_empty()
            && order_sentences(&comparable_groups(&runs)).is_empty()
    );
}

#[test]
fn a_third_machine_may_lack_a_cell() {
    let mut runs = runs();
    let mut third = runs[1].clone();
    third.label = "C".into();
    third.results.cells.retain(|cell| cell.what.wait == W::Busy);
    runs.push(third);
    let groups = comparable_groups(&runs);
    // Only a cell that every machine has measured can be the reference.
    assert_eq!(groups[0].reference_name().as_deref(), Some("busy"));
    let table = lines(&groups[0].columns());
    assert!(table[3].ends_with(" - -"), "{table:#?}");
    assert_eq!(order_sentences(&groups).len(), 1);
}
