// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table on the terminal.

use cpuidle::{FOREVER, State};

use super::ledger::{Ledger, percent};
use super::{Answer, Request};
use page::document::Document;
use page::grid::Column;

/// Returns the whole output.
pub fn document(answer: &Answer) -> Document {
    let mut lines = Document::from(vec![
        heading(&answer.request),
        states(&answer.request),
        String::new(),
    ]);
    lines.table(columns(answer));
    lines.extend([
        String::new(),
        "energy, awake: % of the idle time at full power. late: event to first instruction.".into(),
        "The oracle knows the future and has the least energy; docs/governors.md defines all."
            .into(),
    ]);
    lines
}

fn heading(request: &Request) -> String {
    let Request { trace, setting, .. } = request;
    let mut parts = vec![
        trace.source.clone(),
        format!("{} intervals", trace.intervals.len()),
        format!("{:.3} s idle", trace.idle_ns() as f64 / 1e9),
    ];
    if setting.latency_limit_ns != FOREVER {
        parts.push(format!(
            "latency limit {} us",
            setting.latency_limit_ns / 1000
        ));
    }
    if setting.utilisation != 0 {
        parts.push(format!("utilisation {}/1024", setting.utilisation));
    }
    if setting.psd_ms != 0 {
        parts.push(format!("psd {} ms", setting.psd_ms));
    }
    parts.join(", ")
}

fn states(request: &Request) -> String {
    let table = &request.states.table;
    let state = |state: &State| {
        let off = if state.enabled { "" } else { " (off)" };
        let (exit, residency) = (
            state.exit_latency_ns / 1000,
            state.target_residency_ns / 1000,
        );
        format!("{} {exit}/{residency}{off}", state.name)
    };
    let states: Vec<String> = table.states().iter().map(state).collect();
    format!(
        "exit latency/target residency in us: {}; tick {} us",
        states.join(", "),
        table.tick_ns() as f64 / 1000.0
    )
}

fn columns(answer: &Answer) -> Vec<Column> {
    let Request { trace, states, .. } = &answer.request;
    let idle_ns = trace.idle_ns();
    let rows: Vec<(String, &Ledger)> = answer.rows().collect();
    let numbers = |group, title: &str, decimals: usize, of: &dyn Fn(&Ledger) -> f64| {
        let text = |(_, ledger): &(String, &Ledger)| format!("{:.decimals$}", of(ledger));
        Column::numbers(group, title, rows.iter().map(text).collect())
    };
    let us = |ns: u64| ns as f64 / 1000.0;
    let mut columns = vec![
        Column::words(
            "governor",
            rows.iter().map(|(name, _)| name.clone()).collect(),
        ),
        numbers("% of idle", "energy", 2, &|ledger| {
            ledger.energy_percent(idle_ns)
        }),
        numbers("% of idle", "awake", 2, &|ledger| {
            ledger.awake_percent(idle_ns)
        }),
        numbers("late, us", "mean", 1, &|ledger| ledger.mean() / 1000.0),
        numbers("late, us", "p50", 0, &|ledger| us(ledger.quantile(500))),
        numbers("late, us", "p99", 0, &|ledger| us(ledger.quantile(990))),
        numbers("late, us", "max", 0, &|ledger| us(ledger.quantile(1000))),
        numbers("% too", "deep", 2, &Ledger::too_deep_percent),
        numbers("% too", "shallow", 2, &Ledger::too_shallow_percent),
        numbers("", "choices", 0, &|ledger| ledger.choices() as f64),
        numbers("% of choices", "timer", 0, &|ledger| {
            percent(ledger.timer_asked as f64, ledger.choices() as f64)
        }),
        numbers("% of choices", "tick", 0, &|ledger| {
            percent(ledger.ticks as f64, ledger.choices() as f64)
        }),
    ];
    for (index, state) in states.table.states().iter().enumerate() {
        columns.push(numbers("% of choices", state.name, 0, &|ledger| {
            let usage = ledger.statistics.of(index).usage;
            percent(usage as f64, ledger.choices() as f64)
        }));
    }
    columns
}
