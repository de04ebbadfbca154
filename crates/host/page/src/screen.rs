// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first screen of a run, 80 columns wide. The first screen has a row for each way of waiting, a number for each
//! cell, the most important comparison, and the limits of the figures. The module [`table`] has the table of all
//! cells.

mod answer;
mod layout;
mod merging;
mod rows;
pub mod words;

use results::{Cell, Results};

use crate::columns::{COARSE, FEWER, MARK, MOVED};
use crate::document::Document;
use crate::grid::Column;
use crate::scale::{Scale, cell_operation};
use crate::shortfalls::list_shortfalls;
use crate::{clocks, layer_costs, path, programs, table};
use layout::Across;
use rows::{Row, Rows};

/// Width that every terminal has, in columns.
pub const WIDTH: usize = 80;

/// The beginning of a note that is left out if no cell waits for events.
const EVENT_STREAM: &str = "event stream: ";

/// Maximum number of rows of all tables together. With more rows, only the first workload has a table.
const ROWS: usize = 14;

/// Maximum number of rows of a table that fits on a screen.
const MOST: usize = 24;

/// The place where readers find the cells that the screen leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// In the tables below the screen.
    Below,
    /// In the output with an option, and on the page.
    Elsewhere,
}

/// Returns the screen. `None` if its rows would hide a cell, or if the screen would be too wide for any terminal.
pub fn document(results: &Results, others: Rest) -> Option<Document> {
    let scale = Scale::for_results(results);
    if !results.runs.is_empty() {
        return Some(repeated_document(results, scale, others));
    }
    let mut tables = workload_tables(results, scale)?;
    if tables.iter().any(|(_, rows)| rows.hidden) {
        return None;
    }
    let all_rows = tables.iter().map(|(_, rows)| rows.rows.len()).sum();
    let hidden: Vec<String> = match all_rows {
        ..=ROWS => Vec::new(),
        _ => tables
            .split_off(1)
            .into_iter()
            .map(|(name, _)| name)
            .collect(),
    };
    let mut document = Document::from(vec![words::machine_line(results, scale)]);
    let mut answers = Document::default();
    for (name, rows) in &tables {
        let mut own = answer::table_sentences(rows, results, scale);
        own.extend(path::pause_note(&rows.cells));
        own.extend(path::learning_note(&rows.cells));
        let named = own.into_iter().map(|text| match tables.len() {
            1 => text,
            _ if text.starts_with(name.as_str()) => text,
            _ => format!("{name}: {}", answer::uncapitalized(&text)),
        });
        answers.extend(named);
    }
    answers.extend(layer_costs::cost_sentence(results, scale));
    // Readers know the rows of the default run, so its table comes first. For any other run, the sentence comes before
    // the rows.
    let first = tables
        .iter()
        .any(|(_, rows)| !rows.differs_only_in_wakeups());
    if first && !answers.blocks().is_empty() {
        document.push(String::new());
        document.append(std::mem::take(&mut answers));
    }
    for (name, rows) in &tables {
        document.push(String::new());
        document.push(table_heading(name, rows, results, scale));
        document.extend(rows.constants_text());
        document.extend(rows.explain_rows());
        document.push(String::new());
        document.table(table_columns(rows));
        document.extend(more_rows_note(rows, others));
    }
    document.append(programs::figures_document(results));
    document.push(String::new());
    document.append(answers);
    document.extend(figure_limits(results, &tables));
    document.explain_rounding();
    if others == Rest::Elsewhere {
        document.push(String::new());
        document.push(wide_view_note(results, &hidden));
    }
    Some(document)
}

/// Returns the screen of repeated boots: each cell's median, and its values in the lowest and in the highest boot. If
/// the boots do not differ, returns the screen of one boot.
fn repeated_document(results: &Results, scale: Scale, others: Rest) -> Document {
    if let Some((runs, first)) = table::equal_runs(results)
        && let Some(mut document) = document(&first, others)
    {
        document.push(String::new());
        document.push(format!(
            "{runs} runs: each cell has the same median in all."
        ));
        return document;
    }
    let mut document = Document::from(vec![words::machine_line(results, scale), String::new()]);
    document.append(table::medians_of_runs(results, scale, table::Naming::Words));
    document.push(String::new());
    // This table has no marks, so no line explains them.
    let limits = figure_limits(results, &[]).into_iter().map(|line| {
        let mut marks = [FEWER, COARSE, MOVED].into_iter();
        let unmarked = marks.find_map(|mark| line.strip_prefix(mark)?.strip_prefix(' '));
        unmarked.map_or_else(|| line.clone(), str::to_owned)
    });
    document.extend(limits);
    document.explain_rounding();
    document.append(programs::figures_document(results));
    document
}

/// Returns a note with the number of rows that do not fit on a screen, if any.
fn more_rows_note(rows: &Rows<'_>, others: Rest) -> Option<String> {
    let more = rows.rows.len().checked_sub(MOST + 1)? + 1;
    Some(match others {
        Rest::Below => format!("and {more} more rows, below"),
        Rest::Elsewhere => format!(
            "and {more} more rows: --wide{}",
            match rows.across == Across::Nothing {
                true => "; a run with one word of --deliver and of --trap has fewer",
                false => "",
            }
        ),
    })
}

