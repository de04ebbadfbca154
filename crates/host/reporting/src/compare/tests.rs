// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests verdicts on made-up runs.

mod gates;
mod kernels;
mod runs;

use std::fs;
use std::path::PathBuf;

use plan::{Wait, Workload};
use results::merge;
use results::{Cell, Counts, Emulator, Results, Stage, Stats};

use super::*;
use shell::args;
use shell::failure::is_bad_input;

/// A run with one cell. The cell's median is `total`, and one of its stages is `kick`.
fn run(total: u64, kick: u64, unit: &str) -> Results {
    let stats = |p50| Stats {
        count: 1000,
        p50,
        p90: p50 + 10,
        p99: p50 + 20,
        ..Stats::default()
    };
    let cell = Cell {
        what: plan::Cell {
            workload: Workload::Pingpong,
            wait: Wait::Wfi,
            ..plan::Cell::default()
        },
        unit: unit.into(),
        stats: Some(stats(total)),
        stages: vec![Stage {
            name: "kick".into(),
            stats: stats(kick),
        }],
        exits: Counts::from([("sgi".into(), 2000)]),
        ..Cell::default()
    };
    let emulator = Emulator {
        name: "QEMU".into(),
        version: "11.1.3".into(),
        ..Emulator::default()
    };
    let mut results = Results::new("virt", "max", Some(emulator));
    results.unit = unit.into();
    results.cells = vec![cell];
    results
}

fn insns(total: u64) -> Results {
    run(total, total / 4, "insns")
}

/// Returns five runs in a unit of time. The runs' medians are 1 % apart, and all are longer by `percent` per
/// cent.
fn five(percent: u64) -> Vec<Results> {
    (0..5)
        .map(|number| run((500 + number * 5) * (100 + percent) / 100, 1, "ticks"))
        .collect()
}

/// Compares runs as the command line `line` does. In the line, `A` and `B` stand for the runs.
fn compared(line: &str, a: &[Results], b: &[Results]) -> Result<(String, Judgement)> {
    as_shown(line, a, b, true, None)
}

/// Like [`compared`], as shown on a terminal of this width, with or without all cells and columns.
fn as_shown(
    line: &str,
    a: &[Results],
    b: &[Results],
    wide: bool,
    width: Option<usize>,
) -> Result<(String, Judgement)> {
    let parent = tempfile::tempdir().unwrap();
    let files = |name: &str, runs: &[Results]| -> Vec<PathBuf> {
        let write = |(number, results): (usize, &Results)| {
            let path = parent.path().join(format!("{name}{number}.json"));
            fs::write(&path, results.to_json().unwrap()).unwrap();
            path
        };
        runs.iter().enumerate().map(write).collect()
    };
    let (a, b) = (files("a", a), files("b", b));
    let mut words: Vec<String> = vec!["compare".into()];
    for word in line.split_whitespace() {
        let paths: &[PathBuf] = match word {
            "A" => &a,
            "B" => &b,
            _ => &[],
        };
        words.extend(paths.iter().map(|path| path.display().to_string()));
        words.extend(paths.is_empty().then(|| word.to_owned()));
    }
    let mut args: CompareArgs = args::parse(&words)?;
    args.format.wide = wide;
    let (lines, _, judgement) = judge_sides(&args)?;
    Ok((lines.terminal(width).join("\n"), judgement))
}

/// Returns the gate's verdict on B, which is A after `change`.
fn gated(options: &str, a: &[Results], change: impl Fn(&mut Results)) -> Judgement {
    let mut b = a.to_vec();
    b.iter_mut().for_each(change);
    let line = format!("A --with B --fail-if-worse {options}");
    compared(&line, a, &b).unwrap().1
}

fn failed(judgement: &Judgement, why: &str) {
    assert!(
        matches!(judgement, Judgement::Failed(text) if text.contains(why)),
        "{judgement:?}"
    );
}

fn not_tried(judgement: &Judgement, why: &str) {
    assert!(
        matches!(judgement, Judgement::NotTried(text) if text.contains(why)),
        "{judgement:?}"
    );
}

#[test]
fn the_page_has_the_answer_the_pair_and_the_machine_in_this_order() {
    let folder = tempfile::tempdir().unwrap();
    let paths =
        [("a", run(400, 100, "insns")), ("b", run(420, 120, "insns"))].map(|(name, results)| {
            let path = folder.path().join(format!("{name}.json"));
            std::fs::write(&path, results.to_json().unwrap()).unwrap();
            path
        });
    let (_, page, _) = judge_sides(&CompareArgs::of(paths.into())).unwrap();
    let parts = [
        "1 worse, 0 better",
        ">400</text>",
        ">420 (+5.0 %)</text>",
        "All cells of both",
        "Not modelled",
        "Board",
    ];
    let places: Vec<usize> = parts.iter().filter_map(|part| page.find(part)).collect();
    assert!(
        places.is_sorted() && places.len() >= parts.len() - 1,
        "{places:?} in {page}"
    );
    // Both sides ran on the same machine, and no cell of B is better.
    assert_eq!(page.matches("<th scope=\"row\">Board</th>").count(), 1);
    assert!(!page.contains("B, better"));
}

#[test]
fn a_slowdown_is_found_in_its_stage() {
    let told = |a, b| compared("A B", &[a], &[b]).unwrap().0;
    let text = told(run(400, 100, "insns"), run(420, 120, "insns"));
    assert!(text.contains("+20  +5.0  worse    kick +20"), "{text}");
    assert!(
        text.contains("1 worse, 0 better; most in pingpong: WFI (+5.0 %)."),
        "{text}"
    );
    let text = told(run(420, 120, "insns"), run(400, 100, "insns"));
    assert!(text.contains("-20  -4.8  better   kick -20"), "{text}");
    let text = told(insns(400), insns(400));
    assert!(
        text.contains("0 worse, 0 better, 1 no difference."),
        "{text}"
    );
}

