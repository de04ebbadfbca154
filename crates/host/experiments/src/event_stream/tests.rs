// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the conclusions from invented machines.

use plan::Wait;
use plan::Workload::{self, Overshoot, Stream};
use results::{Cell, Results, Stats};

use super::*;
use crate::verdict::Verdict;

/// Computes the overshoot of a poll that ends only at an edge of the event stream, from the poll's limit and the
/// stream's period. All times are in ticks of one nanosecond.
type Over = fn(u64, u64) -> u64;

/// Returns the overshoot on a machine that leaves WFE 100 ns after an edge.
fn rounding(limit: u64, period: u64) -> u64 {
    (limit + 100).next_multiple_of(period) - limit
}

fn cell(words: (Workload, Wait, u32, u32), made: u64, p50: u64) -> Cell {
    let (workload, wait, event_stream_us, poll_limit_us) = words;
    let stats = Stats {
        count: 8,
        min: p50 - p50 / 500,
        p50,
        max: p50 + p50 / 500,
        ..Stats::default()
    };
    Cell {
        what: plan::Cell {
            workload,
            wait,
            event_stream_us,
            poll_limit_us,
            ..plan::Cell::default()
        },
        event_stream_made_ns: made,
        unit: "ticks".into(),
        stats: Some(stats),
        ..Cell::default()
    }
}

fn results(cells: Vec<Cell>) -> Results {
    let mut results = Results::default();
    results.machine.cntfrq_hz = 1_000_000_000;
    results.cells = cells;
    results
}

/// Returns the boots of a machine whose event stream has `period` per cent of the correct period. Applies `change` to
/// each cell.
fn runs(overshoot: Over, period: u64, change: fn(&mut Cell)) -> Runs {
    let number = |text: &str| text.parse::<u32>().unwrap();
    let periods = ASKED.iter().map(|asked| {
        let made = u64::from(number(asked)) * 1024;
        cell(
            (Stream, Wait::Wfe, number(asked), 0),
            made,
            made * period / 100,
        )
    });
    let mut limits = Vec::new();
    for limit in LIMITS.map(number) {
        for (asked, made) in [(16, 16_384), (100, 65_536)] {
            let over = overshoot(u64::from(limit) * 1000, made * period / 100);
            limits.push(cell((Overshoot, Wait::Wfe, asked, limit), made, over));
            limits.push(cell((Overshoot, Wait::Wfet, asked, limit), made, 300));
        }
    }
    let spun = SPUN.map(number);
    let spin = spun.map(|limit| cell((Overshoot, Wait::Spin, 0, limit), 0, 500));
    let mut runs = Runs::new("event-stream");
    for (label, cells) in [
        ("periods", periods.collect()),
        ("limits", limits),
        ("spin", spin.to_vec()),
    ] {
        let mut results = results(cells);
        results.cells.iter_mut().for_each(change);
        runs.add(label, ONCE[0].name, results);
    }
    runs
}

fn judged(runs: &Runs) -> Vec<Option<bool>> {
    let outcome = conclude(runs).unwrap();
    outcome
        .claims
        .iter()
        .map(|claim| claim.verdict().agrees())
        .collect()
}

