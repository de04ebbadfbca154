// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the conclusions from invented machines.

use plan::{HostPoll, Neighbour, Trap, Wait, Word};
use results::{Cell, Results, Stats};

use super::*;
use crate::boot::ONCE;
use crate::verdict::Verdict;

/// Number of round trips in a cell.
const MADE: u64 = 200;
/// Time of a switch to the neighbour and back, in ns.
const SWITCH: u64 = 1000;

/// The error of an invented machine.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// Polls cost the neighbour twice as much time as their limit.
    DearPolls,
    /// Switches take no time.
    FreeSwitch,
    /// Slices take no time away from the guest.
    NoSlices,
    /// A guest that gives its CPU away gets it back only after the slice.
    LateReturn,
    /// The time of EL2's polls counts as the neighbour's.
    GivenPolls,
}

/// The relevant properties of a cell: its wait, whether WFI traps, and how long the guest and the hypervisor poll, in
/// us.
#[derive(Clone, Copy)]
struct Way {
    wait: Wait,
    trap: Trap,
    limit_us: u32,
    host_poll_us: u32,
    adaptive: bool,
}

const fn way(wait: Wait, trap: Trap) -> Way {
    Way {
        wait,
        trap,
        limit_us: 0,
        host_poll_us: 0,
        adaptive: false,
    }
}

/// Computes the nanoseconds of a gap that the neighbour gets, and the median of a round trip in nanoseconds.
fn reckoned(way: Way, gap_us: u32, wrong: Wrong) -> (u64, u64) {
    let gap = u64::from(gap_us) * 1000;
    let switch = if wrong == Wrong::FreeSwitch {
        0
    } else {
        SWITCH
    };
    let host = match way.adaptive && gap_us > way.host_poll_us {
        true => 0,
        false if wrong == Wrong::GivenPolls => 0,
        false => way.host_poll_us,
    };
    let polled = match way.wait {
        Wait::PollWfi if wrong == Wrong::DearPolls => 2 * way.limit_us,
        Wait::PollWfi => way.limit_us,
        Wait::Spin | Wait::Wfe | Wait::Wfet => u32::MAX,
        _ => host,
    };
    let traps = way.trap == Trap::Wfi;
    if polled >= gap_us || !traps {
        return (0, 100);
    }
    (gap - u64::from(polled) * 1000, 100 + switch)
}

fn cell(way: Way, gap_us: u32, wrong: Wrong, sliced: bool) -> Cell {
    let (given, p50) = reckoned(way, gap_us, wrong);
    let gap = u64::from(gap_us) * 1000;
    // While the sender works, the neighbour takes every second slice of the time that the guest does not give it.
    let slices = sliced && wrong != Wrong::NoSlices;
    let taken = if slices { (2 * gap - given) / 2 } else { 0 };
    let late = slices && (given == 0 || wrong == Wrong::LateReturn);
    let slowest = if late { 1_000_000 } else { p50 + 50 };
    let stats = Stats {
        count: MADE,
        min: p50,
        p50,
        p90: slowest,
        max: slowest,
        ..Stats::default()
    };
    let counts = [
        ("ticks", 2 * gap),
        ("given", given),
        ("taken", taken),
        ("work", given + taken),
        ("turns", 2),
    ];
    let counts = counts.map(|(name, count)| (name.to_owned(), count * MADE));
    Cell {
        what: plan::Cell {
            workload: plan::Workload::Pingpong,
            wait: way.wait,
            trap: way.trap,
            poll_limit_us: way.limit_us,
            host_poll_us: way.host_poll_us,
            host_poll: match way.adaptive {
                true => HostPoll::Adaptive,
                false => HostPoll::Fixed,
            },
            gap_us,
            neighbour: Neighbour::Work,
            ..plan::Cell::default()
        },
        made: MADE,
        unit: "ticks".into(),
        stats: Some(stats),
        counters: [("neighbour".to_owned(), counts.into_iter().collect())].into(),
        ..Cell::default()
    }
}

