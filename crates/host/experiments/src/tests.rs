// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the list of experiments, their boots, and their description in documents.

use std::collections::BTreeSet;

use super::runs::SHORT;
use super::*;
use shell::args::parse;
use shell::failure::is_bad_input;

pub fn args(name: &str) -> ExperimentArgs {
    args_on("virt", name)
}

pub fn args_on(board: &str, name: &str) -> ExperimentArgs {
    parse(["experiment", name, "--board", board]).unwrap()
}

#[test]
fn every_experiment_has_boots_that_can_run() {
    let args = args("all");
    let virt = Board::load("virt").unwrap();
    for experiment in choose_experiments(&args.names, false, &virt).unwrap() {
        let jobs = experiment.jobs(&args).unwrap();
        assert!(!jobs.is_empty(), "{}", experiment.name);
    }
}

/// On a board that lacks the unit of an experiment, the experiment is chosen only if the user names it. The
/// experiment is then refused, with the reason.
#[test]
fn all_and_posted_have_those_that_the_board_can_measure() {
    let chosen = |board: &str, name: &str| -> Vec<&str> {
        let board = Board::load(board).unwrap();
        let chosen = choose_experiments(&[name.into()], true, &board).unwrap();
        chosen.iter().map(|experiment| experiment.name).collect()
    };
    let cycles = "posted-arm-poll-idle-cycles";
    assert_eq!(chosen("gem5", "posted"), [cycles]);
    assert!(!chosen("virt", "posted").contains(&cycles));
    assert!(!chosen("virt", "all").contains(&cycles));
    assert!(chosen("gem5", "all").contains(&cycles));
    assert_eq!(chosen("virt", cycles), [cycles]);
}

#[test]
fn boots_that_are_repeated_are_repeated_alike() {
    let names = |boot: &Boot| -> Vec<&str> {
        let repeats = boot.repeats.iter();
        repeats.map(|repeat| repeat.name).collect()
    };
    for experiment in ALL {
        let repeated = || {
            experiment
                .boots
                .iter()
                .filter(|boot| boot.repeats.len() > 1)
        };
        let alike = repeated().is_sorted_by(|one, other| names(one) == names(other));
        assert!(alike, "{}", experiment.name);
        for boot in experiment.boots {
            let mut names = names(boot);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), boot.repeats.len(), "{}", boot.label);
        }
    }
}

#[test]
fn a_shorter_boot_has_a_longer_one() {
    for experiment in ALL {
        for boot in experiment.boots {
            let Some(label) = boot.label.strip_suffix(runs::SHORT) else {
                continue;
            };
            let longer = experiment.boots.iter().find(|boot| boot.label == label);
            let longer = longer.unwrap_or_else(|| panic!("{} is alone", boot.label));
            assert!(boot.iterations < longer.iterations && boot.cpus == longer.cpus);
        }
    }
}

#[test]
fn a_repetition_changes_what_it_names() {
    let boot = &sched::EXPERIMENT.boots[0];
    let repeat = Repeat {
        seed: Some(7),
        cpus: Some(3),
        lists: &[("workload", "ipi")],
        ..Repeat::SAME
    };
    let job = Job::new(&boot.args("virt", &repeat, None)).unwrap();
    let arguments = job
        .load
        .boot_arguments(running::job::Variant::of(plan::Choice::NONE));
    assert!(arguments.ends_with("rouse.seed=7"), "{arguments}");
    assert!(arguments.contains("rouse.workload=ipi "), "{arguments}");
    assert!(
        arguments.contains("rouse.wait=wfi,poll-wfi "),
        "{arguments}"
    );
    assert_eq!(job.cpus, 3);
}

#[test]
fn what_is_about_instructions_is_refused_where_there_are_none() {
    let args = args_on("gem5", "all");
    for experiment in ALL {
        let jobs = experiment.jobs(&args);
        match experiment.metric {
            None => assert!(jobs.unwrap().len() >= experiment.boots.len()),
            Some(_) => assert!(is_bad_input(&jobs.err().unwrap()), "{}", experiment.name),
        }
    }
}

#[test]
fn a_shorter_boot_stays_shorter_on_simulated_cores() {
    let mut pairs = 0;
    for experiment in ALL {
        for short in experiment.boots {
            let long = short.label.strip_suffix(SHORT);
            let long = experiment
                .boots
                .iter()
                .find(|boot| Some(boot.label) == long);
            let Some(long) = long else { continue };
            let [short, long] = [short, long].map(|boot| boot.brief(&boot.repeats[0]).0.iterations);
            assert!(short < long, "{}: {short} of {long}", experiment.name);
            pairs += 1;
        }
    }
    assert!(pairs > 2);
}

#[test]
fn an_unknown_name_is_refused_with_those_that_there_are() {
    let error = choose_experiments(&args("psdd").names, false, &Board::load("virt").unwrap())
        .err()
        .unwrap();
    assert!(is_bad_input(&error));
    assert!(
        error
            .to_string()
            .contains("use all, posted, poll-limit, mostly-idle, sched")
    );
}

/// Returns the names in the columns `experiment` of a document's tables.
fn named(document: &str) -> BTreeSet<&str> {
    let mut column = None;
    let mut named = BTreeSet::new();
    for line in document.lines() {
        let Some(row) = line.strip_prefix('|') else {
            column = None;
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if let Some(place) = cells.iter().position(|cell| *cell == "experiment") {
            column = Some(place);
        } else if let Some(cell) = column.and_then(|place| cells.get(place)) {
            // Every text between two backticks is the name of an experiment.
            named.extend(cell.split('`').skip(1).step_by(2));
        }
    }
    named
}

#[test]
fn the_document_names_every_experiment_and_no_other() {
    let all = ALL.iter().chain(&posted::ALL);
    let all: BTreeSet<&str> = all.map(|experiment| experiment.name).collect();
    let page = include_str!("../../../../docs/experiments.md");
    let (overview, sources) = page.split_once("\n## Sources\n").unwrap();
    assert_eq!(named(overview), all);
    assert_eq!(named(sources), all);
}

#[test]
fn only_the_column_of_experiments_names_them() {
    let document = "| a | experiment | `b` |\n|---|---|---|\n| `x` | `sched`, `psd` | `y` |\n\n| `z` | `w` |\n";
    assert_eq!(named(document), BTreeSet::from(["psd", "sched"]));
}

#[test]
fn choices_of_seeds_have_none_in_common() {
    let mut seen = BTreeSet::new();
    for choice in [None, Some(1), Some(2)] {
        for boot in ALL.iter().flat_map(|experiment| experiment.boots) {
            for repeat in boot.repeats {
                let append = boot.args("virt", repeat, choice).load.append;
                assert_eq!(append.is_none(), choice.is_none() && repeat.seed.is_none());
                seen.insert((append, choice));
            }
        }
    }
    let seeds = || seen.iter().filter_map(|(append, _)| append.as_ref());
    assert_eq!(seeds().collect::<BTreeSet<_>>().len(), seeds().count());
    assert!(seeds().any(|append| append == "rouse.seed=513"), "{seen:?}");
}
