// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the verdicts themselves, and not their output.

use super::*;
use crate::samples::measured_cell;
use crate::{Critical, Results, Stage, Stats};
use plan::Wait;

/// Returns a run with one cell. The stage `kick` is a quarter of the cell's median.
fn run(wait: Wait, unit: &str, median: u64) -> Run {
    let stats = Stats {
        count: 24,
        p50: median,
        ..Stats::default()
    };
    let mut cell = measured_cell(wait, unit, stats);
    cell.stages.push(Stage {
        name: "kick".into(),
        stats: Stats {
            p50: median / 4,
            ..stats
        },
    });
    let results = Results {
        unit: unit.into(),
        cells: vec![cell],
        ..Results::default()
    };
    Run::new("x", results)
}

fn runs(medians: &[u64]) -> Vec<Run> {
    let runs = medians
        .iter()
        .map(|&median| run(Wait::Wfi, "ticks", median));
    runs.collect()
}

#[test]
fn an_instruction_more_is_a_difference() {
    for (b, verdict, by) in [
        (400, Verdict::NoDifference, 0.0),
        (401, Verdict::Worse, 1.0),
        (360, Verdict::Better, -40.0),
    ] {
        let sides = [400, b].map(|median| [run(Wait::Wfi, "insns", median)]);
        let comparison = Comparison::new(&sides[0], &sides[1], 0.05);
        assert!(comparison.exact);
        assert_eq!(comparison.count_verdict(verdict), 1);
        assert_eq!(
            comparison.pairs[0].deciding_figure().unwrap().difference(),
            by
        );
    }
}

#[test]
fn a_difference_has_its_stage() {
    let sides = [400, 440].map(|median| [run(Wait::Wfi, "insns", median)]);
    let comparison = Comparison::new(&sides[0], &sides[1], 0.05);
    assert_eq!(comparison.pairs[0].stage, Some(("kick".into(), 10.0)));
}

#[test]
fn time_takes_five_runs_however_far_apart_they_are() {
    let verdict = |a: &[u64], b: &[u64]| {
        let (a, b) = (runs(a), runs(b));
        Comparison::new(&a, &b, 0.05).pairs[0].verdict()
    };
    assert_eq!(verdict(&[400], &[4000]), Verdict::TooFew);
    assert_eq!(verdict(&[1, 2, 3, 4], &[51, 52, 53, 54]), Verdict::TooFew);
    let five = [400, 401, 402, 403, 404];
    assert_eq!(verdict(&five, &[1, 2, 3, 4]), Verdict::TooFew);
    assert_eq!(verdict(&five, &[410, 411, 412, 413, 414]), Verdict::Worse);
    assert_eq!(verdict(&five, &[310, 311, 312, 313, 314]), Verdict::Better);
    assert_eq!(verdict(&five, &five), Verdict::NoDifference);
    // If all runs have the same value, it is not tested, and is no difference. With few runs, equality proves nothing.
    assert_eq!(verdict(&[7; 5], &[7; 5]), Verdict::NoDifference);
    assert_eq!(verdict(&[7; 2], &[7; 2]), Verdict::TooFew);
}

#[test]
fn more_cells_need_more_runs() {
    let sides = |runs: u64, cells: u64| {
        let side = |shift: u64| -> Vec<Run> {
            let each = |number: u64| {
                let mut all = run(Wait::Wfi, "ticks", 1000 + number + shift);
                let first = all.results.cells[0].clone();
                all.results.cells = (0..cells)
                    .map(|gap| {
                        let mut cell = first.clone();
                        cell.what.gap_us = gap as u32;
                        cell
                    })
                    .collect();
                all
            };
            (0..runs).map(each).collect()
        };
        (side(0), side(100))
    };
    for (runs, cells, found, needed) in [(5, 6, 6, 5), (5, 7, 0, 6), (6, 7, 7, 6)] {
        let (a, b) = sides(runs, cells);
        let comparison = Comparison::new(&a, &b, 0.05);
        assert_eq!(
            comparison.count_verdict(Verdict::Worse),
            found,
            "{runs} {cells}"
        );
        assert_eq!(
            (comparison.tests, comparison.runs_needed()),
            (cells as usize, needed)
        );
    }
}

