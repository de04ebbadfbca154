// SPDX-License-Identifier: MIT OR Apache-2.0
//! In a comparison of runs under several things, what of A and of B is the own part of each.

use page::own::times;
use plan::Under;
use results::compare::{Comparison, Figures, Pair};
use results::{Bounds, Cell};

use page::grid::Column;
use page::scale::Scale;
use page::table::number;

/// Stands where there is nothing to hold a cell against.
const NOTHING: &str = "-";

/// One side of a pair.
type Side = fn(&Pair<'_>) -> Option<f64>;

/// The sides, with their names.
const SIDES: [(&str, Side); 2] = [
    ("A", |pair| median(pair, |total| &total.a)),
    ("B", |pair| median(pair, |total| &total.b)),
];

fn median(pair: &Pair<'_>, side: fn(&results::compare::Compared) -> &Figures) -> Option<f64> {
    pair.total().map(|total| side(total).median())
}

/// Columns of both sides: over the bare machine's, and times Rouse's; those that say something.
pub fn columns(found: &Comparison<'_>, scale: Scale) -> Vec<Column> {
    let over = |pair: &Pair<'_>, of: Side| {
        let floor = other(found, pair, |cell, other| {
            cell.under != Under::None && cell.is_over(other)
        })?;
        Some(signed(of(pair)? - of(floor)?, scale))
    };
    let rouse = |pair: &Pair<'_>, of: Side| {
        let is_rouse = |cell: &Cell, other: &Cell| {
            cell.under != Under::Rouse && other.under == Under::Rouse && cell.is_like(other)
        };
        let one = of(other(found, pair, is_rouse)?)?;
        Some(times(of(pair)? / one))
    };
    let mut columns = group(found, "over none", &over);
    columns.extend(group(found, "of rouse", &rouse));
    columns
}

/// The pair that `is` what `pair` is held against; of the same quantity.
fn other<'f, 'r>(
    found: &'f Comparison<'r>,
    pair: &Pair<'_>,
    is: impl Fn(&Cell, &Cell) -> bool,
) -> Option<&'f Pair<'r>> {
    let quantity = |pair: &Pair<'_>| pair.total().map(|total| total.quantity);
    let mut pairs = found.pairs.iter();
    pairs.find(|other| is(pair.cell, other.cell) && quantity(other) == quantity(pair))
}

fn group(
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

fn signed(value: f64, scale: Scale) -> String {
    let size = number(value.abs(), scale, Bounds::NONE);
    if value < 0.0 {
        format!("-{size}")
    } else {
        size
    }
}
