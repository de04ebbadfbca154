// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows a run as text for a terminal.

mod medians;
mod repetitions;

pub use medians::{Units, distinguishing_columns};
pub(crate) use repetitions::{Naming, equal_runs, medians_of_runs};

use std::collections::{BTreeMap, BTreeSet};

use results::{Cell, Results};
use serde_json::Value;

use crate::clocks;
use crate::columns::{self, MARK};
use crate::document::Document;
use crate::layer_costs;
use crate::pairs;
use crate::scale::{Scale, cell_operation};
use crate::shortfalls::list_shortfalls;
use crate::summary;

/// Maximum number of skipped cells to list for each reason.
const LISTED: usize = 12;

/// Returns the whole output, line by line, with tables at most `width` wide.
pub fn lines(results: &Results, width: Option<usize>) -> Vec<String> {
    output_document(results).terminal(width)
}

/// Returns the whole output.
pub fn output_document(results: &Results) -> Document {
    if !results.runs.is_empty() {
        return repetitions::repetitions_document(results);
    }
    let scale = Scale::for_results(results);
    let mut lines = Document::from(machine_lines(results));
    let mut tables: Vec<String> = Vec::new();
    for cell in &results.cells {
        if !tables.contains(&cell.table_key()) {
            tables.push(cell.table_key());
        }
    }
    for table in tables {
        let has = |cell: &&Cell| cell.table_key() == table && cell.stats.is_some();
        let cells: Vec<&Cell> = results.cells.iter().filter(has).collect();
        if !cells.is_empty() {
            lines.push(String::new());
            lines.push(table_heading(&table, results, &cells, scale));
            let shown = pairs::drop_further_pairs(&cells, pairs::MANY);
            lines.table(columns::columns_of_cells(&shown, scale));
            lines.extend(crate::path::pause_note(&cells));
            lines.extend(crate::path::learning_note(&cells));
            if let left @ 1.. = cells.len() - shown.len() {
                lines.push(format!(
                    "{left} cells between other CPUs: see results.csv, and the map of the report"
                ));
            }
        }
    }
    lines.extend(crate::path::column_legend(results.cells.iter()));
    lines.extend(cells_not_shown(results));
    lines.push(String::new());
    lines.extend(layer_costs::cost_sentence(results, scale));
    lines.extend(pairs::pair_lines(results, scale));
    lines.extend(summary::compare_polling(results, scale));
    lines.push(summary::summary_sentence(results, scale));
    lines.extend(summary::unmodelled_costs(results));
    lines
}

/// Describes the machine of the measurement, and its limits.
fn machine_lines(results: &Results) -> Vec<String> {
    let machine = &results.machine;
    let mut parts = vec![
        name_cpus(results),
        format!("counter {}", machine.counter_text()),
        match machine.core_hz {
            0 => String::new(),
            hertz => format!("core {:.0} MHz", hertz as f64 / 1e6),
        },
        match machine.gic.as_str() {
            "" => String::new(),
            gic => format!("GIC {gic}"),
        },
        match machine.list_registers {
            0 => String::new(),
            registers => format!("{registers} list registers"),
        },
        match machine.hypervisor.as_str() {
            "" => String::new(),
            name => format!("another hypervisor below ({name})"),
        },
        atomics_note(results),
    ];
    if let Some(emulator) = &machine.emulator {
        parts.push(format!(
            "{} {} ({})",
            emulator.name, emulator.version, emulator.mode
        ));
    }
    parts.retain(|part| !part.is_empty());
    let mut lines = vec![parts.join(", ")];
    let below = machine.below.iter();
    lines.extend(below.map(|(under, told)| format!("  under {under}: {told}")));
    lines.extend(fidelity_lines(results));
    let clocks = clocks::clock_lines(results);
    lines.extend(clocks.iter().map(|line| format!("  {line}")));
    lines
}

/// Names the board and its CPUs if they are known. A log contains neither the board nor the CPU model.
fn name_cpus(results: &Results) -> String {
    let machine = &results.machine;
    let board = match results.board.as_str() {
        "" => "a board that is not named",
        board => board,
    };
    let cpus = match machine.cpus {
        0 => "CPUs not counted".into(),
        1 => "1 CPU".into(),
        cpus => format!("{cpus} CPUs"),
    };
    match machine.cpu.as_str() {
        "" => format!("{board}: {cpus}"),
        model => format!("{board}: {cpus} ({model})"),
    }
}