/// Returns the boots of a machine with the error `wrong`, at `gaps`.
fn runs(wrong: Wrong, gaps: &[u32]) -> Runs {
    let wfi = |trap, host_poll_us, adaptive| Way {
        host_poll_us,
        adaptive,
        ..way(Wait::Wfi, trap)
    };
    let limit = |limit_us| Way {
        limit_us,
        ..way(Wait::PollWfi, Trap::Wfi)
    };
    let haltpoll = Wait::parse("governor:haltpoll").unwrap();
    let halts = [
        wfi(Trap::None, 0, false),
        wfi(Trap::Wfi, 0, false),
        wfi(Trap::Wfi, 50, false),
        wfi(Trap::Wfi, 50, true),
    ];
    let spins = [Wait::Spin, Wait::Wfe, Wait::Wfet].map(|wait| way(wait, Trap::None));
    let mut runs = Runs::new("who-pays");
    for (label, ways) in [
        ("polls", spins.to_vec()),
        ("limits", [10, 50, 200].map(limit).to_vec()),
        ("haltpoll", vec![way(haltpoll, Trap::Wfi)]),
        ("halts", halts.to_vec()),
        ("sliced-polls", spins[..1].to_vec()),
        ("sliced-halts", halts[..2].to_vec()),
    ] {
        let sliced = label.starts_with("sliced");
        let gaps = if sliced { &[200] } else { gaps };
        let cells = ways
            .iter()
            .flat_map(|&way| gaps.iter().map(move |&gap| cell(way, gap, wrong, sliced)));
        let mut results = Results::default();
        results.machine.cntfrq_hz = 1_000_000_000;
        results.cells = cells.collect();
        runs.add(label, ONCE[0].name, results);
    }
    runs
}

const ALL: [u32; 6] = [5, 20, 50, 200, 1000, 5000];

/// Returns the statements of the claims that do not agree, on a machine with the error `wrong`.
fn differing(wrong: Wrong) -> Vec<String> {
    let outcome = conclude(&runs(wrong, &ALL)).unwrap();
    let claims = outcome.claims.iter();
    let differing = claims.filter(|claim| claim.verdict() != Verdict::Agrees);
    differing.map(|claim| claim.source().to_owned()).collect()
}

#[test]
fn a_machine_that_is_as_expected_agrees_with_everything() {
    assert_eq!(differing(Wrong::Nothing), [""; 0]);
}

#[test]
fn each_error_of_a_machine_is_found() {
    for (wrong, found) in [
        (
            Wrong::DearPolls,
            "a poll in vain costs the neighbour its limit",
        ),
        (Wrong::FreeSwitch, "a world switch lengthens the wake-up"),
        (
            Wrong::NoSlices,
            "with slices the neighbour of a guest that spins gets half of the time",
        ),
        (
            Wrong::LateReturn,
            "a guest that gives its CPU away gets it back at the interrupt",
        ),
        (Wrong::GivenPolls, "EL2's poll costs the neighbour as well"),
    ] {
        let differing = differing(wrong);
        let named = differing.iter().any(|claim| claim.starts_with(found));
        assert!(named, "{found}: {differing:?}");
    }
}

#[test]
fn where_cores_are_simulated_there_are_fewer_gaps() {
    let all = conclude(&runs(Wrong::Nothing, &ALL)).unwrap();
    let few = conclude(&runs(Wrong::Nothing, &ALL[..4])).unwrap();
    assert!(few.claims.len() < all.claims.len());
    assert!(
        few.claims
            .iter()
            .all(|claim| claim.verdict() == Verdict::Agrees)
    );
    assert_eq!(few.tables[0].columns, ["5 us", "20 us", "50 us", "200 us"]);
    assert_eq!(
        (all.charts[0].lines().len(), few.charts[0].lines().len()),
        (6, 4)
    );
    // The boots for boards that simulate cores have exactly these gaps.
    for boot in EXPERIMENT.boots {
        let (brief, repeat) = boot.brief(&boot.repeats[0]);
        assert!(brief.iterations < boot.iterations);
        let of = brief.args("gem5", &repeat, None);
        let text = running::job::Job::new(&of)
            .unwrap()
            .load
            .boot_arguments(running::job::Variant::of(plan::Choice::NONE));
        let gaps = match boot.label.starts_with("sliced") {
            true => "rouse.gap-us=200 ",
            false => "rouse.gap-us=5,20,50,200 ",
        };
        assert!(format!("{text} ").contains(gaps), "{text}");
    }
}

#[test]
fn a_break_even_that_no_wait_has_is_not_told_as_one() {
    let words = [-0.4, 0.0, 0.4].map(super::break_even_in_words);
    assert!(
        words[0].contains("however short") && words[1] == words[0],
        "{words:?}"
    );
    assert!(words[2].contains("shorter than 0.4 us"), "{words:?}");
}

/// A trap costs a switch, and a poll costs the whole wait. Trap and poll break even if the wait is as long as the
/// switch.
#[test]
fn the_break_even_is_where_a_wait_is_as_long_as_what_the_trap_takes() {
    let runs = runs(Wrong::Nothing, &ALL);
    // The ticks of these cells cover only the gap.
    assert!(frontier::break_even(runs.first()).unwrap().abs() < 0.01);
    let beyond = frontier::collect_points(runs.first(), &SETTINGS, &["200"]).unwrap();
    let best: Vec<&str> = frontier::unbeaten_points(&beyond, "200")
        .iter()
        .map(|point| point.setting)
        .collect();
    assert!(
        best.contains(&SPIN.name) && best.contains(&HALT.name),
        "{best:?}"
    );
    assert!(!best.contains(&POLL_50.name), "{best:?}");
}
