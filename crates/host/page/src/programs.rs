// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of programs that cells ran, and the figures in it.

use foreign::{Escaped, Quoted};
use maud::{Markup, html};
use results::merge::Run;
use results::{Cell, Results};

use crate::Column;
use crate::document::Document;
use crate::table;

/// Most lines of a table of figures that fit a screen.
const MOST: usize = 24;

/// Returns a table of the figures that programs printed, with a column for each layer below them, and remarks on their runs.
pub fn figures(results: &Results) -> Document {
    of_cells(&with_program(results).collect::<Vec<_>>(), MOST)
}

fn of_cells(cells: &[&Cell], most: usize) -> Document {
    let mut document = Document::default();
    let of_cells = layers(cells);
    let mut layers: Vec<String> = Vec::new();
    let mut rows: Vec<([String; 2], Vec<String>)> = Vec::new();
    for (cell, layer) in cells.iter().zip(&of_cells) {
        let place = layers.iter().position(|known| known == layer);
        let place = place.unwrap_or(layers.len());
        layers.resize(layers.len().max(place + 1), layer.clone());
        let figures = cell.program.iter().flat_map(|program| &program.figures);
        for (figure, value) in figures {
            let name = [cell.what.command.to_string(), figure.clone()];
            let row = rows.iter().position(|(known, _)| *known == name);
            let row = row.unwrap_or_else(|| {
                rows.push((name, Vec::new()));
                rows.len() - 1
            });
            let values = &mut rows[row].1;
            values.resize(values.len().max(place + 1), "-".into());
            values[place] = value.to_string();
        }
    }
    let more = rows.split_off(rows.len().min(most)).len();
    if !rows.is_empty() {
        document.push(String::new());
        document.push("Figures that the programs printed, by the guest's clock:".into());
        document.push(String::new());
        document.table(columns(&rows, &layers));
    }
    document.extend((more > 0).then(|| format!("and {more} more, on the page")));
    for (cell, layer) in cells.iter().zip(&of_cells) {
        let note = cell.program.as_ref().map_or("", |program| &program.note);
        let command = cell.what.command;
        document.extend(
            (!note.is_empty())
                .then(|| format!("note on {command}, {layer}: {}", Quoted::new(note))),
        );
    }
    document
}

fn columns(rows: &[([String; 2], Vec<String>)], layers: &[String]) -> Vec<Column> {
    let names = |place: usize| rows.iter().map(|(name, _)| name[place].clone()).collect();
    let mut columns = vec![
        Column::words("program", names(0)),
        Column::words("figure", names(1)),
    ];
    columns.extend(layers.iter().enumerate().map(|(place, layer)| {
        let values = rows.iter().map(|(_, values)| values.get(place));
        let values = values.map(|value| value.map_or("-".into(), String::clone));
        Column::numbers("", layer, values.collect()).result()
    }));
    columns
}

/// Returns the section of the page with the figures and the output of the programs of some runs.
pub fn section(runs: &[Run]) -> Markup {
    let parts = runs.iter().map(|run| {
        let cells: Vec<&Cell> = with_program(&run.results).collect();
        (run, layers(&cells), cells)
    });
    let parts: Vec<_> = parts.filter(|(.., cells)| !cells.is_empty()).collect();
    html! {
        @if !parts.is_empty() {
            section id="programs" {
                h2 { "Programs" }
                @for (run, layers, cells) in &parts {
                    @if parts.len() > 1 { p.runs { b { (run.label) } } }
                    (of_cells(cells, usize::MAX).html())
                    @for (cell, layer) in cells.iter().zip(layers) {
                        @if let Some(program) = &cell.program {
                            details {
                                summary { (cell.what.command.to_string()) ", " (layer) }
                                pre { @for line in program.output.lines() { (Escaped(line).to_string()) "\n" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the cells that ran a program, or tried to.
fn with_program(results: &Results) -> impl Iterator<Item = &Cell> {
    results.cells.iter().filter(|cell| cell.program.is_some())
}

/// Names the layer below each cell's program, and everything else in which the cells differ besides the program.
fn layers(cells: &[&Cell]) -> Vec<String> {
    let named = |column: &Column| ["under", "workload", "command"].contains(&column.title());
    let others = table::names(cells.to_vec());
    let others: Vec<Column> = others.into_iter().filter(|column| !named(column)).collect();
    let unders = cells.iter().map(|cell| cell.under.to_string()).collect();
    let all: Vec<Column> = std::iter::once(Column::words("under", unders))
        .chain(others)
        .collect();
    Column::joined("layer", &all, ", ").texts().to_vec()
}
