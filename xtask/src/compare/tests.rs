// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts, and what is refused.

use std::fs;
use std::path::PathBuf;

use plan::{Wait, Workload};
use results::{Cell, Origin, Results, Stage, Stats};

use super::*;
use crate::failure::is_bad_input;

/// A run with one cell: a median of `total`, of which `kick` is a stage.
fn run(total: u64, kick: u64, unit: &str) -> Results {
    let around = |value: u64| vec![(value - 1, 10), (value, 980), (value + 100, 10)];
    let stats = Stats {
        count: 1000,
        p50: total,
        ..Stats::default()
    };
    let cell = Cell {
        what: plan::Cell {
            workload: Workload::Pingpong,
            wait: Wait::Wfi,
            ..plan::Cell::default()
        },
        unit: unit.into(),
        stats: Some(stats),
        stages: vec![Stage {
            name: "kick".into(),
            stats,
        }],
        histograms: [
            ("total".into(), around(total)),
            ("kick".into(), around(kick)),
        ]
        .into(),
        ..Cell::default()
    };
    let mut results = Results::new("virt", "max", None);
    results.unit = unit.into();
    results.cells = vec![cell];
    results
}

fn input(results: Results) -> Input {
    Input {
        shown: "x".into(),
        label: "x".into(),
        folder: None,
        is_log: false,
        results,
        commands: None,
    }
}

fn told(a: Results, b: Results) -> String {
    let (a, b) = (input(a), input(b));
    let comparison = Comparison::new(&a.results, &b.results);
    shown::lines(&comparison, &a, &b, None).join("\n")
}

#[test]
fn a_slowdown_is_found_in_its_stage() {
    let text = told(run(400, 100, "insns"), run(420, 120, "insns"));
    assert!(text.contains("+20  +5.0  worse    kick +20"), "{text}");
    assert!(
        text.contains("1 worse, 0 better, 0 no difference"),
        "{text}"
    );
    let text = told(run(420, 120, "insns"), run(400, 100, "insns"));
    assert!(text.contains("-20  -4.8  better   kick -20"), "{text}");
}

#[test]
fn the_same_is_no_difference() {
    let text = told(run(400, 100, "insns"), run(400, 100, "insns"));
    assert!(
        text.contains("no difference") && text.contains("0 worse, 0 better, 1 no"),
        "{text}"
    );
}

#[test]
fn another_compiler_is_told() {
    let built = |rustc: &str| Results {
        build: Some(results::Build {
            rustc: rustc.into(),
            ..results::Build::default()
        }),
        ..run(400, 100, "insns")
    };
    let both = told(built("1.95.0"), built("1.96.0"));
    assert!(
        both.contains("compilers: rustc 1.95.0; rustc 1.96.0\n"),
        "{both}"
    );
    assert!(!told(built("1.95.0"), built("1.95.0")).contains("compilers"));
    assert!(!told(built("1.95.0"), run(400, 100, "insns")).contains("compilers"));
}

#[test]
fn cells_of_one_side_are_listed() {
    let mut b = run(400, 100, "insns");
    b.cells[0].what.wait = Wait::Wfe;
    let text = told(run(400, 100, "insns"), b);
    assert!(
        text.contains("only in A:\n") && text.contains("only in B:\n"),
        "{text}"
    );
}

#[test]
fn the_gate_has_a_width() {
    let (a, b) = (run(400, 100, "insns"), run(420, 120, "insns"));
    let comparison = Comparison::new(&a, &b);
    assert!(Gate::parse("2%").unwrap().judge(&comparison).is_some());
    assert!(Gate::parse("5").unwrap().judge(&comparison).is_none());
    for text in ["", "x", "-1%", "inf", "NaN%"] {
        assert!(is_bad_input(&Gate::parse(text).unwrap_err()), "{text}");
    }
    let mut empty = run(400, 100, "insns");
    empty.cells[0].stats = None;
    let nothing = Comparison::new(&empty, &b);
    assert!(Gate::parse("2%").unwrap().judge(&nothing).is_some());
}

#[test]
fn files_are_compared_and_units_have_to_match() {
    let parent = tempfile::tempdir().unwrap();
    let file = |name: &str, results: Results| -> PathBuf {
        let path = parent.path().join(name);
        fs::write(&path, results.to_json().unwrap()).unwrap();
        path
    };
    let a = file("a", run(400, 100, "insns"));
    let slow = file("slow", run(420, 120, "insns"));
    let ticks = file("ticks", run(400, 100, "ticks"));
    let args = |b: &PathBuf, gate: Option<&str>| CompareArgs {
        a: a.clone(),
        b: b.clone(),
        fail_if_worse: gate.map(str::to_owned),
    };
    let failure = |b, gate| judge(&args(b, gate)).unwrap().1;
    assert!(failure(&slow, None).is_none() && failure(&a, Some("0")).is_none());
    assert!(failure(&slow, Some("2%")).is_some());
    let error = judge(&args(&ticks, None)).unwrap_err();
    assert!(
        is_bad_input(&error) && error.to_string().contains("--metric"),
        "{error}"
    );
    let cycles = file("cycles", run(400, 100, "cycles"));
    let error = judge(&args(&cycles, None)).unwrap_err();
    let text = error.to_string();
    assert!(
        is_bad_input(&error) && text.contains("counts cycles") && text.contains("xtask report "),
        "{text}"
    );
    // Nor can a report of both be compared with one of them.
    let mut both = run(400, 100, "insns");
    both.cells.extend(run(4000, 900, "cycles").cells);
    both.runs = ["insns", "cycles"]
        .map(|unit| Origin {
            label: unit.into(),
            unit: unit.into(),
            ..Origin::default()
        })
        .to_vec();
    let error = judge(&args(&file("both", both), None)).unwrap_err();
    let text = error.to_string();
    assert!(
        is_bad_input(&error) && text.contains("count insns and cycles"),
        "{text}"
    );
}