#[test]
fn a_machine_with_the_right_stream_agrees_with_everything() {
    let runs = runs(rounding, 100, |_| {});
    let outcome = conclude(&runs).unwrap();
    // There is one claim for each of the five periods, two for each stream with WFE, two for WFET, and one for spin.
    assert_eq!(outcome.claims.len(), 5 + 2 * 2 + 3);
    for claim in &outcome.claims {
        assert_eq!(claim.verdict(), Verdict::Agrees, "{}", claim.summary_line());
    }
    let lines = shown(&outcome);
    assert!(lines.contains("11.38 (1.00)"), "{lines}");
    let chart = &outcome.charts[0];
    let lines: Vec<(&str, usize)> = chart
        .lines()
        .iter()
        .map(|line| (line.name.as_str(), line.points.len()))
        .collect();
    let all = LIMITS.len();
    let expected = [
        ("wfe, 16.4 us", all),
        ("wfe, 65.5 us", all),
        ("wfet, 16.4 us", all),
        ("wfet, 65.5 us", all),
        ("spin", SPUN.len()),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_wrong_period_differs() {
    let judged = judged(&runs(rounding, 90, |_| {}));
    assert_eq!(judged[..5], [Some(false); 5]);
    assert_eq!(judged[5], Some(false));
}

#[test]
fn polls_that_are_not_rounded_up_differ() {
    let judged = judged(&runs(|_, _| 50, 100, |_| {}));
    assert_eq!(judged[..5], [Some(true); 5]);
    assert_eq!(judged[5..9], [Some(false); 4]);
}

#[test]
fn polls_beyond_the_next_edge_differ() {
    let late = |limit, period| rounding(limit, period) + period;
    assert_eq!(judged(&runs(late, 100, |_| {}))[5], Some(false));
}

#[test]
fn nothing_is_judged_of_a_stream_that_is_not_modelled() {
    let runs = runs(
        |_, _| 15,
        1,
        |cell| {
            if cell.what.wait == Wait::Wfe {
                cell.not_modelled = vec!["event_stream_period_ok".into()];
            }
        },
    );
    let outcome = conclude(&runs).unwrap();
    let (judged, not): (Vec<_>, Vec<_>) = outcome
        .claims
        .iter()
        .partition(|claim| claim.verdict().agrees().is_some());
    assert_eq!((judged.len(), not.len()), (3, 9));
    let line = not[0].summary_line();
    assert!(
        line.contains("not modelled (our counts: DIFFERS): asked for 2 us"),
        "{line}"
    );
    assert!(line.contains("measured 0.02, made 2.05: -99.0 %"), "{line}");
    let why = not[0].reason_for_difference().unwrap();
    assert_eq!(why, "this machine does not model event_stream_period_ok");
    assert!(shown(&outcome).contains("wfe*, 16.4 us"));
}

#[test]
fn what_the_machine_does_not_have_is_left_out_with_the_reason() {
    let runs = runs(rounding, 100, |cell| {
        if cell.what.wait == Wait::Wfet {
            cell.stats = None;
            cell.skipped = Some("wfet: this CPU has no FEAT_WFxT".into());
        }
    });
    let outcome = conclude(&runs).unwrap();
    assert_eq!(outcome.charts[0].lines().len(), 3);
    let skipped = outcome
        .notes
        .iter()
        .filter(|note| note.contains("FEAT_WFxT"));
    assert_eq!(skipped.count(), 1);
    assert!(
        outcome
            .claims
            .iter()
            .all(|claim| claim.verdict() == Verdict::Agrees)
    );
}

#[test]
fn cycles_are_time_by_the_clock_of_the_core() {
    let mut results = results(vec![cell((Stream, Wait::Wfe, 8, 0), 8192, 26_000)]);
    results.machine.core_hz = 2_600_000_000;
    results.cells[0].unit = "cycles".into();
    let mut runs = Runs::new("event-stream");
    runs.add("periods", ONCE[0].name, results);
    let found = runs.cell("periods", &[("event-stream-us", "8")]).unwrap();
    assert_eq!(found.value_in_us(found.median()), 10.0);
    assert_eq!(unit_note(found.unit()), " (measured in cycles)");
}

#[test]
fn the_counters_of_the_boards_make_five_different_periods() {
    use wait::stream::Stream;
    for frequency in [
        25_000_000,
        25_165_824,
        62_500_000,
        121_875_000,
        1_000_000_000,
        1_050_000_000,
        2_000_000_000,
    ] {
        let made = ASKED.map(|asked| {
            let stream = Stream::nearest(asked.parse().unwrap(), frequency, false).unwrap();
            assert!(!stream.clamped, "{asked} us at {frequency} Hz");
            stream.period()
        });
        let doubled = made.windows(2).all(|pair| pair[1] == 2 * pair[0]);
        assert!(doubled, "{frequency} Hz: {made:?}");
    }
}

/// Renders the outcome for a terminal.
fn shown(outcome: &Outcome) -> String {
    let mut document = page::document::Document::default();
    outcome.show(&mut document);
    document.terminal(None).join("\n")
}
