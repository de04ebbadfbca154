// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests several runs of a side: their number, their sides, and their order.

use super::*;

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
    // A stricter level needs more runs, and the gate reports how many.
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
    let both = compared("A --with B A", &a, &a).map(drop).unwrap_err();
    assert!(
        is_bad_input(&both) && both.to_string().contains("of both A and B"),
        "{both}"
    );
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

/// One boot is given five times, or as copies of its folder.
#[test]
fn one_boot_is_one_run_however_often_it_is_given() {
    let side = |began: &str, percent| {
        let mut run = five(percent).remove(0);
        run.began = began.into();
        vec![run; 5]
    };
    let (a, b) = (
        side("2026-11-21T10:00:00Z", 0),
        side("2026-11-21T11:00:00Z", 10),
    );
    let (text, judgement) = compared("A --with B --fail-if-worse", &a, &b).unwrap();
    not_tried(&judgement, "need 5 runs of each side, and there are 1");
    assert!(
        text.contains("A: 1 run,") && text.contains("B: 1 run,"),
        "{text}"
    );
    for line in [
        "note of A: a4 began at 2026-11-21T10:00:00Z too: it is the boot of a0, which counts once",
        "note of B: b1 began at 2026-11-21T11:00:00Z too: it is the boot of b0, which counts once",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
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
    // A report of both units can't be compared with a run of one unit either.
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

#[test]
fn runs_apart_by_one_option_are_compared_across_it() {
    let side = |name: &str, gap_us: u32, median: u64| {
        let mut results = insns(median);
        results.cells[0].what.gap_us = gap_us;
        let path = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        fs::write(path.path(), results.to_json().unwrap()).unwrap();
        Side::read_runs(name, &[path.path().to_owned()]).unwrap()
    };
    let (mut a, mut b) = (side("A", 0, 100), side("B", 20, 130));
    across::move_sole_difference_to_names(&mut a, &mut b);
    assert!(a.shown.ends_with("(gap 0 us)"), "{}", a.shown);
    assert!(b.shown.ends_with("(gap 20 us)"), "{}", b.shown);
    assert_eq!(Comparison::new(&a.runs, &b.runs, 0.05).pairs.len(), 1);
    // Runs with different workloads, or with two different options, are not compared.
    let (mut a, mut b) = (side("A", 0, 100), side("B", 20, 130));
    b.runs[0].results.cells[0].what.workload = Workload::Ipi;
    across::move_sole_difference_to_names(&mut a, &mut b);
    b.runs[0].results.cells[0].what.workload = Workload::Pingpong;
    b.runs[0].results.cells[0].what.poll_limit_us = 7;
    across::move_sole_difference_to_names(&mut a, &mut b);
    assert!(!a.shown.contains('('), "{}", a.shown);
}
