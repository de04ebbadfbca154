// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions of the samples, from the histograms.

use plan::Shape;
use results::Cell;

use crate::cells::{Panel, path, wait_class, waiting_text};
use crate::curves::{self, Line};
use crate::frame::{self, Entry, Item, Section, figure};
use crate::svg::number;

/// Most lines that one chart can show clearly.
const MOST: usize = 10;
/// Samples whose spread is below this share of the largest would make a vertical line, and have no chart.
const ALIKE: f64 = 0.01;

/// Returns the section: a chart for each workload and path.
pub fn section(panels: &[Panel<'_>]) -> Section {
    // The distributions of a broadcast would repeat other charts.
    let shown = panels
        .iter()
        .filter(|panel| !panel.scale.of_host && panel.cells[0].what.shape != Shape::Broadcast);
    frame::section(
        "latency",
        "Distributions",
        "Cumulative; every further nine of the percentiles takes as much room as the last, so that \
         the tail can be seen. Outliers are never dropped. Broadcasts are in the table.",
        shown.flat_map(items).collect(),
    )
}

/// A cell with its distribution.
struct Curve<'r> {
    cell: &'r Cell,
    points: Vec<(f64, f64)>,
}

/// Returns the charts of a workload, on one axis, and a sentence about the cells whose samples are nearly equal.
fn items(panel: &Panel<'_>) -> Vec<Item> {
    let (cells, chosen) = panel.plain();
    let curves = cells.into_iter().map(|cell| {
        let points = cumulative(panel, cell);
        Curve { cell, points }
    });
    let curves = curves.filter(|curve| !curve.points.is_empty());
    let (spread, alike): (Vec<Curve<'_>>, Vec<Curve<'_>>) = curves.partition(Curve::is_spread);
    let mut paths: Vec<String> = Vec::new();
    for curve in &spread {
        if !paths.contains(&path(curve.cell)) {
            paths.push(path(curve.cell));
        }
    }
    let charts = paths.into_iter().map(|of| {
        let here = spread
            .iter()
            .filter(|curve| path(curve.cell) == of)
            .take(MOST);
        chart(panel, &of, &here.collect::<Vec<_>>(), &spread, &chosen)
    });
    charts.chain(alike_note(panel, &alike)).collect()
}

impl Curve<'_> {
    fn least(&self) -> f64 {
        self.points.first().map_or(0.0, |point| point.0)
    }

    fn most(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.0)
    }

    fn is_spread(&self) -> bool {
        self.most() - self.least() > self.most() * ALIKE
    }
}

/// Describes the samples of cells without a chart of their distribution.
fn alike_note(panel: &Panel<'_>, alike: &[Curve<'_>]) -> Option<Item> {
    let least = alike.iter().map(Curve::least).reduce(f64::min)?;
    let most = alike.iter().map(Curve::most).fold(0.0, f64::max);
    let (title, unit) = (&panel.title, panel.measure());
    let samples = Panel::samples(alike.iter().map(|curve| &curve.cell));
    Some(Item::About(match alike {
        [one] => format!(
            "{title}, {}, {}: all samples are {} {unit} ({samples}).",
            path(one.cell),
            waiting_text(one.cell),
            number(most)
        ),
        several => format!(
            "{title}: in {} cells all samples of a cell are alike within {} %, {} to {} {unit} ({samples}).",
            several.len(),
            ALIKE * 100.0,
            number(least),
            number(most)
        ),
    }))
}

/// Returns a chart of the curves `here`, on the axis of `all`.
fn chart(
    panel: &Panel<'_>,
    path: &str,
    here: &[&Curve<'_>],
    all: &[Curve<'_>],
    chosen: &str,
) -> Item {
    let mut lines = Vec::new();
    let mut legend: Vec<Entry> = Vec::new();
    for curve in here {
        let name = waiting_text(curve.cell);
        let p50 = curve.cell.stats.map_or(0.0, |stats| panel.value(stats.p50));
        let max = curve.cell.stats.map_or(0.0, |stats| panel.value(stats.max));
        let more = format!("{}, max {}", number(p50), number(max));
        legend.push((wait_class(curve.cell), name.clone(), more));
        lines.push(Line {
            class: wait_class(curve.cell),
            name,
            points: curve.points.clone(),
        });
    }
    let title = format!("{}: {path}", panel.title);
    let samples = Panel::samples(here.iter().map(|curve| &curve.cell));
    let mut note = format!("{}, {samples}; legend: median, max", panel.measure());
    if !chosen.is_empty() {
        note = format!("{note}; {chosen}");
    }
    let about = format!("{title}: distribution of the samples");
    let values = all.iter().flat_map(|curve| [curve.least(), curve.most()]);
    let chart = curves::distributions(&lines, values, panel.unit(), &about);
    Item::Figure(figure(&title, &note, &legend, chart))
}

/// Returns values, each with the share of the samples at or below it. A histogram knows only the bucket of the largest
/// value; the statistics have the exact value.
fn cumulative(panel: &Panel<'_>, cell: &Cell) -> Vec<(f64, f64)> {
    let buckets = cell.histograms.get("total").map_or(&[][..], Vec::as_slice);
    let count: u64 = buckets.iter().map(|bucket| bucket.1).sum();
    let mut sum = 0;
    let points = buckets.iter().map(|&(value, samples)| {
        sum += samples;
        (panel.value(value), sum as f64 / count.max(1) as f64)
    });
    points.collect()
}