#[test]
fn in_instructions_the_gate_is_0_unless_said_otherwise() {
    let judged = |line: &str| compared(line, &[insns(80)], &[insns(81)]).unwrap().1;
    assert_eq!(judged("A B"), Judgement::Passed);
    failed(
        &judged("A B --fail-if-worse"),
        "median of 1 cell worse by more than 0 %, up to 1.2 %",
    );
    assert_eq!(judged("A B --fail-if-worse 2%"), Judgement::Passed);
    assert_eq!(judged("B A --fail-if-worse"), Judgement::Passed);
    assert_eq!(judged("A --with A --fail-if-worse"), Judgement::Passed);
    for text in ["", "x", "-1%", "inf", "NaN%"] {
        assert!(is_bad_input(&Gate::parse(text).unwrap_err()), "{text}");
    }
}

/// Like [`insns`], with `path` as the path without bookkeeping.
fn with_path(total: u64, path: u64) -> Results {
    let mut results = insns(total);
    let stats = |p50| Stats {
        count: 1000,
        p50,
        ..Stats::default()
    };
    results.cells[0].critical = Some(results::Critical {
        samples: 1000,
        path: stats(path + 10),
        net: stats(path),
        exits: Counts::from([("sgi".into(), 2000)]),
        ..Default::default()
    });
    results
}

#[test]
fn the_work_of_all_cpus_leads_and_the_path_is_gated_too() {
    let judged = |a, b| compared("A B --fail-if-worse", &[a], &[b]).unwrap();
    let (text, judgement) = judged(with_path(80, 47), with_path(79, 48));
    failed(
        &judgement,
        "path of 1 cell worse by more than 0 %, up to 2.1 %",
    );
    for part in [
        "80 (47)  79 (48)  -1  -1.2  better",
        "0 worse, 1 better",
        "path 47 to 48 (+2.1 %), worse",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (text, judgement) = judged(with_path(80, 47), with_path(81, 47));
    failed(
        &judgement,
        "median of 1 cell worse by more than 0 %, up to 1.2 %",
    );
    assert!(
        text.starts_with("B against A, exact: 1 worse, 0 better"),
        "{text}"
    );
    let (_, judgement) = judged(with_path(80, 47), with_path(80, 47));
    assert_eq!(judgement, Judgement::Passed);
    // These runs have cells with a path and cells without.
    let timer = |mut results: Results| {
        let mut cell = insns(500).cells.remove(0);
        cell.what.workload = Workload::Timer;
        cell.unit = results::VIRTUAL.into();
        results.cells.push(cell);
        results
    };
    let (text, _) = judged(timer(with_path(80, 47)), timer(with_path(80, 48)));
    for part in [
        "in the unit of the cell",
        "instructions   80 (47)",
        "counter ticks      500",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_unit_is_that_of_the_cells() {
    let mut timer = insns(500);
    timer.cells[0].unit = results::VIRTUAL.into();
    let text = compared("A B", &[timer.clone()], &[timer]).unwrap().0;
    assert!(text.contains("Medians in counter ticks. Exact"), "{text}");
}

#[test]
fn a_screen_has_the_cells_that_differ_and_counts_the_others() {
    let mut a = insns(500);
    let mut other = a.cells[0].clone();
    other.what.workload = Workload::Timer;
    a.cells.push(other);
    let mut b = a.clone();
    if let Some(stats) = &mut b.cells[1].stats {
        stats.p50 += 5;
    }
    let (text, _) = as_shown("A B", &[a], &[b], false, Some(80)).unwrap();
    assert_eq!(text.matches("  worse").count(), 1, "{text}");
    assert!(
        text.contains("timer") && !text.contains("\npingpong"),
        "{text}"
    );
    assert!(text.contains("1 cell without a difference"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn a_wake_up_without_ipi_is_one_row_of_both_deliveries_if_they_cost_the_same() {
    let mut a = insns(500);
    a.cells[0].what.wait = Wait::Spin;
    a.cells[0].what.wake = plan::Wake::Elide;
    let mut direct = a.cells[0].clone();
    direct.what.deliver = plan::Deliver::Direct;
    a.cells.push(direct);
    let text = |by: [u64; 2]| {
        let mut b = a.clone();
        for (cell, by) in b.cells.iter_mut().zip(by) {
            cell.stats.as_mut().unwrap().p50 += by;
        }
        as_shown("A B", &[a.clone()], &[b], false, Some(80))
            .unwrap()
            .0
    };
    let equal = text([5, 5]);
    assert_eq!(equal.matches("\npingpong: spins").count(), 1, "{equal}");
    assert!(!equal.contains("(direct)  "), "{equal}");
    let unequal = text([5, 6]);
    assert_eq!(unequal.matches("\npingpong: spins").count(), 2, "{unequal}");
    assert!(unequal.contains("(direct)  "), "{unequal}");
}

#[test]
fn cells_that_are_not_in_common_are_told_apart_by_what_differs() {
    let (a, mut b) = (insns(100), insns(100));
    b.cells[0].what.gap_us = 20;
    let of = |results: &Results| results.cells.first().cloned();
    let (a, b) = (of(&a), of(&b));
    assert_eq!(
        first_difference([a.as_ref(), b.as_ref()]),
        "gap-us is 0 in A and 20 in B"
    );
    assert!(first_difference([a.as_ref(), None]).ends_with("; B: none"));
}
