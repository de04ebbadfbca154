// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns about the share of the CPUs that neighbours take, if there are neighbours.

use results::{Cell, neighbour::Neighbours};

use crate::column::{Column, format_rate};
use crate::scale::Scale;

/// The group of these columns.
const GROUP: &str = "neighbour";

/// Returns the columns for `cells`, if any of them has neighbours.
pub fn columns(cells: &[&Cell], scale: Scale) -> Vec<Column> {
    let found: Vec<Option<Neighbours>> = cells
        .iter()
        .map(|cell| cell.neighbours(scale.frequency()))
        .collect();
    if found.iter().all(Option::is_none) {
        return Vec::new();
    }
    let column = |title: &str, of: &dyn Fn(&Neighbours) -> String| {
        let texts = found.iter().map(|one| match one {
            Some(one) => of(one),
            None => "·".into(),
        });
        Column::numbers(GROUP, title, texts.collect())
    };
    let per_cent = |part: f64| format!("{:.1}", part * 100.0);
    let mut columns = vec![
        column("given time %", &|one| per_cent(one.given)),
        column("taken time %", &|one| per_cent(one.taken)),
        column("units/op", &|one| format_rate(one.units)),
        column("switches/op", &|one| format_rate(one.switches)),
    ];
    if found
        .iter()
        .flatten()
        .any(|one| one.units_per_second.is_some())
    {
        columns.push(column("kunits/s", &|one| match one.units_per_second {
            Some(units) => format!("{:.1}", units / 1000.0),
            None => "·".into(),
        }));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_without_neighbour_have_dots_and_alone_no_columns() {
        let plain = Cell::default();
        let scale = Scale::for_results(&results::Results::default());
        assert!(columns(&[&plain], scale).is_empty());
        let counts = [("ticks", 1000), ("given", 333), ("work", 50), ("turns", 5)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count));
        let mut cell = Cell {
            made: 10,
            unit: "insns".into(),
            ..Cell::default()
        };
        cell.counters
            .insert("neighbour".into(), counts.into_iter().collect());
        let titles: Vec<(String, Vec<String>)> = columns(&[&cell, &plain], scale)
            .iter()
            .map(|column| (column.title().to_owned(), column.texts().to_vec()))
            .collect();
        let expected = [
            ("given time %", ["33.3", "·"]),
            ("taken time %", ["0.0", "·"]),
            ("units/op", ["5", "·"]),
            ("switches/op", ["1", "·"]),
        ];
        let expected: Vec<(String, Vec<String>)> = expected
            .map(|(title, texts)| (title.into(), texts.map(String::from).to_vec()))
            .into();
        assert_eq!(titles, expected);
    }
}
