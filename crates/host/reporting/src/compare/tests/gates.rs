// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the gate, with an error planted for each of its purposes, and with results that it can't judge.

use super::*;

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
    failed(
        &lost(|b| {
            b.cells[1].stats = None;
            b.cells[1].skipped = Some("not here".into());
        }),
        "B has lost 1 cell",
    );
    failed(
        &lost(|b| b.incomplete = true),
        "1 of 1 runs of B incomplete",
    );
    failed(
        &lost(|b| b.damaged.push("cell 7".into())),
        "incomplete, damaged or with problems",
    );
    failed(
        &lost(|b| b.problems.push("the parts do not add up".into())),
        "incomplete, damaged or with problems",
    );
    assert_eq!(lost(|_| {}), Judgement::Passed);
    let text = compared("A B", std::slice::from_ref(&a), &[insns(400)])
        .unwrap()
        .0;
    assert!(
        text.contains("not measured in B:\n  pingpong: WFE")
            && text.contains("1 not measured in B"),
        "{text}"
    );
    let text = compared("B A", std::slice::from_ref(&a), &[insns(400)])
        .unwrap()
        .0;
    assert!(text.contains("only in B:\n  pingpong: WFE"), "{text}");
    // A cell counts as lost even if only one of several runs lacks it.
    let mut two = [a.clone(), a.clone()];
    two[1].cells.pop();
    let (text, judgement) = compared("A --with B --fail-if-worse", &[a.clone(), a], &two).unwrap();
    assert!(
        text.contains("pingpong: WFE: 1 of 2 runs have it"),
        "{text}"
    );
    failed(&judgement, "B has lost 1 cell");
}

#[test]
fn a_changed_tail_and_doubled_exits_fail_though_the_median_is_the_same() {
    for a in [vec![insns(400)], five(0)] {
        let stats =
            |change: fn(&mut Stats)| gated("0", &a, |b| change(b.cells[0].stats.as_mut().unwrap()));
        // Either 45 % or 5 % of the samples are ten times slower.
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
        text.contains("exits per sample 2 to 4 (+100.0 %), worse"),
        "{text}"
    );
    // If samples vary, a few samples are not enough to judge a tail. If samples repeat exactly, each sample counts.
    let few = |mut a: Vec<Results>| {
        let count = |results: &mut Results| results.cells[0].stats.as_mut().unwrap().count = 24;
        a.iter_mut().for_each(count);
        gated("0", &a, |b| {
            let stats = b.cells[0].stats.as_mut().unwrap();
            (stats.p90, stats.p99, stats.max, stats.mean) = (4000, 4000, 4000, 900.0);
        })
    };
    assert_eq!(few(five(0)), Judgement::Passed);
    for what in ["p90", "p99", "mean", "maximum"] {
        failed(&few(vec![insns(400)]), &format!("{what} of 1 cell worse"));
    }
}

fn count(counts: &mut Counts, name: &str, count: u64) {
    counts.insert(name.into(), count);
}

/// Plants an error in each count of a cell, because all counts are compared.
#[test]
fn more_interrupts_and_timeouts_fail_though_no_sample_is_longer() {
    type Change = fn(&mut Cell);
    let changes: [(&str, Change); 5] = [
        (
            "IPIs of 1 cell worse by more than 0 %, up to 100.0 %",
            |b| count(&mut b.ipis, "sent", 2000),
        ),
        ("timeouts of 1 cell worse, from none", |b| {
            count(&mut b.wakes, "timeout", 24)
        }),
        ("interrupts taken of 1 cell worse", |b| {
            count(b.counters.get_mut("irq").unwrap(), "taken", 1500)
        }),
        // Nine of 1000 samples take a hundred times as long.
        ("mean of 1 cell worse", |b| {
            b.stats.as_mut().unwrap().mean = 756.0
        }),
        ("maximum of 1 cell worse", |b| {
            b.stats.as_mut().unwrap().max = 40_000
        }),
    ];
    let mut a = insns(400);
    let cell = &mut a.cells[0];
    cell.ipis = Counts::from([("sent".into(), 1000)]);
    cell.wakes = Counts::from([("timeout".into(), 0)]);
    cell.counters
        .insert("irq".into(), Counts::from([("taken".into(), 1000)]));
    let a = [a];
    assert_eq!(gated("0", &a, |_| {}), Judgement::Passed);
    for (why, change) in changes {
        failed(&gated("0", &a, |b| change(&mut b.cells[0])), why);
    }
    // If results are in a unit of time, other counts vary, but the comparison still finds the additional IPIs.
    let mut time = five(0);
    time.iter_mut()
        .for_each(|run| run.cells[0].ipis = Counts::from([("sent".into(), 1000)]));
    let twice = gated("0", &time, |b| count(&mut b.cells[0].ipis, "sent", 2000));
    failed(&twice, "IPIs of 1 cell worse");
}

/// The emulator of one side has no plugins.
#[test]
fn what_only_one_side_knows_of_paths_is_no_measure_of_the_code() {
    let mut without = insns(80);
    without
        .notes
        .push("samples were not taken apart: no plugins".into());
    let sides = [with_path(80, 47), without];
    for (line, a, b) in [("A B", "known", "not known"), ("B A", "not known", "known")] {
        let judged = |more: &str| {
            let line = format!("{line} --fail-if-worse {more}");
            compared(&line, &sides[..1], &sides[1..]).unwrap()
        };
        let (text, judgement) = judged("");
        not_tried(
            &judgement,
            "path of 1 cell (see above); measure them so, or --allow path",
        );
        let told = format!("path of 1 cell: A = {a}, B = {b}");
        assert!(text.contains(&told), "{text}");
        assert!(
            text.contains(": samples were not taken apart: no plugins"),
            "{text}"
        );
        // With this option, the gate compares the sides' medians of whole samples.
        assert_eq!(judged("--allow path").1, Judgement::Passed);
    }
}

#[test]
fn a_cell_twice_in_b_fails_and_is_named() {
    let mut b = insns(400);
    let mut other = b.cells[0].clone();
    other.what.wait = Wait::Wfe;
    b.cells.push(other);
    let a = [b.clone()];
    b.cells.push(b.cells[1].clone());
    let (text, judgement) = compared("A B --fail-if-worse", &a, &[b]).unwrap();
    failed(
        &judgement,
        "B has pingpong one wfe none inject ipi llsc 2 times in 1 run",
    );
    assert!(text.contains("pingpong: WFE: 2 times in 1 run"), "{text}");
}

#[test]
fn another_unit_of_a_cell_is_no_measure_of_it() {
    let mut b = insns(400);
    b.cells[0].unit = "ticks".into();
    let error = compared("A B", &[insns(400)], &[b]).unwrap_err();
    assert!(is_bad_input(&error), "{error}");
    assert!(
        error
            .to_string()
            .contains("counts insns in one run and ticks in another"),
        "{error}"
    );
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
        assert!(text.contains(&format!("\n{aspect}: A = ")), "{text}");
    }
    // A log does not record its build.
    let log = gated("0", &a, |b| b.build = None);
    not_tried(&log, "or --allow compiler");
    assert!(is_bad_input(
        &compared("A A --allow x", &a, &a).unwrap_err()
    ));
}
