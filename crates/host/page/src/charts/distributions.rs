// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions of the samples, from the histograms.

use plan::{Deliver, Shape, Under, Wake};
use results::Cell;

use crate::cells::{Panel, path, wait_class, waiting_text};
use crate::curves::{self, Line};
use crate::frame::{self, Entry, Figure, Section, figure};
use crate::leading_median::By;
use crate::svg::number;

/// Whether the path of a cell has a chart. An elided wake-up does not depend on the delivery,
/// so it is shown once.
fn has_chart(cell: &Cell) -> bool {
    match (cell.under, cell.what.deliver, cell.what.wake) {
        (_, _, Wake::Ipi) | (Under::Rouse, Deliver::Inject, Wake::Elide) => true,
        (Under::Rouse, Deliver::Direct, Wake::Elide)
        | (
            Under::None | Under::Xen | Under::Kvm | Under::KvmNvhe | Under::KvmProtected,
            _,
            Wake::Elide,
        ) => false,
    }
}
/// Most lines that one chart can show clearly.
const MOST: usize = 10;

/// Returns the section: a chart for each workload and path.
pub fn section(panels: &[Panel<'_>]) -> Section {
    let mut figures = Vec::new();
    // A broadcast repeats what is shown already.
    let shown = panels
        .iter()
        .filter(|panel| !panel.scale.of_host && panel.cells[0].what.shape != Shape::Broadcast);
    for panel in shown {
        let (mut cells, chosen) = panel.plain();
        cells.retain(|cell| has_chart(cell));
        let mut paths: Vec<String> = Vec::new();
        for cell in &cells {
            if !paths.contains(&path(cell)) {
                paths.push(path(cell));
            }
        }
        for of in paths {
            let cells: Vec<&Cell> = cells
                .iter()
                .copied()
                .filter(|cell| path(cell) == of)
                .take(MOST)
                .collect();
            figures.extend(chart(panel, &of, &cells, &chosen));
        }
    }
    frame::section(
        "latency",
        "Distributions",
        "Cumulative; every further nine of the percentiles takes as much room as the last, so that \
         the tail can be seen. Outliers are never dropped. Where samples are taken apart it is the path that is shown. Broadcasts, and elided wake-ups of direct \
         delivery, are in the table.",
        figures,
    )
}

fn chart(panel: &Panel<'_>, path: &str, cells: &[&Cell], chosen: &str) -> Option<Figure> {
    let mut lines = Vec::new();
    let mut legend: Vec<Entry> = Vec::new();
    for cell in cells {
        let points = cumulative(panel, cell);
        if points.is_empty() {
            continue;
        }
        let name = waiting_text(cell);
        let stats = panel.lead().stats(cell)?;
        let more = format!(
            "{}, max {}",
            number(panel.value(stats.p50)),
            number(panel.value(stats.max))
        );
        legend.push((wait_class(cell), name.clone(), more));
        lines.push(Line {
            class: wait_class(cell),
            name,
            points,
        });
    }
    if lines.is_empty() {
        return None;
    }
    let title = format!("{}: {path}", panel.title);
    let mut note = format!(
        "{}, {}; legend: p50, max",
        panel.measured(match panel.lead() {
            By::Path => " on the path, with bookkeeping,",
            By::Sample => "",
        }),
        Panel::samples(cells.iter())
    );
    if !chosen.is_empty() {
        note = format!("{note}; {chosen}");
    }
    let about = format!("{title}: distribution of the samples");
    let chart = curves::distributions(&lines, panel.unit(), &about);
    Some(figure(&title, &note, &legend, chart))
}

/// Returns values and the share of the samples that is at or below them. A histogram
/// has the largest value only to its bucket, the statistics have it exactly.
fn cumulative(panel: &Panel<'_>, cell: &Cell) -> Vec<(f64, f64)> {
    let buckets = panel.lead().histogram(cell);
    let count: u64 = buckets.iter().map(|bucket| bucket.1).sum();
    let mut sum = 0;
    let points = buckets.iter().map(|&(value, samples)| {
        sum += samples;
        (panel.value(value), sum as f64 / count.max(1) as f64)
    });
    points.collect()
}
