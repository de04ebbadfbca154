// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both columns, for people.

use super::{CAUSES, Compared};

/// A table of cells.
pub fn of(cells: &[Compared<'_>]) -> String {
    let titles: Vec<String> = cells.iter().map(|cell| cell.title()).collect();
    let width = titles.iter().map(String::len).max().unwrap_or(0);
    let mut table = format!(
        "{:width$}           p50             at EL2\n\
         {:width$}  printed  log  samples  printed  log  exits per sample: both, or printed / log",
        "", "cell"
    );
    for (title, cell) in titles.iter().zip(cells) {
        let el2 = cell.el2_printed().map_or("-".into(), |el2| el2.to_string());
        table += &format!(
            "\n{title:width$}  {:7}  {:3}  {:3}/{:3}  {el2:>7}  {:3}  {}",
            cell.p50(),
            cell.median(),
            cell.typical().count(),
            cell.counted.len(),
            cell.el2(),
            exits(cell)
        );
    }
    table
}

fn exits(cell: &Compared<'_>) -> String {
    let causes = CAUSES.into_iter().filter_map(|cause| {
        let (printed, counted) = cell.exits(cause);
        let [shown, other] = [printed, counted].map(|exits| format!("{exits:.2}"));
        match (printed, counted) {
            (0.0, 0.0) => None,
            _ if shown == other => Some(format!("{} {shown}", cause.0)),
            _ => Some(format!("{} {shown} / {other}", cause.0)),
        }
    });
    let causes: Vec<String> = causes.collect();
    match causes.is_empty() {
        true => "none".into(),
        false => causes.join(", "),
    }
}