#[test]
fn no_difference_says_what_would_have_been_seen_and_with_how_many_runs_more_is() {
    let (a, b) = (
        runs(&[990, 995, 1000, 1005, 1010]),
        runs(&[991, 996, 1000, 1004, 1009]),
    );
    let comparison = Comparison::new(&a, &b, 0.05);
    let sees = comparison.pairs[0]
        .deciding_figure()
        .unwrap()
        .least_detectable_percent()
        .unwrap();
    // The runs differ by at most 1 %.
    assert!((1.0..2.4).contains(&sees), "{sees}");
    let runs = |percent| comparison.runs_to_see(percent)[0].unwrap();
    assert_eq!(runs(5.0), 5);
    assert!(
        runs(1.0) > 8 && runs(0.5) > 30,
        "{} {}",
        runs(1.0),
        runs(0.5)
    );
}

#[test]
fn what_b_lacks_is_lost() {
    let measured = || run(Wait::Wfi, "ticks", 400);
    let mut skipped = measured();
    skipped.results.cells[0].stats = None;
    skipped.results.cells[0].skipped = Some("no WFxT".into());
    let lost = |b: &[Run]| {
        let a = [measured()];
        let comparison = Comparison::new(&a, b, 0.05);
        let lost = comparison
            .lost
            .iter()
            .map(|lost| (lost.has, lost.of, lost.why.is_some()));
        (
            lost.collect::<Vec<_>>(),
            comparison.pairs.len(),
            comparison.added.len(),
        )
    };
    assert_eq!(lost(&[measured()]), (vec![], 1, 0));
    assert_eq!(
        lost(&[run(Wait::Wfe, "ticks", 1)]),
        (vec![(0, 1, false)], 0, 1)
    );
    assert_eq!(
        lost(std::slice::from_ref(&skipped)),
        (vec![(0, 1, true)], 0, 0)
    );
    assert_eq!(
        lost(&[measured(), skipped.clone()]),
        (vec![(1, 2, true)], 1, 0)
    );
    let none = [skipped];
    let comparison = Comparison::new(&none, &none, 0.05);
    assert_eq!(
        (
            comparison.count_verdict(Verdict::Unknown),
            comparison.lost.len()
        ),
        (1, 0)
    );
}

#[test]
fn a_cell_twice_in_b_is_named_and_nothing_else_is_lost() {
    let of = |waits: &[Wait]| {
        let mut all = run(waits[0], "insns", 400);
        all.results.cells = waits
            .iter()
            .flat_map(|&wait| run(wait, "insns", 400).results.cells)
            .collect();
        all
    };
    let a = [of(&[Wait::Wfi, Wait::Wfe, Wait::Spin])];
    let told = |b: &[Run]| {
        let found = Comparison::new(&a, b, 0.05);
        let again = found.again.iter();
        let again: Vec<_> = again
            .map(|again| (again.cell.what.wait, again.has, again.of))
            .collect();
        (found.lost.len(), again)
    };
    let twice = of(&[Wait::Wfi, Wait::Wfe, Wait::Spin, Wait::Wfe]);
    assert_eq!(told(&[twice]), (0, vec![(Wait::Wfe, 2, 1)]));
    // In a log of two boots, each cell occurs twice, and none is lost. If one of two runs lacks two cells, these
    // two cells count as lost.
    let boots = of(&[
        Wait::Wfi,
        Wait::Wfe,
        Wait::Spin,
        Wait::Wfi,
        Wait::Wfe,
        Wait::Spin,
    ]);
    assert_eq!(told(&[boots]), (0, vec![]));
    assert_eq!(told(&[a[0].clone(), of(&[Wait::Wfi])]), (2, vec![]));
}

#[test]
fn a_path_that_one_side_alone_knows_is_told() {
    let a = run(Wait::Wfi, "insns", 400);
    let mut b = a.clone();
    b.results.cells[0].critical = Some(Critical::default());
    let differ = |a: &Run, b: &Run| {
        let sides = [a, b].map(|run| [run.clone()]);
        Comparison::new(&sides[0], &sides[1], 0.05).path_difference()
    };
    assert_eq!(differ(&a, &a), None);
    assert_eq!(differ(&b, &b), None);
    let found = differ(&a, &b).unwrap();
    assert_eq!(
        (found.aspect, found.what.as_str()),
        ("path", "path of 1 cell")
    );
    assert_eq!((found.a.as_str(), found.b.as_str()), ("not known", "known"));
}
