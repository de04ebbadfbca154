// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the gate is for, with an error planted for each, and what it can't judge.

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
