// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that runs can be joined and divided again.

use plan::Workload;
use results::merge::{self, Run};
use results::{Build, CoreClock, Results};

use super::of;

fn run(label: &str, results: Results) -> Run {
    let commands = vec![format!("make {label}")];
    Run {
        label: label.into(),
        results,
        commands,
    }
}

/// Returns a run that has only the cells of [`of`] with the indices `cells`.
fn part(label: &str, cells: &[usize]) -> Run {
    let mut results = of("rouse", "insns");
    results.cells = cells.iter().map(|&at| results.cells[at].clone()).collect();
    run(label, results)
}

#[test]
fn parts_are_joined_in_the_order_of_the_plan() {
    let (mut first, mut second) = (part("a", &[1]), part("b", &[0]));
    second.results.incomplete = true;
    for (run, text) in [(&mut first, "one"), (&mut second, "two")] {
        run.results.serrors.corrected = 2;
        run.results.missing = vec![text.into()];
        run.results.damaged = vec![text.into()];
        run.results.problems = vec![text.into()];
        run.results.notes.push(text.into());
    }
    let joined = merge::join_sweeps(vec![first, second]);
    assert_eq!(joined.len(), 1);
    let Run {
        label,
        results,
        commands,
    } = &joined[0];
    assert_eq!(
        (label.as_str(), commands.join(";").as_str()),
        ("a+b", "make a;make b")
    );
    let order: Vec<Workload> = results
        .cells
        .iter()
        .map(|cell| cell.what.workload)
        .collect();
    assert_eq!(order, [Workload::Ipi, Workload::Pingpong]);
    assert!(results.incomplete);
    assert_eq!(results.serrors.corrected, 4);
    for texts in [&results.missing, &results.damaged, &results.problems] {
        assert_eq!(texts.join(" "), "one two");
    }
    // A note that both parts have appears only once.
    assert_eq!(results.notes, ["hot", "one", "two"]);
}

#[test]
fn another_machine_is_another_run() {
    let joins = |change: fn(&mut Results)| {
        let mut second = part("b", &[1]);
        change(&mut second.results);
        merge::join_sweeps(vec![part("a", &[0]), second]).len() == 1
    };
    assert!(joins(|_| {}));
    assert!(!joins(|results| results.board = "other".into()));
    assert!(!joins(|results| results.build = Some(Build::default())));
    assert!(!joins(|results| results.machine.cpus = 3));
    assert!(!joins(|results| results.fidelity.clear()));
    assert!(!joins(|results| results.unit = "cycles".into()));
    assert!(!joins(|results| results.unit_how = "guessed".into()));
    assert!(!joins(|results| results.cells = of("rouse", "insns").cells));
}

/// The clock is measured with an error of 1 in 500.
#[test]
fn clocks_of_one_core_are_near_each_other() {
    let joined = |first: u64, second: u64| {
        let (mut a, mut b) = (part("a", &[0]), part("b", &[1]));
        for (run, core_hz) in [(&mut a, first), (&mut b, second)] {
            run.results.unit = "cycles".into();
            run.results.unit_how = core_hz.to_string();
            run.results.machine.core_hz = core_hz;
            run.results.machine.core_clocks = vec![CoreClock {
                begin_hz: Some(core_hz),
                drift_ppm: Some((core_hz % 1000) as i64),
                ..CoreClock::default()
            }];
        }
        merge::join_sweeps(vec![a, b])
    };
    // For each measuring core, the clock from the part in which it drifted most is kept.
    let clocks = &joined(500_000, 500_007)[0].results.machine.core_clocks;
    assert_eq!((clocks.len(), clocks[0].drift_ppm), (1, Some(7)));
    let joins = |first, second| joined(first, second).len() == 1;
    assert!(!joins(500_000, 0));
    assert!(joins(500_000, 501_000) && joins(501_000, 500_000));
    assert!(!joins(500_000, 501_001) && !joins(501_001, 500_000));
}

/// Returns what a run of `commit` records about its images: the hash of the hypervisor with another kernel, and of our
/// guests.
fn build(commit: &str, dirty: bool, image: &str, guests: &[(&str, &str)]) -> Build {
    let guests = guests
        .iter()
        .map(|&(atomics, sum)| (atomics.into(), sum.into()));
    Build {
        commit: commit.into(),
        dirty,
        image: image.into(),
        guests: guests.collect(),
        ..Build::default()
    }
}