/// Names the guest's atomic instructions if they are the same in all cells. In this case no column shows them, and the
/// machine may have chosen them.
fn atomics_note(results: &Results) -> String {
    let mut words = results.cells.iter().map(|cell| cell.what.atomics);
    match words.next() {
        // Linux chooses its atomic instructions itself.
        _ if results
            .cells
            .iter()
            .all(|cell| cell.what.workload.is_linux()) =>
        {
            String::new()
        }
        Some(first) if words.all(|other| other == first) => format!("atomics {first}"),
        _ => String::new(),
    }
}

/// Lists the probes' findings, sorted by answer.
fn fidelity_lines(results: &Results) -> Vec<String> {
    let mut models = Vec::new();
    let mut lacks = Vec::new();
    let mut others = Vec::new();
    for (name, value) in &results.fidelity {
        match value {
            Value::Bool(true) => models.push(name.clone()),
            Value::Bool(false) => lacks.push(name.clone()),
            Value::String(text) => others.push(format!("{name}: {text}")),
            other => others.push(format!("{name}: {other}")),
        }
    }
    let titled = [
        ("models", models),
        ("does not model", lacks),
        ("otherwise", others),
    ];
    let titled = titled.into_iter().filter(|(_, names)| !names.is_empty());
    titled
        .map(|(title, names)| format!("  {title}: {}", names.join(", ")))
        .collect()
}

fn table_heading(table: &str, results: &Results, cells: &[&Cell], scale: Scale) -> String {
    let unit = scale.unit_of_cells(results, cells);
    let operation = cell_operation(cells[0]);
    let caution = unit_caution(cells, scale);
    format!(
        "{table}: {unit} per {operation} ({}){caution}",
        results.unit_how
    )
}

/// Returns a caution about the unit of `cells`, as the end of a heading.
pub(crate) fn unit_caution(cells: &[&Cell], scale: Scale) -> &'static str {
    if scale.of_host {
        "; emulated: this is how the host's threads behave, so only min and p50 are shown"
    } else if cells.iter().any(|cell| cell.what.is_open()) {
        "; a time, in which CPUs also wait for the next request"
    } else if cells.iter().any(|cell| cell.unit == results::VIRTUAL) {
        "; a tick is an instruction, but while every CPU is idle, the counter skips to the next event"
    } else {
        ""
    }
}

/// Explains the marks next to waits, if there are any.
fn mark_legend(results: &Results) -> Vec<String> {
    let cells = results.cells.iter().filter(|cell| cell.stats.is_some());
    let missing: BTreeSet<&str> = cells
        .flat_map(|cell| cell.not_modelled.iter().map(String::as_str))
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let is_unsure = |name: &&str| {
        let value = results.fidelity.get(*name);
        value.and_then(|value| value.as_str()) == Some("not-sure")
    };
    let (unsure, missing): (Vec<&str>, Vec<&str>) = missing.into_iter().partition(is_unsure);
    let mut lines = vec![String::new()];
    for (why, names) in [
        ("this machine does not model", missing),
        ("was not shown here, for or against", unsure),
    ] {
        if !names.is_empty() {
            let names = names.join(", ");
            lines.push(format!("{MARK} depends on what {why}: {names}"));
        }
    }
    lines
}

