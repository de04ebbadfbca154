// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts, gates with an error planted for each thing that they are for, and what is refused.

use std::fs;
use std::path::PathBuf;

use clap::Parser;
use plan::{Wait, Workload};
use results::merge;
use results::{Cell, Counts, Emulator, Results, Stage, Stats};

use super::*;
use crate::cli::{Cli, Verb};
use crate::failure::is_bad_input;

/// A run of one cell whose median is `total`, and of which `kick` is a stage.
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

/// Five runs in time, 1 % apart, and further apart by `percent`.
fn five(percent: u64) -> Vec<Results> {
    (0..5)
        .map(|number| run((1000 + number * 10) * (100 + percent) / 100, 1, "ticks"))
        .collect()
}

/// What comes of a command line; `A` and `B` in it are the runs.
fn compared(line: &str, a: &[Results], b: &[Results]) -> Result<(String, Judgement)> {
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
    let mut words: Vec<String> = vec!["xtask".into(), "compare".into()];
    for word in line.split_whitespace() {
        let paths: &[PathBuf] = match word {
            "A" => &a,
            "B" => &b,
            _ => &[],
        };
        words.extend(paths.iter().map(|path| path.display().to_string()));
        words.extend(paths.is_empty().then(|| word.to_owned()));
    }
    let Verb::Compare(args) = Cli::try_parse_from(&words)?.verb else {
        unreachable!("the verb is compare");
    };
    let (lines, judgement) = judge(&args)?;
    Ok((lines.terminal(None).join("\n"), judgement))
}

