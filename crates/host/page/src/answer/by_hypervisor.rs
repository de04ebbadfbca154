// SPDX-License-Identifier: MIT OR Apache-2.0
//! The small table of a run under several hypervisors, with a row for each way of waiting and a column for each
//! hypervisor.

use plan::{Wake, Workload};
use results::Results;

use crate::Column;
use crate::cells::{layer_name, wait_text};
use crate::document::Document;
use crate::layer_costs;
use crate::scale::{Scale, operation_name, shown_median};
use crate::summary;

/// Rows of the table: the name of each row, and its texts by column title.
type Rows = Vec<(String, Vec<(String, String)>)>;

/// Smallest number of hypervisors for which the page has this table. With fewer, the run's first screen already has
/// rows and columns for them.
const MANY: usize = 4;

/// Returns the sentence about pingpong and the table of its medians. `None` if it ran under too few hypervisors.
pub fn document(results: &Results, scale: Scale) -> Option<Document> {
    let cells = results.cells.iter();
    let cells = cells.filter(|cell| cell.what.workload == Workload::Pingpong);
    let mut titles: Vec<String> = Vec::new();
    let mut rows: Rows = Vec::new();
    for cell in cells {
        let Some(median) = shown_median(cell) else {
            continue;
        };
        let title = format!("{}, {}", layer_name(cell), cell.what.deliver);
        let name = format!(
            "{}, {}",
            wait_text(cell),
            match cell.what.wake {
                Wake::Ipi => "IPI",
                Wake::Elide => "no IPI",
            }
        );
        let text = scale.for_cell(cell).show_value(median);
        if !titles.contains(&title) {
            titles.push(title.clone());
        }
        match rows.iter_mut().find(|(known, _)| *known == name) {
            Some((_, texts)) => texts.push((title, text)),
            None => rows.push((name, vec![(title, text)])),
        }
    }
    if titles.len() < MANY {
        return None;
    }
    let mut columns = vec![Column::words(
        "how it waits",
        rows.iter().map(|(name, _)| name.clone()).collect(),
    )];
    columns.extend(titles.iter().map(|title| {
        let text = |texts: &[(String, String)]| {
            let found = texts.iter().find(|(of, _)| of == title);
            found.map_or("-".into(), |(_, text)| text.clone())
        };
        Column::numbers(
            "",
            title,
            rows.iter().map(|(_, texts)| text(texts)).collect(),
        )
    }));
    let mut document = Document::default();
    document.extend(layer_costs::cost_sentence(results, scale));
    document.push(format!(
        "{} per {} of pingpong, medians.",
        scale.unit_of_results(results),
        operation_name(Workload::Pingpong)
    ));
    document.table(columns);
    document.extend(summary::unmodelled_costs(results));
    Some(document)
}