/// Lists the skipped cells by reason, and the damaged cells.
fn cells_not_shown(results: &Results) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in &results.cells {
        if let Some(why) = &cell.skipped {
            reasons.entry(why).or_default().push(cell.title());
        }
    }
    let mut lines = mark_legend(results);
    let shortfalls = list_shortfalls(results);
    if !shortfalls.is_empty() {
        lines.push(String::new());
        lines.extend(shortfalls);
    }
    for (why, cells) in reasons {
        lines.push(String::new());
        lines.push(format!("skipped, {why}:"));
        lines.extend(cells.iter().take(LISTED).map(|cell| format!("  {cell}")));
        if let Some(more) = cells.len().checked_sub(LISTED + 1) {
            lines.push(format!("  and {} more, see results.json", more + 1));
        }
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
    lines.extend(
        results
            .shown_notes()
            .into_iter()
            .map(|note| format!("note: {note}")),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Bounds;
    use results::samples::results;

    #[test]
    fn the_table_names_unit_cells_and_what_is_missing() {
        let mut results = results();
        results.damaged.push("cell 7 (ipi)".into());
        let text = lines(&results, None).join("\n");
        for part in [
            "pingpong: instructions per round trip (INST_RETIRED)",
            "skipped, one CPU only:\n  ipi one wfi",
            "damaged, not shown:\n  cell 7 (ipi)",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }

    #[test]
    fn what_is_not_sure_is_told_from_what_is_not_modelled() {
        let mut results = results();
        let cell = results.cells.iter_mut().find(|cell| cell.stats.is_some());
        cell.unwrap().not_modelled = vec!["wfe_halts".into(), "wfet_halts".into()];
        results.fidelity.insert("wfe_halts".into(), false.into());
        results
            .fidelity
            .insert("wfet_halts".into(), "not-sure".into());
        let text = lines(&results, None).join("\n");
        for part in [
            "otherwise: wfet_halts: not-sure",
            "* depends on what this machine does not model: wfe_halts\n",
            "* depends on what was not shown here, for or against: wfet_halts",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }

    #[test]
    fn cycles_of_a_modelled_core_are_named_and_the_whole_distribution_is_shown() {
        let mut results = results::samples::results_in_cycles();
        for stats in results
            .cells
            .iter_mut()
            .filter_map(|cell| cell.stats.as_mut())
        {
            stats.count = 10_000;
        }
        let scale = Scale::for_results(&results);
        assert!(!scale.of_host);
        assert_eq!(
            (
                scale.show_value(30).as_str(),
                scale.unit_of_results(&results)
            ),
            ("30", "cycles")
        );
        assert_eq!(scale.convert_ticks(10), Some(1040.0));
        // This cell was measured by a core that is half as fast.
        let mut slower = results.cells[1].clone();
        slower.cycles_hz = Some(1_300_000_000);
        assert_eq!(scale.for_cell(&slower).convert_ticks(10), Some(520.0));
        // The bucket of 4000 ticks has the same width in ticks on both cores, so it is the same share of their cycles.
        let width = |scale: Scale, value| {
            scale
                .show_percentile(value, Bounds::NONE)
                .split_once('±')
                .unwrap()
                .1
                .parse::<f64>()
                .unwrap()
        };
        let (fast, slow) = (
            width(scale, 4000 * 104),
            width(scale.for_cell(&slower), 4000 * 52),
        );
        assert!((fast / slow - 2.0).abs() < 0.01, "{fast} {slow}");
        let text = lines(&results, None).join("\n");
        for part in [
            "counter 25 MHz, core 2600 MHz, atomics llsc, gem5 24.0 (o3)",
            "pingpong: cycles per round trip (INST_RETIRED)",
            "p99.9",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }

    #[test]
    fn what_stamps_distort_stands_beside_what_needs_them() {
        let mut results = results();
        let cell = results.cells.iter_mut().find(|cell| cell.stats.is_some());
        let cell = cell.unwrap();
        let traced = results::Stage {
            name: "traced".into(),
            stats: results::Stats {
                p50: 45,
                ..Default::default()
            },
        };
        cell.stages.push(traced);
        let shown = |results: &Results| lines(results, None).join("\n");
        assert!(!shown(&results).contains("stamps"));
        let cell = results.cells.iter_mut().find(|cell| cell.stats.is_some());
        cell.unwrap().residency = [("run".into(), 30), ("wfi".into(), 90)].into();
        let text = shown(&results);
        let title = text.lines().find(|line| line.contains("stamps"));
        assert!(title.unwrap().ends_with("run   wfi  stamps"), "{text}");
        assert!(text.contains("25.0  75.0   1.50x"), "{text}");
    }

    #[test]
    fn ticks_of_an_emulator_are_the_hosts_and_shown_as_time() {
        let mut results = results();
        results.unit = "ticks".into();
        results.machine.cntfrq_hz = 500_000_000;
        results.machine.emulator = Some(results::Emulator {
            mode: "mttcg".into(),
            ..Default::default()
        });
        let scale = Scale::for_results(&results);
        assert_eq!(
            (
                scale.show_value(30).as_str(),
                scale.unit_of_results(&results)
            ),
            ("60", "ns")
        );
        let text = lines(&results, None).join("\n");
        assert!(
            text.contains("the host's threads") && !text.contains("p99"),
            "{text}"
        );
    }
}
