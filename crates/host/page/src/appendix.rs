// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything below the charts: all numbers, the missing cells, and how to measure again.

use std::collections::BTreeMap;

use maud::{Markup, html};
use results::Cell;
use results::merge::Run;

use crate::column::Column;
use crate::columns;
use crate::equal_runs::{merge_equal, run_labels};
use crate::machine::replace_probe_names;
use crate::scale::{Scale, cell_operation};
use crate::shortfalls;

/// Returns the tables of all measured cells and of the missing ones.
pub fn cells(runs: &[Run]) -> Markup {
    html! {
        section id="table" {
            h2 { "All cells" }
            p.about {
                "Exits, interrupts and wake-ups are per sample; a dot is none. What a guest and its \
                 measurement cost alone is in the cells of shape dry; it is not subtracted anywhere."
            }
            @for (labels, text) in merge_equal(runs, workload_tables) { (run_labels(&labels)) (text) }
            @for (labels, text) in merge_equal(runs, shortfalls) { (run_labels(&labels)) (text) }
        }
        (skipped_cells(runs))
        (damaged_cells(runs))
    }
}

/// Returns the section on the origin of the page's data.
pub fn provenance(runs: &[Run]) -> Markup {
    html! {
        (notes(runs))
        (how_to_reproduce(runs))
    }
}

/// Returns a table for each workload of a run, with separate tables for open and closed loops.
fn workload_tables(run: &Run) -> Markup {
    let scale = Scale::for_results(&run.results);
    let mut tables: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in run.results.cells.iter().filter(|cell| cell.stats.is_some()) {
        match tables
            .iter_mut()
            .find(|(name, _)| *name == cell.table_key())
        {
            Some((_, cells)) => cells.push(cell),
            None => tables.push((cell.table_key(), vec![cell])),
        }
    }
    html! {
        @for (name, cells) in tables {
            h3 {
                (name)
                span.muted { ", " (scale.unit_of_cells(&run.results, &cells)) " per " (cell_operation(cells[0])) }
            }
            (table(&columns::columns_of_cells(&cells, scale)))
        }
    }
}

/// Returns a table whose first line has the titles of column groups.
pub fn table(columns: &[Column]) -> Markup {
    let rows = columns
        .iter()
        .map(|column| column.texts().len())
        .max()
        .unwrap_or(0);
    let groups: Vec<&[Column]> = columns.chunk_by(|a, b| a.group() == b.group()).collect();
    html! {
        div.scroll.tall {
            table.data {
                thead {
                    @if groups.len() > 1 {
                        tr { @for group in &groups { th.group colspan=(group.len()) { (group[0].group()) } } }
                    }
                    tr { @for column in columns { th.words[column.is_left()] { (column.title()) } } }
                }
                tbody {
                    @for row in 0..rows {
                        tr {
                            @for column in columns {
                                td.words[column.is_left()] {
                                    (column.texts().get(row).map_or("", String::as_str))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Explains why cells have fewer samples than requested, and lists the cells that were not measured.
fn shortfalls(run: &Run) -> Markup {
    html! {
        @for line in shortfalls::list_shortfalls(&run.results) { p.muted { (line) } }
    }
}

fn skipped_cells(runs: &[Run]) -> Markup {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for run in runs {
        for cell in &run.results.cells {
            if let Some(why) = &cell.skipped {
                reasons
                    .entry(why)
                    .or_default()
                    .push(after_run_name(runs, run, &cell.title()));
            }
        }
    }
    html! {
        @if !reasons.is_empty() {
            section id="skipped" {
                h2 { "Skipped cells" }
                @for (why, cells) in &reasons {
                    details open[cells.len() <= 12] {
                        summary { (replace_probe_names(why)) " " span.muted { "(" (cells.len()) ")" } }
                        ul.cells { @for cell in cells { li { (cell) } } }
                    }
                }
            }
        }
    }
}

fn after_run_name(runs: &[Run], run: &Run, text: &str) -> String {
    if runs.len() > 1 {
        format!("{}: {text}", run.label)
    } else {
        text.to_owned()
    }
}

fn damaged_cells(runs: &[Run]) -> Markup {
    let lost = || {
        runs.iter().flat_map(|run| {
            let damaged = run
                .results
                .damaged
                .iter()
                .map(|cell| format!("{cell}: not used"));
            let problems = run.results.problems.iter().cloned();
            damaged
                .chain(problems)
                .map(|text| after_run_name(runs, run, &text))
        })
    };
    html! {
        @if lost().next().is_some() {
            section id="damaged" {
                h2 { "Damaged or missing" }
                p.about {
                    "Every record carries a sequence number and a checksum. A cell is shown whole \
                     or not at all; these were not whole."
                }
                ul.cells { @for text in lost() { li { (text) } } }
            }
        }
    }
}

fn notes(runs: &[Run]) -> Markup {
    html! {
        @if runs.iter().any(|run| !run.results.notes.is_empty()) {
            section id="notes" {
                h2 { "Notes" }
                @for (labels, text) in merge_equal(runs, |run| html! {
                    @if !run.results.notes.is_empty() {
                        ul { @for note in &run.results.notes { li { (note) } } }
                    }
                }) { (run_labels(&labels)) (text) }
            }
        }
    }
}

fn how_to_reproduce(runs: &[Run]) -> Markup {
    html! {
        section id="reproduce" {
            h2 { "How to reproduce" }
            @for (labels, text) in merge_equal(runs, commands) { (run_labels(&labels)) (text) }
            p.muted { "Records: docs/records.md. Comparison of two runs: cargo xtask compare A B." }
        }
    }
}

fn commands(run: &Run) -> Markup {
    html! {
        @for commands in &run.commands { pre { (commands.trim()) } }
        @if run.commands.is_empty() {
            p { "The input did not say how it was made; a run folder does." }
        }
    }
}
