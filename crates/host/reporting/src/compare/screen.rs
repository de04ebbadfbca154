// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of a comparison in 80 columns: the cells that differ, each with its path below it.

use page::document::Document;
use page::grid::Column;
use page::scale::Scale;
use page::table::Units;
use plan::Wake;
use results::Cell;
use results::compare::{Compared, Comparison, Pair, Quantity, Verdict};

use super::gate;
use super::text::{cell_verdict, format_difference, format_figure, format_percent, verdict_text};
use page::cell_names::CellNames;

/// Number of a table's lines that fit on a screen.
const LINES: usize = 24;
/// The largest number of differing cells for which exits and IPIs are shown, too.
const FEW: usize = 6;
/// The quantities of exits and IPIs, with the names of their lines.
const COUNTS: [(Quantity, &str); 2] = [
    (Quantity::Exits, "  exits per sample"),
    (Quantity::Ipis, "  IPIs per sample"),
];

/// A line of the table.
#[derive(PartialEq, Eq)]
struct Line {
    cell: String,
    unit: String,
    figures: [String; 4],
    verdict: String,
}

/// Lists the cells that differ, the largest difference first, and then the cells without a verdict. Counts the
/// others.
pub fn differing_cells(
    found: &Comparison<'_>,
    names: &CellNames,
    scale: Scale,
    units: &Units<'_>,
) -> Document {
    let same = |place: &usize| differs_nowhere(&found.pairs[*place]);
    let (same, mut rows): (Vec<usize>, Vec<usize>) = (0..found.pairs.len()).partition(same);
    rows.sort_by(|one, other| {
        sort_key(&found.pairs[*other]).total_cmp(&sort_key(&found.pairs[*one]))
    });
    let of_units = units.unit_column();
    // Each entry has its lines, and the names of the cells for which it stands.
    let mut entries: Vec<(Vec<Line>, Vec<&str>)> = Vec::new();
    for &place in &rows {
        let pair = &found.pairs[place];
        let unit = of_units
            .as_ref()
            .map(|column| column.texts()[place].clone());
        let name = names.name(pair.cell);
        let both = without_delivery(pair.cell, name);
        let mut own = median_and_path(pair, scale, both, &unit.unwrap_or_default());
        if rows.len() <= FEW {
            own.extend(changed_counts(pair, scale.for_cell(pair.cell)));
        }
        match entries.iter_mut().find(|(lines, _)| *lines == own) {
            Some((_, cells)) => cells.push(name),
            None => entries.push((own, vec![name])),
        }
    }
    let mut lines = Vec::new();
    let mut shown = 0;
    for (mut own, cells) in entries {
        if lines.len() + own.len() > LINES {
            break;
        }
        if let [only] = cells.as_slice() {
            own[0].cell = (*only).into();
        }
        lines.extend(own);
        shown += cells.len();
    }
    let mut document = Document::default();
    if !lines.is_empty() {
        document.table(line_columns(&lines, of_units.is_some()));
    }
    let more = rows.len() - shown;
    document.extend(
        (more > 0).then(|| format!("and {more} more cells that differ or have no verdict: --wide")),
    );
    let sees = same.iter().filter_map(|place| {
        found.pairs[*place]
            .deciding_figure()?
            .least_detectable_percent()
    });
    let sees = match sees.fold(0.0, f64::max) {
        0.0 => String::new(),
        sees => format!(" (a difference of {sees:.1} % would have been seen in each)"),
    };
    document.extend((!same.is_empty()).then(|| {
        format!(
            "{} without a difference{sees}: --wide",
            gate::format_cells(same.len())
        )
    }));
    document
}

/// Whether neither the median nor the path of a cell differs.
pub fn differs_nowhere(pair: &Pair<'_>) -> bool {
    let path = pair.figure(Quantity::Path);
    pair.verdict() == Verdict::NoDifference && !path.is_some_and(Compared::has_changed)
}

/// Returns a cell's name, leaving out the delivery if the cell wakes without an IPI: nothing is delivered then.
pub fn without_delivery<'n>(cell: &Cell, name: &'n str) -> &'n str {
    let delivery = format!(" ({})", cell.what.deliver);
    match cell.what.wake {
        Wake::Elide => name.strip_suffix(&delivery).unwrap_or(name),
        Wake::Ipi => name,
    }
}

/// Returns the key that sorts cells: the largest difference of a median or a path comes first, and cells without a
/// verdict come last.
fn sort_key(pair: &Pair<'_>) -> f64 {
    let figures = [pair.deciding_figure(), pair.figure(Quantity::Path)];
    let changed = figures
        .into_iter()
        .flatten()
        .filter(|figure| figure.has_changed());
    changed
        .map(|figure| figure.percent_difference().abs())
        .fold(-1.0, f64::max)
}

/// Returns the line of a cell's median and the line of its path.
fn median_and_path(pair: &Pair<'_>, scale: Scale, cell: &str, unit: &str) -> Vec<Line> {
    let scale = scale.for_cell(pair.cell);
    let figures = |figure: &Compared| {
        let [a, b] = [&figure.a, &figure.b].map(|side| scale.show_figure(side.rounded_median()));
        [
            a,
            b,
            format_difference(figure, scale),
            format_percent(figure),
        ]
    };
    let whole = Line {
        cell: cell.into(),
        unit: unit.into(),
        figures: pair.deciding_figure().map(figures).unwrap_or_default(),
        verdict: cell_verdict(pair),
    };
    let path = pair.figure(Quantity::Path).map(|path| Line {
        cell: "  path".into(),
        unit: String::new(),
        figures: figures(path),
        verdict: verdict_text(path),
    });
    std::iter::once(whole).chain(path).collect()
}

/// Returns the lines of exits and IPIs that changed.
fn changed_counts(pair: &Pair<'_>, scale: Scale) -> Vec<Line> {
    let changed = COUNTS.iter().filter_map(|&(quantity, name)| {
        let compared = pair.figure(quantity).filter(|one| one.has_changed())?;
        let [a, b] = [&compared.a, &compared.b].map(|side| format_figure(compared, side, scale));
        Some(Line {
            cell: name.into(),
            unit: String::new(),
            figures: [
                a,
                b,
                format_rate(compared.difference()),
                format_percent(compared),
            ],
            verdict: verdict_text(compared),
        })
    });
    changed.collect()
}

/// Formats a difference of counts per sample.
fn format_rate(by: f64) -> String {
    let text = format!("{by:+.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

fn line_columns(lines: &[Line], units: bool) -> Vec<Column> {
    let texts = |of: &dyn Fn(&Line) -> String| lines.iter().map(of).collect();
    let mut columns = vec![Column::words("cell", texts(&|line| line.cell.clone()))];
    if units {
        columns.push(Column::words("unit", texts(&|line| line.unit.clone())));
    }
    for (place, title) in ["A", "B", "by", "%"].into_iter().enumerate() {
        let figures = texts(&|line| line.figures[place].clone());
        columns.push(Column::numbers("", title, figures).result());
    }
    columns.push(Column::words("verdict", texts(&|line| line.verdict.clone())).result());
    columns
}
