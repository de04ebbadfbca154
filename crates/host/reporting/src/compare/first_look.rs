// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first figures of a comparison, shown while the remaining boots that the test needs are still running.

use results::Results;
use results::compare::{Comparison, Quantity};
use results::merge::Run;

use super::cell_names;
use super::side::Side;
use super::text::format_percent;

/// Largest number of cells to list.
const LISTED: usize = 12;

/// Returns an introduction, and a line for each cell in the first boots of A and B. Empty if they have no common cell.
/// There is no verdict: one boot per side is too few, and nobody should choose the number of boots by these figures.
pub fn first_look(a: &Results, b: &Results, boots: usize) -> Vec<String> {
    let side = |name: &str, results: &Results| {
        let run = Run {
            label: name.into(),
            results: results.clone(),
            commands: Vec::new(),
        };
        Side::from_runs(name, vec![run])
    };
    let (a, b) = (side("A", a), side("B", b));
    // No verdict is shown, so any level will do.
    let found = Comparison::new(&a.runs, &b.runs, 0.05);
    let names = cell_names::names_in_comparison(&found);
    let lines = found.pairs.iter().filter_map(|pair| {
        let shown = |figure| match format_percent(figure) {
            none if none == "·" => "equal".to_owned(),
            percent => format!("{percent} %"),
        };
        let total = shown(pair.deciding_figure()?);
        let path = pair.figure(Quantity::Path).map(shown);
        let path = path.map_or(String::new(), |path| format!(" (path {path})"));
        Some(format!("  {}: {total}{path}", names.name(pair.cell)))
    });
    let lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(LISTED);
    let head = (!lines.is_empty())
        .then(|| format!("B against A after one boot of each, of {boots}; not tested yet:"));
    let more = (more > 0).then(|| format!("  and {more} more cells"));
    head.into_iter()
        .chain(lines.into_iter().take(LISTED))
        .chain(more)
        .collect()
}
