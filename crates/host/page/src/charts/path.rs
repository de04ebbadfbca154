// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work in samples without time stamps. An observer outside the machine counted every instruction, so the counts do
//! not include the cost of stamps.

use results::{Cell, Critical, Work};

use super::parts::{cells_with, colour_class, draw_chart, legend, stack_rows};
use crate::cells::Panel;
use crate::stacks::Chart;

type Level = (&'static str, fn(&Work) -> u64);

/// Exception levels into which the path is divided.
const LEVELS: [Level; 4] = [
    ("EL0", |work| work.el0),
    ("EL1", |work| work.el1),
    ("EL2", |work| work.el2),
    ("EL3", |work| work.el3),
];
/// Name of the work that CPUs do after the path or in parallel to it.
const BESIDE: &str = "beside the path";

/// Returns a chart of a sample's work: the path, by exception level, and the remaining work.
pub fn work_chart(panel: &Panel<'_>) -> Option<Chart> {
    let cells = cells_with(panel, |cell| cell.critical.is_some());
    let known = || cells.iter().filter_map(|cell| cell.critical.as_ref());
    let used = LEVELS
        .into_iter()
        .filter(|(_, of)| known().any(|critical| of(&critical.on_path) > 0));
    let levels: Vec<Level> = used.collect();
    let mut names: Vec<String> = levels.iter().map(|(name, _)| (*name).into()).collect();
    if names.is_empty() {
        return None;
    }
    names.push(BESIDE.into());
    let rows = stack_rows(&cells, |cell| {
        let critical = cell.critical.as_ref()?;
        let on_path = levels
            .iter()
            .map(|(_, of)| mean_per_sample(critical, of(&critical.on_path)));
        let on_path: Vec<f64> = on_path.collect();
        let rest = (total_work(critical) - on_path.iter().sum::<f64>()).max(0.0);
        let parts = on_path.into_iter().chain([rest]).zip(&names).enumerate();
        let parts = parts.map(|(index, (value, name))| (colour_class(index), name.clone(), value));
        Some((parts.collect(), Some(net_path(critical))))
    });
    let unit = panel.unit();
    let note = format!(
        "without stamps: mean {}, {}",
        panel.value_label(),
        Panel::sample_counts(cells.iter().filter(|cell: &&&Cell| cell.critical.is_some()))
    );
    draw_chart(
        panel,
        rows,
        &legend(&names),
        (unit, &note),
        "the path without stamps",
    )
}

/// Divides `count`, a total over all samples with a path, by the number of samples with a path.
fn mean_per_sample(critical: &Critical, count: u64) -> f64 {
    count as f64 / critical.samples.max(1) as f64
}

/// Returns the work of all CPUs in a sample.
fn total_work(critical: &Critical) -> f64 {
    let samples = (critical.samples + critical.unclear).max(1);
    critical.work.total_work() as f64 / samples as f64
}

/// Returns the path without the bookkeeping instructions.
fn net_path(critical: &Critical) -> f64 {
    let path = &critical.on_path;
    mean_per_sample(
        critical,
        path.total_work() - path.total_bookkeeping().min(path.total_work()),
    )
}
