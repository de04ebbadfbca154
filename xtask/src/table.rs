// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run shows on the terminal.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::grid::{self, Column};
use crate::results::{Cell, Results, Stats};
use crate::summary;

/// Causes that have a column; the rest is summed up as `other`.
const CAUSES: [&str; 4] = ["wfi", "wfe", "sgi", "irq"];

/// How values of a run are shown.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Nanoseconds per tick, if values are ticks.
    nanoseconds: Option<f64>,
    /// Values measure the emulator's threads on the host.
    pub of_host: bool,
}

impl Scale {
    /// The scale of a run's values.
    pub fn of(results: &Results) -> Self {
        let frequency = results.machine.cntfrq_hz;
        let ticks = results.unit == "ticks" && frequency > 0;
        let mode = results
            .machine
            .emulator
            .as_ref()
            .map(|emulator| emulator.mode.as_str());
        Self {
            nanoseconds: ticks.then(|| 1e9 / frequency as f64),
            of_host: mode.is_some_and(|mode| mode != "icount"),
        }
    }

    /// The unit that is shown.
    pub fn unit<'r>(&self, results: &'r Results) -> &'r str {
        match (self.nanoseconds, results.unit.as_str()) {
            (Some(_), _) => "ns",
            (None, "insns") => "instructions",
            (None, unit) => unit,
        }
    }

    /// A value in the unit that is shown.
    pub fn show(&self, value: u64) -> String {
        match self.nanoseconds {
            Some(nanoseconds) => format!("{:.0}", value as f64 * nanoseconds),
            None => value.to_string(),
        }
    }
}

/// Everything that is shown, line by line.
pub fn lines(results: &Results) -> Vec<String> {
    let scale = Scale::of(results);
    let mut lines = machine(results);
    let mut workloads: Vec<&str> = Vec::new();
    for cell in &results.cells {
        if !workloads.contains(&cell.workload.as_str()) {
            workloads.push(&cell.workload);
        }
    }
    for workload in workloads {
        let of_workload = |cell: &&Cell| cell.workload == workload && cell.stats.is_some();
        let cells: Vec<&Cell> = results.cells.iter().filter(of_workload).collect();
        if !cells.is_empty() {
            lines.push(String::new());
            lines.push(heading(workload, results, scale));
            lines.extend(grid::lines(&columns(&cells, scale)));
        }
    }
    lines.extend(not_shown(results));
    lines.push(String::new());
    lines.push(summary::sentence(results, scale));
    lines
}

/// Where it was measured and what that place can't show.
fn machine(results: &Results) -> Vec<String> {
    let machine = &results.machine;
    let mut parts = vec![
        format!("{}: {} CPUs ({})", results.board, machine.cpus, machine.cpu),
        format!("counter {} MHz", machine.cntfrq_hz as f64 / 1e6),
        match machine.gic.as_str() {
            "" => String::new(),
            gic => format!("GIC {gic}"),
        },
        format!("{} list registers", machine.list_registers),
    ];
    if let Some(emulator) = &machine.emulator {
        parts.push(format!(
            "{} {} ({})",
            emulator.name, emulator.version, emulator.mode
        ));
    }
    parts.retain(|part| !part.is_empty());
    let mut lines = vec![parts.join(", ")];
    for (title, wanted) in [
        ("models", "true"),
        ("does not model", "false"),
        ("otherwise", ""),
    ] {
        let probes = results.fidelity.iter().filter_map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match (wanted, text.as_str()) {
                ("", "true" | "false") => None,
                ("", _) => Some(format!("{name}: {text}")),
                (wanted, text) => (wanted == text).then(|| name.clone()),
            }
        });
        let probes: Vec<String> = probes.collect();
        if !probes.is_empty() {
            lines.push(format!("  {title}: {}", probes.join(", ")));
        }
    }
    lines
}

fn heading(workload: &str, results: &Results, scale: Scale) -> String {
    let unit = scale.unit(results);
    let operation = operation(workload);
    let caution = if scale.of_host {
        "; emulated: this is how the host's threads behave, so only min and p50 are shown"
    } else {
        ""
    };
    format!(
        "{workload}: {unit} per {operation} ({}){caution}",
        results.unit_how
    )
}

/// What one sample of a workload is.
pub fn operation(workload: &str) -> &'static str {
    match workload {
        "pingpong" => "round trip",
        "ipi" => "interrupt",
        _ => "operation",
    }
}

fn columns(cells: &[&Cell], scale: Scale) -> Vec<Column> {
    let mut columns = words(cells);
    columns.extend(limits(cells));
    columns.extend(statistics(cells, scale));
    let rate = |group, title: &str, of: &dyn Fn(&Cell) -> f64| {
        Column::numbers(
            group,
            title,
            cells.iter().map(|cell| rate(of(cell))).collect(),
        )
    };
    for cause in CAUSES {
        columns.push(rate("exits/op", cause, &|cell| {
            cell.per_sample(&cell.exits, cause)
        }));
    }
    columns.push(rate("exits/op", "other", &other_exits));
    for kind in ["sent", "elided"] {
        columns.push(rate("IPIs/op", kind, &|cell| {
            cell.per_sample(&cell.ipis, kind)
        }));
    }
    for kind in ["event", "timeout", "irq"] {
        columns.push(rate("wakes/op", kind, &|cell| {
            cell.per_sample(&cell.wakes, kind)
        }));
    }
    columns
}

