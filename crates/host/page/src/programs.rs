// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of programs that cells ran, and the figures in it.

use foreign::{Escaped, Quoted};
use maud::{Markup, html};
use results::merge::Run;
use results::{Cell, Results};

use crate::Column;
use crate::document::Document;

/// Most lines of a table of figures that fit a screen.
const MOST: usize = 24;

/// Returns a table of the figures that programs printed, and remarks on their runs.
pub fn figures(results: &Results) -> Document {
    let mut document = Document::default();
    let run: Vec<&Cell> = with_program(results).collect();
    let names: Vec<String> = run.iter().map(|cell| name(cell)).collect();
    let all = run.iter().zip(&names).flat_map(|(cell, name)| {
        let figures = cell.program.iter().flat_map(|program| &program.figures);
        figures.map(move |(figure, value)| [name.clone(), figure.clone(), value.to_string()])
    });
    let mut rows: Vec<[String; 3]> = all.collect();
    let more = rows.split_off(rows.len().min(MOST)).len();
    if !rows.is_empty() {
        document.push(String::new());
        document.push("Figures that the programs printed, by their own clock:".into());
        document.push(String::new());
        let texts = |place: usize| rows.iter().map(|row| row[place].clone()).collect();
        document.table(vec![
            Column::words("program", texts(0)),
            Column::words("figure", texts(1)),
            Column::numbers("", "value", texts(2)).result(),
        ]);
    }
    document.extend((more > 0).then(|| format!("and {more} more, on the page")));
    for (cell, name) in run.iter().zip(&names) {
        let note = cell.program.as_ref().map_or("", |program| &program.note);
        document
            .extend((!note.is_empty()).then(|| format!("note on {name}: {}", Quoted::new(note))));
    }
    document
}

/// Returns the section of the page with what the programs of some runs printed.
pub fn section(runs: &[Run]) -> Markup {
    let cells = |run: &Run| with_program(&run.results).cloned().collect::<Vec<_>>();
    let cells: Vec<Cell> = runs.iter().flat_map(cells).collect();
    html! {
        @if !cells.is_empty() {
            section id="programs" {
                h2 { "Programs" }
                @for cell in &cells {
                    @if let Some(program) = &cell.program {
                        details {
                            summary { (name(cell)) }
                            pre { @for line in program.output.lines() { (Escaped(line).to_string()) "\n" } }
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

/// Names a program and the layer below it.
fn name(cell: &Cell) -> String {
    let plan::Cell { command, trap, .. } = cell.what;
    let traps = match trap {
        plan::Trap::None => String::new(),
        trap => format!(", traps {trap}"),
    };
    format!("{command}, {}{traps}", cell.under)
}
