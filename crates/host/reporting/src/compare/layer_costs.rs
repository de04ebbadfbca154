// SPDX-License-Identifier: MIT OR Apache-2.0
//! For a comparison of runs under several layers: what each layer costs in A's and in B's cells.

use page::layer_costs::format_ratio;
use plan::Under;
use results::Cell;
use results::compare::{Compared, Comparison, Figures, Pair};

use page::grid::Column;
use page::scale::{Figure, Scale};

/// Text in place of a value for which there is no cell to compare with.
const NOTHING: &str = "-";

/// One side of a pair.
type Side = fn(&Pair<'_>) -> Option<Figure>;

/// The sides, with their names.
const SIDES: [(&str, Side); 2] = [
    ("A", |pair| figure_of_median(pair, |total| &total.a)),
    ("B", |pair| figure_of_median(pair, |total| &total.b)),
];

fn figure_of_median(pair: &Pair<'_>, side: fn(&Compared) -> &Figures) -> Option<Figure> {
    pair.deciding_figure()
        .map(|total| side(total).rounded_median())
}

/// Returns A's and B's columns that have any value: the additional cost over the bare machine, and the ratio to the
/// cost under Rouse.
pub fn cost_columns(found: &Comparison<'_>, scale: Scale) -> Vec<Column> {
    let over = |pair: &Pair<'_>, of: Side| {
        let floor = reference_of(found, pair, |cell, other| {
            cell.under != Under::None && cell.has_bare_machine_twin(other)
        })?;
        let by = scale
            .for_cell(pair.cell)
            .show_difference(of(pair)?, of(floor)?);
        Some(by.trim_start_matches('+').to_owned())
    };
    let rouse = |pair: &Pair<'_>, of: Side| {
        // Times of a host's threads have no ratios.
        if scale.of_host {
            return None;
        }
        let is_rouse = |cell: &Cell, other: &Cell| {
            cell.under != Under::Rouse && other.under == Under::Rouse && cell.is_like(other)
        };
        let (one, _) = of(reference_of(found, pair, is_rouse)?)?;
        Some(format_ratio(of(pair)?.0 as f64 / one as f64))
    };
    let mut columns = filled_columns(found, "over none", &over);
    columns.extend(filled_columns(found, "of rouse", &rouse));
    columns
}

/// Returns the pair that `is` accepts as the reference of `pair`, provided that both verdicts are on the same
/// quantity.
fn reference_of<'f, 'r>(
    found: &'f Comparison<'r>,
    pair: &Pair<'_>,
    is: impl Fn(&Cell, &Cell) -> bool,
) -> Option<&'f Pair<'r>> {
    let quantity = |pair: &Pair<'_>| pair.deciding_figure().map(|total| total.quantity);
    let mut pairs = found.pairs.iter();
    pairs.find(|other| is(pair.cell, other.cell) && quantity(other) == quantity(pair))
}

fn filled_columns(
    found: &Comparison<'_>,
    title: &str,
    text: &dyn Fn(&Pair<'_>, Side) -> Option<String>,
) -> Vec<Column> {
    let columns = SIDES.map(|(name, side)| {
        let texts = found
            .pairs
            .iter()
            .map(|pair| text(pair, side).unwrap_or(NOTHING.into()));
        Column::numbers(title, name, texts.collect())
    });
    let says = |column: &Column| column.texts().iter().any(|text| text != NOTHING);
    columns.into_iter().filter(says).collect()
}