#[test]
fn runs_of_one_commit_with_different_guests_are_of_the_same_sources() {
    let (llsc, lse) = (("llsc", "1"), ("lse", "2"));
    let one = build("c0ffee", false, "a", &[llsc]);
    assert!(one.is_of_same_sources(&build("c0ffee", false, "a", &[lse])));
    assert!(one.is_of_same_sources(&build("c0ffee", false, "a", &[lse, llsc])));
    assert!(!one.is_of_same_sources(&build("c0ffef", false, "a", &[llsc])));
    assert!(!one.is_of_same_sources(&build("c0ffee", true, "a", &[llsc])));
    // Images for tests are of the same commit, too.
    assert!(!one.is_of_same_sources(&build("c0ffee", false, "b", &[llsc])));
    assert!(!one.is_of_same_sources(&build("c0ffee", false, "a", &[("llsc", "3"), lse])));
    // A commit that is unknown or edited does not identify the guests.
    for (commit, dirty) in [("c0ffee", true), ("", false)] {
        let one = build(commit, dirty, "a", &[llsc]);
        assert!(one.is_of_same_sources(&build(commit, dirty, "a", &[lse, llsc])));
        assert!(!one.is_of_same_sources(&build(commit, dirty, "a", &[lse])));
        let linux = build(commit, dirty, "a", &[]);
        assert!(linux.is_of_same_sources(&linux.clone()) && !linux.is_of_same_sources(&one));
    }
}

#[test]
fn runs_of_two_kernels_at_one_commit_are_not_repetitions() {
    let run = |label: &str, kernel: &str| {
        let mut run = part(label, &[0]);
        run.results.build = Some(build("c0ffee", false, kernel, &[]));
        run
    };
    let runs = [run("plain", "1"), run("patched", "2"), run("again", "1")];
    let groups = merge::group_repetitions(&runs);
    let labels = groups.iter().map(|group| {
        let labels: Vec<_> = group.iter().map(|run| &*run.label).collect();
        labels.join(" ")
    });
    assert_eq!(labels.collect::<Vec<_>>(), ["plain again", "patched"]);
}

#[test]
fn a_file_of_several_runs_comes_apart_as_it_was() {
    let mut second = part("b", &[0]);
    second.results.board = "other".into();
    second.results.incomplete = true;
    second.results.serrors.left = 1;
    second.results.build = Some(Build {
        rustc: "1.96.0".into(),
        ..Build::default()
    });
    for (texts, text) in [
        (&mut second.results.missing, "a cell"),
        (&mut second.results.damaged, "cell 7"),
        (&mut second.results.problems, "record 3"),
    ] {
        texts.push(text.into());
    }
    let runs = merge::join_sweeps(vec![part("a", &[0, 1]), second, part("a", &[0])]);
    let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["a", "b", "a (2)"]);
    let one = merge::into_one(&runs);
    assert!(one.incomplete);
    assert_eq!(
        (one.missing.as_slice(), one.damaged.as_slice()),
        (&["b: a cell".to_owned()][..], &["b: cell 7".to_owned()][..])
    );
    assert_eq!(
        (one.problems.join(";"), one.notes.join(";")),
        ("b: record 3".into(), "a: hot;b: hot;a (2): hot".into())
    );
    let of_runs: Vec<&str> = one.cells.iter().map(|cell| cell.run.as_str()).collect();
    assert_eq!(of_runs, ["a", "a", "b", "a (2)"]);
    let file: Results = serde_json::from_str(&one.to_json().unwrap()).unwrap();
    let again = merge::join_sweeps(vec![run("file", file)]);
    assert_eq!(again.len(), runs.len());
    for (was, is) in runs.iter().zip(&again) {
        assert_eq!(
            (&was.label, &is.commands),
            (&is.label, &vec!["make file".to_owned()])
        );
        let [was, is] = [was, is].map(|run| serde_json::to_value(&run.results).unwrap());
        assert_eq!(was, is);
    }
    // A single run stays unchanged, and joining no runs gives empty results.
    let alone = merge::into_one(&runs[1..2]);
    assert_eq!(
        (alone.runs.len(), alone.damaged.join(";")),
        (0, "cell 7".into())
    );
    assert!(merge::into_one(&[]).cells.is_empty());
}
