// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions of the samples, from the histograms.

use plan::Shape;
use results::Cell;

use crate::cells::{Panel, path_name, wait_class, wait_text};
use crate::curves::{self, Line};
use crate::frame::{self, Entry, Item, Section, new_figure};
use crate::svg::format_number;

/// Maximum number of lines that one chart can show clearly.
const MOST: usize = 10;
/// Minimum spread of samples for a chart, as a share of the largest sample. A smaller one would draw a vertical line.
const ALIKE: f64 = 0.01;

/// Returns the section with a chart for each workload and path.
pub fn section(panels: &[Panel<'_>]) -> Section {
    // The distributions of broadcasts would repeat other charts.
    let shown = panels
        .iter()
        .filter(|panel| !panel.scale.of_host && panel.cells[0].what.shape != Shape::Broadcast);
    frame::new_section(
        "latency",
        "Distributions",
        "Cumulative; every further nine of the percentiles takes as much room as the last, so that \
         the tail can be seen. Outliers are never dropped. Broadcasts are in the table.",
        shown.flat_map(workload_charts).collect(),
    )
}

/// A cell with its distribution.
struct Curve<'r> {
    cell: &'r Cell,
    points: Vec<(f64, f64)>,
}

/// Returns the charts of a workload, which share an axis, and a sentence about the cells whose samples are nearly
/// equal.
fn workload_charts(panel: &Panel<'_>) -> Vec<Item> {
    let (cells, chosen) = panel.unswept_cells();
    let curves = cells.into_iter().map(|cell| {
        let points = cumulative_shares(panel, cell);
        Curve { cell, points }
    });
    let curves = curves.filter(|curve| !curve.points.is_empty());
    let (spread, alike): (Vec<Curve<'_>>, Vec<Curve<'_>>) = curves.partition(Curve::is_spread);
    let mut paths: Vec<String> = Vec::new();
    for curve in &spread {
        if !paths.contains(&path_name(curve.cell)) {
            paths.push(path_name(curve.cell));
        }
    }
    let charts = paths.into_iter().map(|of| {
        let here = spread
            .iter()
            .filter(|curve| path_name(curve.cell) == of)
            .take(MOST);
        draw_chart(panel, &of, &here.collect::<Vec<_>>(), &spread, &chosen)
    });
    charts.chain(equal_samples_note(panel, &alike)).collect()
}

impl Curve<'_> {
    fn least_value(&self) -> f64 {
        self.points.first().map_or(0.0, |point| point.0)
    }

    fn largest_value(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.0)
    }

    fn is_spread(&self) -> bool {
        self.largest_value() - self.least_value() > self.largest_value() * ALIKE
    }
}

/// Describes the cells whose samples are nearly equal, and whose distribution therefore has no chart.
fn equal_samples_note(panel: &Panel<'_>, alike: &[Curve<'_>]) -> Option<Item> {
    let least = alike.iter().map(Curve::least_value).reduce(f64::min)?;
    let most = alike.iter().map(Curve::largest_value).fold(0.0, f64::max);
    let (title, unit) = (&panel.title, panel.value_label());
    let samples = Panel::sample_counts(alike.iter().map(|curve| &curve.cell));
    Some(Item::About(match alike {
        [one] => format!(
            "{title}, {}, {}: all samples are {} {unit} ({samples}).",
            path_name(one.cell),
            wait_text(one.cell),
            format_number(most)
        ),
        several => format!(
            "{title}: in {} cells all samples of a cell are alike within {} %, {} to {} {unit} ({samples}).",
            several.len(),
            ALIKE * 100.0,
            format_number(least),
            format_number(most)
        ),
    }))
}

/// Returns a chart of the curves `here`, on an axis that fits the curves `all`.
fn draw_chart(
    panel: &Panel<'_>,
    path: &str,
    here: &[&Curve<'_>],
    all: &[Curve<'_>],
    chosen: &str,
) -> Item {
    let mut lines = Vec::new();
    let mut legend: Vec<Entry> = Vec::new();
    for curve in here {
        let name = wait_text(curve.cell);
        let p50 = curve
            .cell
            .stats
            .map_or(0.0, |stats| panel.shown_value(stats.p50));
        let max = curve
            .cell
            .stats
            .map_or(0.0, |stats| panel.shown_value(stats.max));
        let more = format!("{}, max {}", format_number(p50), format_number(max));
        legend.push((wait_class(curve.cell), name.clone(), more));
        lines.push(Line {
            class: wait_class(curve.cell),
            name,
            points: curve.points.clone(),
        });
    }
    let title = format!("{}: {path}", panel.title);
    let samples = Panel::sample_counts(here.iter().map(|curve| &curve.cell));
    let mut note = format!("{}, {samples}; legend: median, max", panel.value_label());
    if !chosen.is_empty() {
        note = format!("{note}; {chosen}");
    }
    let about = format!("{title}: distribution of the samples");
    let values = all
        .iter()
        .flat_map(|curve| [curve.least_value(), curve.largest_value()]);
    let chart = curves::draw_distributions(&lines, values, panel.unit(), &about);
    Item::Figure(new_figure(&title, &note, &legend, chart))
}

/// Returns each value with the share of the samples at or below it. The histogram has only the bucket of the largest
/// value; the exact value is in the statistics.
fn cumulative_shares(panel: &Panel<'_>, cell: &Cell) -> Vec<(f64, f64)> {
    let buckets = cell.histograms.get("total").map_or(&[][..], Vec::as_slice);
    let count: u64 = buckets.iter().map(|bucket| bucket.1).sum();
    let mut sum = 0;
    let points = buckets.iter().map(|&(value, samples)| {
        sum += samples;
        (panel.shown_value(value), sum as f64 / count.max(1) as f64)
    });
    points.collect()
}
