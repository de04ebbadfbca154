// SPDX-License-Identifier: MIT OR Apache-2.0
use results::samples;

use super::*;

fn run(label: &str, began: &str, p50: u64) -> Run {
    let mut results = samples::results();
    results.began = began.into();
    for cell in &mut results.cells {
        if let Some(stats) = &mut cell.stats {
            stats.p50 = p50;
        }
    }
    Run {
        label: label.into(),
        results,
        commands: Vec::new(),
    }
}

fn moments<const N: usize>(runs: [Run; N]) -> Vec<Moment> {
    runs.map(Moment::of_one_run).into()
}

#[test]
fn a_cell_is_followed_through_runs() {
    let mut moments = moments([run("a", "2026-01", 30), run("b", "2026-02", 40)]);
    let rows = cells_over_time(&moments);
    assert_eq!(rows.len(), 1);
    let medians = rows[0]
        .medians
        .iter()
        .map(|median| median.map(|(median, _)| median));
    assert!(medians.eq([Some(30), Some(40)]));
    assert!(rows[0].has_changed());
    let text = document(&moments, &rows, true).terminal(None).join("\n");
    assert!(text.contains("1 of 1 cells changed"), "{text}");
    assert!(text.contains("wfi   30  40"), "{text}");
    let page = page(&moments, &rows);
    assert!(page.contains("Cells that changed"), "{page}");
    // Runs are named along the axis, without numbers between them.
    assert!(
        page.contains(">a</text>") && page.contains(">b</text>"),
        "{page}"
    );
    assert!(!page.contains(">0.5"), "{page}");
    // A run without the cell is not a moment.
    let mut missing = run("c", "2026-03", 7);
    missing.results.cells.clear();
    moments.push(Moment::of_one_run(missing));
    let alone = take_lone(&mut moments);
    assert!(alone.iter().map(|moment| moment.label.as_str()).eq(["c"]));
    assert_eq!(moments.len(), 2);
    // If an option separates a run from all others, a note names the option.
    let mut other = run("d", "2026-04", 7);
    for cell in &mut other.results.cells {
        cell.what.gap_us = 20;
    }
    let apart = apart_note(&Moment::of_one_run(other), &moments);
    assert_eq!(apart, " (gap-us 20, not 0)");
}

#[test]
fn repetitions_are_one_moment_with_their_median() {
    let again = [run("run 2", "2026-02", 36), run("run 3", "2026-03", 20)];
    let mut repeated = Moment::of_one_run(run("run 1", "2026-01", 30));
    repeated.runs.extend(again);
    let moments = [repeated, Moment::of_one_run(run("b", "2026-04", 40))];
    let rows = cells_over_time(&moments);
    let text = document(&moments, &rows, true).terminal(None).join("\n");
    assert!(text.contains("over 2 runs"), "{text}");
    assert!(text.contains("1: run 1 (3 times), "), "{text}");
    assert!(text.contains("wfi   30  40"), "{text}");
}

#[test]
fn what_never_changes_has_no_curve() {
    let moments = moments([run("a", "2026-01", 30), run("b", "2026-02", 30)]);
    let rows = cells_over_time(&moments);
    assert!(!rows[0].has_changed());
    assert!(!page(&moments, &rows).contains("Cells that changed"));
    // One run has no history.
    assert!(super::cells_over_time(&moments[..1]).is_empty());
}