/// Returns the tables. The first table is about pingpong, which measures the wake-up without other work.
fn workload_tables(results: &Results, scale: Scale) -> Option<Vec<(String, Rows<'_>)>> {
    let mut names: Vec<String> = Vec::new();
    let measured = || results.cells.iter().filter(|cell| cell.stats.is_some());
    for cell in measured() {
        if !names.contains(&cell.table_key()) {
            names.push(cell.table_key());
        }
    }
    names.sort_by_key(|name| name != "pingpong");
    let tables: Vec<_> = names
        .into_iter()
        .map(|name| {
            let cells: Vec<&Cell> = measured().filter(|cell| cell.table_key() == name).collect();
            let rows = Rows::lay_out_to_fit(&cells, scale, WIDTH);
            (name, rows)
        })
        .collect();
    let (_, first) = tables.first()?;
    (first.width() <= WIDTH).then_some(tables)
}

/// Describes the numbers in the table.
fn table_heading(name: &str, rows: &Rows<'_>, results: &Results, scale: Scale) -> String {
    let unit = scale.unit_of_cells(results, &rows.cells);
    let operation = cell_operation(rows.cells[0]);
    let (of, mut more) = match path::any_has_path(&rows.cells) {
        true => (
            " of all CPUs",
            match rows.cells[0].what.workload.wakeups() {
                1 => "; in brackets the path from the waker's store to the woken task, without what the measurement adds",
                _ => {
                    "; in brackets the sum of the paths from each waker's store to the woken task, without what the \
                     measurement adds"
                }
            }
            .to_owned(),
        ),
        false => ("", String::new()),
    };
    if rows.exits {
        more += "; after / the exits to the hypervisor";
    }
    let caution = table::unit_caution(&rows.cells, scale);
    let figure = match scale.of_host {
        true => "the least of each",
        false => "medians",
    };
    format!("{name}: {unit}{of} per {operation}, {figure}{more}{caution}.")
}

fn table_columns(rows: &Rows<'_>) -> Vec<Column> {
    let chosen = rows.first_rows(MOST);
    let shown = || chosen.iter().copied();
    let names = Column::words(rows.names_title(), shown().map(Row::marked_name).collect());
    let mut columns = Vec::new();
    if rows.common_name().is_none() {
        columns.push(names);
    }
    for (place, title) in rows.swept.iter().enumerate() {
        let texts = shown().map(|row| row.swept[place].clone());
        columns.push(Column::numbers("us", title, texts.collect()));
    }
    for (place, title) in rows.titles.iter().enumerate() {
        let texts = shown().map(|row| row.texts[place].clone());
        columns.push(Column::numbers("", title, texts.collect()).result());
    }
    columns
}

/// Returns the limits of the figures: properties that the machine does not model, lost cells, notes.
fn figure_limits(results: &Results, tables: &[(String, Rows<'_>)]) -> Vec<String> {
    let mut lines = Vec::new();
    let starred = |rows: &Rows<'_>| rows.rows.iter().any(|row| row.marks.contains(&MARK));
    if tables.iter().any(|(_, rows)| starred(rows)) {
        lines.push(words::explain_star(results));
    }
    if results.unit == "insns" {
        lines.push(
            "Counts of instructions: no cache misses, no overlap of CPUs, no latency of interrupts and exits.".into(),
        );
    }
    lines.extend(skipped_note(results));
    lines.extend(
        list_shortfalls(results)
            .into_iter()
            .filter(|line| !line.starts_with("n: ")),
    );
    lines.extend(clocks::clock_lines(results));
    lines.extend(path::pathless_note(
        results
            .cells
            .iter()
            .filter_map(|cell| cell.critical.as_ref()),
    ));
    lines.extend(
        results
            .damaged
            .iter()
            .map(|cell| format!("damaged: {cell}")),
    );
    lines.extend(
        results
            .problems
            .iter()
            .map(|problem| format!("console: {problem}")),
    );
    let uses_events = |cell: &Cell| cell.stats.is_some() && cell.event_stream_made_ns != 0;
    let has_events = results.cells.iter().any(uses_events);
    lines.extend(
        results
            .shown_notes()
            .into_iter()
            .filter(|note| has_events || !note.contains(EVENT_STREAM))
            .map(|note| format!("note: {note}")),
    );
    lines
}

/// Counts the skipped cells, and adds the reason if all of them have the same one.
fn skipped_note(results: &Results) -> Option<String> {
    let reasons = results.cells.iter();
    let reasons: Vec<&str> = reasons.filter_map(|cell| cell.skipped.as_deref()).collect();
    let (first, count) = (reasons.first()?, reasons.len());
    Some(match reasons.iter().all(|reason| reason == first) {
        true => format!("Skipped cells: {count} ({first})."),
        false => format!("Skipped cells: {count}; --wide gives the reasons."),
    })
}

fn wide_view_note(results: &Results, hidden: &[String]) -> String {
    let cells = results.cells.iter().filter(|cell| cell.stats.is_some());
    let all = cells.count();
    match hidden {
        [] if all == 1 => "The cell with its distribution: --wide, and on the page.".into(),
        [] => format!("All {all} cells with their distributions: --wide, and on the page."),
        names => format!(
            "All {all} cells, {} too, with their distributions: --wide, and on the page. A screen of {1}: --workload {1}.",
            names.join(", "),
            names[0]
        ),
    }
}

#[cfg(test)]
mod tests;