/// What the gate says of B, which is as A but for `change`.
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
fn a_slowdown_is_found_in_its_stage() {
    let told = |a, b| compared("A B", &[a], &[b]).unwrap().0;
    let text = told(run(400, 100, "insns"), run(420, 120, "insns"));
    assert!(text.contains("+20  +5.0  worse    kick +20"), "{text}");
    assert!(
        text.contains("1 worse, 0 better; most in pingpong one wfi none inject ipi llsc (+5.0 %)."),
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

/// The same, its path without bookkeeping `path`.
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
fn the_path_leads_and_the_work_of_all_cpus_is_gated_too() {
    let judged = |a, b| compared("A B --fail-if-worse", &[a], &[b]).unwrap();
    let (text, judgement) = judged(with_path(80, 47), with_path(79, 48));
    failed(
        &judgement,
        "path of 1 cell worse by more than 0 %, up to 2.1 %",
    );
    for part in [
        "47  48  +1  +2.1  worse",
        "80  79  -1  -1.2",
        "1 worse, 0 better",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(
        text.contains("work of all CPUs 80 to 79 (-1.2 %), better"),
        "{text}"
    );
    let (text, judgement) = judged(with_path(80, 47), with_path(81, 47));
    failed(
        &judgement,
        "work of all CPUs of 1 cell worse by more than 0 %, up to 1.2 %",
    );
    assert!(
        text.contains("work of all CPUs 80 to 81 (+1.2 %), worse"),
        "{text}"
    );
    assert!(
        text.contains("0 worse, 0 better, 1 no difference"),
        "{text}"
    );
    let (_, judgement) = judged(with_path(80, 47), with_path(80, 47));
    assert_eq!(judgement, Judgement::Passed);
    // Nothing looked on at one side: samples are held against samples.
    let (text, judgement) = judged(insns(80), with_path(81, 1));
    failed(
        &judgement,
        "median of 1 cell worse by more than 0 %, up to 1.2 %",
    );
    assert!(!text.contains("path"), "{text}");
    // Cells with and without a path beside each other.
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
        "instructions           path",
        "ticks of virtual time  median",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_unit_is_that_of_the_cells() {
    let mut timer = insns(500);
    timer.cells[0].unit = results::VIRTUAL.into();
    let text = compared("A B", &[timer.clone()], &[timer]).unwrap().0;
    assert!(
        text.contains("medians in ticks of virtual time, which repeat"),
        "{text}"
    );
}

#[test]
fn a_median_of_too_few_samples_is_none_and_passes_no_gate() {
    let mut few = insns(400);
    few.cells[0].stats.as_mut().unwrap().count = 19;
    let (text, judgement) = compared("A B --fail-if-worse", &[few.clone()], &[few]).unwrap();
    not_tried(
        &judgement,
        "too few samples for a median, which takes 20: 1 cell",
    );
    assert!(text.contains("1 too few samples"), "{text}");
}

#[test]
fn lost_cells_fail() {
    let second = |results: &mut Results| {
        let mut cell = results.cells[0].clone();
        cell.what.wait = Wait::Wfe;
        results.cells.push(cell);
    };
    let mut a = insns(400);
    second(&mut a);
    let lost = |change: fn(&mut Results)| gated("0", std::slice::from_ref(&a), change);
    failed(&lost(|b| drop(b.cells.pop())), "B has lost 1 cell");
    failed(&lost(|b| b.cells[1].stats = None), "B has lost 1 cell");
    failed(
        &lost(|b| b.incomplete = true),
        "1 of 1 runs of B incomplete",
    );
    failed(
        &lost(|b| b.damaged.push("cell 7".into())),
        "incomplete or damaged",
    );
    assert_eq!(lost(|_| {}), Judgement::Passed);
    let text = compared("A B", std::slice::from_ref(&a), &[insns(400)])
        .unwrap()
        .0;
    assert!(
        text.contains("lost in B:\n  rouse pingpong one wfe") && text.contains("1 lost"),
        "{text}"
    );
    let text = compared("B A", std::slice::from_ref(&a), &[insns(400)])
        .unwrap()
        .0;
    assert!(
        text.contains("only in B:\n  rouse pingpong one wfe"),
        "{text}"
    );
    // One lost in one run of several is lost too.
    let mut two = [a.clone(), a.clone()];
    two[1].cells.pop();
    let (text, judgement) = compared("A --with B --fail-if-worse", &[a.clone(), a], &two).unwrap();
    assert!(
        text.contains("wfe none inject ipi llsc: 1 of 2 runs have it"),
        "{text}"
    );
    failed(&judgement, "B has lost 1 cell");
}

#[test]
fn a_changed_tail_and_doubled_exits_fail_though_the_median_is_the_same() {
    for a in [vec![insns(400)], five(0)] {
        let stats =
            |change: fn(&mut Stats)| gated("0", &a, |b| change(b.cells[0].stats.as_mut().unwrap()));
        // Ten times slower: 45 % of the samples, or 5 %.
        failed(
            &stats(|stats| (stats.p90, stats.p99) = (4000, 4000)),
            "p90 of 1 cell worse",
        );
        failed(&stats(|stats| stats.p99 = 4000), "p99 of 1 cell worse");
        let exits = |exits| {
            gated("0", &a, |b| {
                *b.cells[0].exits.get_mut("sgi").unwrap() = exits
            })
        };
        failed(
            &exits(4000),
            "exits of 1 cell worse by more than 0 %, up to 100.0 %",
        );
        assert_eq!(exits(2000), Judgement::Passed);
        assert_eq!(exits(1000), Judgement::Passed);
    }
    let mut tail = insns(400);
    tail.cells[0].stats.as_mut().unwrap().p99 = 840;
    tail.cells[0].exits.insert("wfi".into(), 2000);
    let text = compared("A B", &[insns(400)], &[tail]).unwrap().0;
    assert!(text.contains("p99 420 to 840 (+100.0 %), worse"), "{text}");
    assert!(
        text.contains("exits per wake-up 2 to 4 (+100.0 %), worse"),
        "{text}"
    );
    // What is not supported by samples is no tail.
    let mut few = insns(400);
    few.cells[0].stats.as_mut().unwrap().count = 999;
    let few = gated("0", &[few], |b| {
        b.cells[0].stats.as_mut().unwrap().p99 = 4000
    });
    assert_eq!(few, Judgement::Passed);
}

#[test]
fn what_was_not_measured_alike_is_no_measure_of_the_code() {
    type Change = fn(&mut Results);
    let changes: [(&str, Change); 4] = [
        ("emulator", |b| {
            b.machine.emulator.as_mut().unwrap().version = "12.0.0".into()
        }),
        ("tool", |b| b.tool = "rouse 9".into()),
        ("cpus", |b| b.machine.cpus = 64),
        ("compiler", |b| {
            b.build.as_mut().unwrap().rustc = "1.96.0".into()
        }),
    ];
    let mut a = insns(400);
    a.machine.cpus = 2;
    a.build = Some(results::Build {
        rustc: "1.95.0".into(),
        ..results::Build::default()
    });
    let a = [a];
    for (aspect, change) in changes {
        let judged = |options: &str| gated(options, &a, change);
        not_tried(&judged("0"), &format!("or --allow {aspect}"));
        assert_eq!(judged(&format!("0 --allow {aspect}")), Judgement::Passed);
        assert_eq!(
            judged(&format!("0 --allow {}", ASPECTS.join(","))),
            Judgement::Passed
        );
        let mut b = a[0].clone();
        change(&mut b);
        let text = compared("A B", &a, &[b]).unwrap().0;
        assert!(text.contains(&format!("not alike: {aspect}")), "{text}");
    }
    assert!(is_bad_input(
        &compared("A A --allow x", &a, &a).unwrap_err()
    ));
}

#[test]
fn time_needs_five_runs_for_a_verdict_and_for_the_gate() {
    let one = |line| compared(line, &five(0)[..1], &five(900)[..1]).unwrap();
    let (text, judgement) = one("A B --fail-if-worse 2%");
    assert!(
        text.contains("too few runs") && !text.contains("worse ("),
        "{text}"
    );
    not_tried(
        &judgement,
        "need 5 runs of each side, and there are 1; run each with --repeat 5",
    );
    let judged = |a: u64, b: u64| {
        let line = "A --with B --fail-if-worse";
        compared(line, &five(a), &five(b)).unwrap()
    };
    let (text, judgement) = judged(0, 10);
    assert!(text.contains("worse (p 0.024)"), "{text}");
    failed(
        &judgement,
        "median of 1 cell worse by more than 0 %, up to 10.0 %",
    );
    let (text, judgement) = judged(0, 0);
    assert!(
        text.contains("no difference seen (would have seen "),
        "{text}"
    );
    assert_eq!(judgement, Judgement::Passed);
    assert_eq!(judged(10, 0).1, Judgement::Passed);
    // A surer level takes more runs, and says how many.
    let line = "A --with B --fail-if-worse --level 1%";
    not_tried(
        &compared(line, &five(0), &five(10)).unwrap().1,
        "need 6 runs of each side",
    );
    for level in ["0", "50%", "x"] {
        let line = format!("A --with B --level {level}");
        assert!(is_bad_input(
            &compared(&line, &five(0), &five(0)).unwrap_err()
        ));
    }
}

#[test]
fn the_runs_that_show_a_difference_are_told() {
    let text = compared("A --with B --see 1%", &five(0), &five(0))
        .unwrap()
        .0;
    assert!(
        text.contains("runs for 1 %") && text.contains("To see 1 % in each cell takes "),
        "{text}"
    );
    let text = compared("A B --see 1%", &five(0)[..1], &five(0)[..1])
        .unwrap()
        .0;
    assert!(text.contains("their spread is not known yet"), "{text}");
}

#[test]
fn several_runs_of_one_file_are_several_runs() {
    let together = |percent: u64| {
        let runs = five(percent)
            .into_iter()
            .enumerate()
            .map(|(number, results)| merge::Run {
                label: (number + 1).to_string(),
                results,
                commands: Vec::new(),
            });
        merge::into_one(&runs.collect::<Vec<_>>())
    };
    let (text, judgement) =
        compared("A B --fail-if-worse", &[together(0)], &[together(10)]).unwrap();
    assert!(
        text.contains("A: 5 runs") && text.contains("worse (p 0.024)"),
        "{text}"
    );
    failed(&judgement, "median of 1 cell");
}

#[test]
fn whose_run_is_whose_must_be_clear() {
    let a = [insns(400), insns(400)];
    for line in ["A", "A B", "A A B"] {
        let several = compared(line, &a[..1 + usize::from(line == "A B")], &a).map(drop);
        assert!(is_bad_input(&several.unwrap_err()), "{line}");
    }
    compared("A --with B", &a, &a).unwrap();
    compared("A --with B", &a[..1], &a).unwrap();
}

#[test]
fn sides_in_turns_are_asked_for() {
    let side = |hours: [u32; 5], percent| {
        let mut runs = five(percent);
        for (run, hour) in runs.iter_mut().zip(hours) {
            run.began = format!("2026-11-21T{hour:02}:00:00Z");
        }
        runs
    };
    let told = |a, b| compared("A --with B", &side(a, 0), &side(b, 0)).unwrap().0;
    let mixed = told([0, 3, 4, 7, 8], [1, 2, 5, 6, 9]);
    assert!(
        !mixed.contains("Make them by turns") && !mixed.contains("is not known"),
        "{mixed}"
    );
    let apart = told([0, 1, 2, 3, 4], [5, 6, 7, 8, 9]);
    assert!(apart.contains("Make them by turns"), "{apart}");
}

#[test]
fn units_have_to_match() {
    let ticks = |line: &str| compared(line, &[insns(400)], &[run(400, 100, "ticks")]);
    let error = ticks("A B").unwrap_err();
    assert!(
        is_bad_input(&error) && error.to_string().contains("--metric"),
        "{error}"
    );
    let error = compared("A B", &[insns(400)], &[run(400, 1, "cycles")]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("counts cycles") && text.contains("xtask report "),
        "{text}"
    );
    // Nor can a report of both be compared with one of them.
    let both = ["insns", "cycles"].map(|unit| merge::Run {
        label: unit.into(),
        results: run(400, 100, unit),
        commands: Vec::new(),
    });
    let error = compared("A B", &[insns(400)], &[merge::into_one(&both)]).unwrap_err();
    let text = error.to_string();
    assert!(
        is_bad_input(&error) && text.contains("count insns and cycles"),
        "{text}"
    );
    let slow = || {
        let mut slow = run(400, 100, "ticks");
        slow.machine.cntfrq_hz = 62_500_000;
        slow
    };
    let error = compared("A B", &[run(400, 100, "ticks")], &[slow()]).unwrap_err();
    assert!(
        error.to_string().contains("ticks of 62500000 Hz"),
        "{error}"
    );
}
