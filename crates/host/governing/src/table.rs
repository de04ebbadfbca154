// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table on the terminal.

use cpuidle::{FOREVER, State};

use super::ledger::{Ledger, percent};
use super::{Answer, Request};
use page::document::Document;
use page::{Column, thousands};

/// Returns the whole output.
pub fn document(answer: &Answer) -> Document {
    let mut lines = Document::from(vec![
        heading(&answer.request),
        states_line(&answer.request),
        String::new(),
    ]);
    lines.table(columns(answer));
    lines.extend([
        String::new(),
        "energy, awake: % of the idle time at full power. late: event to first instruction.".into(),
    ]);
    lines.extend(explain_excess_energy(answer));
    lines.extend([
        "The oracle knows the future and has the least energy; docs/governors.md defines all."
            .into(),
    ]);
    lines
}

/// Explains energies that exceed the energy of a CPU that never idles; `None` if there are no such
/// energies.
fn explain_excess_energy(answer: &Answer) -> Option<String> {
    let idle_ns = answer.request.trace.idle_ns();
    let above = |(_, ledger): &(String, &Ledger)| ledger.energy_percent(idle_ns) > 100.0;
    answer.rows().any(|row| above(&row)).then(|| {
        "energy above 100: staying awake would have taken less. Entering and leaving a state takes energy too, which a stay \
         shorter than its target residency does not win back."
            .into()
    })
}

/// Returns the rows of the table: governors with equal figures share a row, with all their names.
fn merged_rows(answer: &Answer) -> Vec<(String, &Ledger)> {
    let mut merged: Vec<(String, &Ledger)> = Vec::new();
    for (name, ledger) in answer.rows() {
        match merged.iter_mut().find(|(_, known)| *known == ledger) {
            Some((names, _)) => *names += &format!(", {name}"),
            None => merged.push((name, ledger)),
        }
    }
    merged
}

fn heading(request: &Request) -> String {
    let Request { trace, setting, .. } = request;
    let mut parts = vec![
        trace.source.clone(),
        format!("{} intervals", thousands(trace.intervals.len() as f64)),
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

fn states_line(request: &Request) -> String {
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
    let rows = merged_rows(answer);
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
        Column::numbers(
            "",
            "choices",
            rows.iter()
                .map(|(_, ledger)| thousands(ledger.choices() as f64))
                .collect(),
        ),
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