/// Words of the cells. `under` and `shape` only if they tell cells apart.
fn words(cells: &[&Cell]) -> Vec<Column> {
    let keys = ["under", "shape", "wait", "trap", "deliver", "wake"];
    let columns = keys.iter().filter_map(|key| {
        let texts: Vec<String> = cells
            .iter()
            .map(|cell| cell.word(key).unwrap_or_default())
            .collect();
        let optional = ["under", "shape"].contains(key);
        let differs = texts.windows(2).any(|pair| pair[0] != pair[1]);
        (!optional || differs).then(|| Column::words(key, texts))
    });
    columns.collect()
}

/// Microseconds that apply to any of the cells.
fn limits(cells: &[&Cell]) -> Vec<Column> {
    let keys = [
        ("limit", "poll-limit-us"),
        ("host", "host-poll-us"),
        ("stream", "event-stream-us"),
        ("gap", "gap-us"),
    ];
    let columns = keys.iter().filter_map(|(title, key)| {
        let texts = cells.iter().map(|cell| cell.word(key).unwrap_or_default());
        let texts: Vec<String> = texts
            .map(|text| if text == "0" { "-".into() } else { text })
            .collect();
        let any = texts.iter().any(|text| text != "-");
        any.then(|| Column::numbers("us", title, texts))
    });
    columns.collect()
}

fn statistics(cells: &[&Cell], scale: Scale) -> Vec<Column> {
    type Field = fn(&Stats) -> u64;
    let fields: [(&str, Field); 5] = [
        ("min", |stats| stats.min),
        ("p50", |stats| stats.p50),
        ("p90", |stats| stats.p90),
        ("p99", |stats| stats.p99),
        ("max", |stats| stats.max),
    ];
    let column = |title: &str, show: &dyn Fn(&Stats) -> String| {
        let texts = cells
            .iter()
            .map(|cell| cell.stats.as_ref().map(show).unwrap_or_default());
        Column::numbers("", title, texts.collect())
    };
    let shown = if scale.of_host { 2 } else { fields.len() };
    let mut columns = vec![column("n", &|stats| stats.count.to_string())];
    for (title, field) in &fields[..shown] {
        columns.push(column(title, &|stats| scale.show(field(stats))));
    }
    columns
}

fn other_exits(cell: &Cell) -> f64 {
    let others = cell
        .exits
        .keys()
        .filter(|name| !CAUSES.contains(&name.as_str()));
    others.map(|name| cell.per_sample(&cell.exits, name)).sum()
}

/// A count per operation, short: whole numbers without decimals, nothing as a dot.
fn rate(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    match value {
        0.0 => "·".into(),
        _ if rounded == 0.0 => "<0.01".into(),
        _ if rounded.fract() == 0.0 => format!("{rounded:.0}"),
        _ => format!("{rounded:.2}"),
    }
}

/// Cells that were skipped, by reason, and those that were damaged.
fn not_shown(results: &Results) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in &results.cells {
        if let Some(why) = &cell.skipped {
            reasons.entry(why).or_default().push(cell.title());
        }
    }
    let mut lines = Vec::new();
    for (why, cells) in reasons {
        lines.push(String::new());
        lines.push(format!("skipped, {why}:"));
        lines.extend(cells.iter().map(|cell| format!("  {cell}")));
    }
    if !results.damaged.is_empty() {
        lines.push(String::new());
        lines.push("damaged, not shown:".into());
        lines.extend(results.damaged.iter().map(|cell| format!("  {cell}")));
    }
    lines.extend(
        results
            .problems
            .iter()
            .map(|problem| format!("console: {problem}")),
    );
    lines.extend(results.notes.iter().map(|note| format!("note: {note}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::results;

    #[test]
    fn rates_are_short() {
        let shown = [0.0, 0.001, 1.0, 2.004, 1.5, 12.0].map(rate);
        assert_eq!(shown, ["·", "<0.01", "1", "2", "1.50", "12"]);
    }

    #[test]
    fn the_table_names_unit_cells_and_what_is_missing() {
        let mut results = results();
        results.damaged.push("cell 7 (ipi)".into());
        let text = lines(&results).join("\n");
        for part in [
            "pingpong: instructions per round trip (INST_RETIRED)",
            "skipped, one CPU only:\n  ipi  wfi",
            "damaged, not shown:\n  cell 7 (ipi)",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }

    #[test]
    fn ticks_of_an_emulator_are_the_hosts_and_shown_as_time() {
        let mut results = results();
        results.unit = "ticks".into();
        results.machine.cntfrq_hz = 500_000_000;
        results.machine.emulator = Some(crate::results::Emulator {
            mode: "mttcg".into(),
            ..Default::default()
        });
        let scale = Scale::of(&results);
        assert_eq!(
            (scale.show(30).as_str(), scale.unit(&results)),
            ("60", "ns")
        );
        let text = lines(&results).join("\n");
        assert!(
            text.contains("the host's threads") && !text.contains("p99"),
            "{text}"
        );
    }
}
