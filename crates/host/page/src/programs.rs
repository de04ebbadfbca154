// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of programs that cells ran, and the figures that the programs printed.

use foreign::{Escaped, Quoted};
use maud::{Markup, html};
use results::merge::Run;
use results::{Cell, Results};
use significance::median;

use crate::Column;
use crate::document::Document;
use crate::table;

/// Maximum number of rows in a table of figures, so that the table fits on a screen.
const MOST: usize = 24;

/// The names of a program and of a figure, and the figure's values: a list for each layer, with a value for each boot.
type Row = ([String; 2], Vec<Vec<f64>>);

/// Returns a table of the figures that programs printed, and remarks on how the programs ran. The table has the median
/// of each figure over the boots, with a column for each layer below the programs.
pub fn figures_document(results: &Results) -> Document {
    cell_figures(&cells_with_program(results).collect::<Vec<_>>(), MOST)
}

fn cell_figures(cells: &[&Cell], most: usize) -> Document {
    let mut document = Document::default();
    let of_cells = layer_names(cells);
    let mut layers: Vec<String> = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
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
            values.resize(values.len().max(place + 1), Vec::new());
            values[place].push(*value);
        }
    }
    let more = rows.split_off(rows.len().min(most)).len();
    if !rows.is_empty() {
        document.push(String::new());
        document.push("Figures that the programs printed, by the guest's clock:".into());
        document.push(String::new());
        document.table(figure_columns(&rows, &layers));
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

fn figure_columns(rows: &[Row], layers: &[String]) -> Vec<Column> {
    let names = |place: usize| rows.iter().map(|(name, _)| name[place].clone()).collect();
    let mut columns = vec![
        Column::words("program", names(0)),
        Column::words("figure", names(1)),
    ];
    columns.extend(layers.iter().enumerate().map(|(place, layer)| {
        let values = rows.iter().map(|(_, values)| {
            let median = values.get(place).and_then(|values| median(values));
            median.map_or("-".into(), |median| median.to_string())
        });
        Column::numbers("", layer, values.collect()).result()
    }));
    columns
}

/// Returns the section of the page with the figures and the output of the programs that the runs executed.
pub fn programs_section(runs: &[Run]) -> Markup {
    let parts = runs.iter().map(|run| {
        let cells: Vec<&Cell> = cells_with_program(&run.results).collect();
        (run, layer_names(&cells), cells)
    });
    let parts: Vec<_> = parts.filter(|(.., cells)| !cells.is_empty()).collect();
    html! {
        @if !parts.is_empty() {
            section id="programs" {
                h2 { "Programs" }
                @for (run, layers, cells) in &parts {
                    @if parts.len() > 1 { p.runs { b { (run.label) } } }
                    (cell_figures(cells, usize::MAX).html())
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

/// Returns the cells that ran a program, or failed to run it.
fn cells_with_program(results: &Results) -> impl Iterator<Item = &Cell> {
    results.cells.iter().filter(|cell| cell.program.is_some())
}

/// Returns, for each cell, the name of the layer below its program, and everything else that distinguishes the cells,
/// apart from the program.
fn layer_names(cells: &[&Cell]) -> Vec<String> {
    let named = |column: &Column| ["under", "workload", "command"].contains(&column.title());
    let others = table::distinguishing_columns(cells.to_vec());
    let others: Vec<Column> = others.into_iter().filter(|column| !named(column)).collect();
    let unders = cells.iter().map(|cell| cell.under.to_string()).collect();
    let all: Vec<Column> = std::iter::once(Column::words("under", unders))
        .chain(others)
        .collect();
    Column::join_columns("layer", &all, ", ").texts().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{CommandName, Under, Workload};
    use results::program::Program;

    fn cell(command: &str, under: Under, value: f64) -> Cell {
        Cell {
            under,
            what: plan::Cell {
                workload: Workload::LinuxExec,
                command: CommandName::parse(command).unwrap(),
                ..plan::Cell::default()
            },
            program: Some(Program {
                output: "<b>\u{1b}[2J\nlast".into(),
                note: "it \u{7} beeps".into(),
                figures: [("time, s".into(), value)].into(),
                ..Program::default()
            }),
            ..Cell::default()
        }
    }

    fn results(cells: Vec<Cell>) -> Results {
        Results {
            cells,
            ..Results::default()
        }
    }

    #[test]
    fn figures_have_a_column_a_layer_and_boots_a_median() {
        let cells = vec![
            cell("perf", Under::None, 3.0),
            cell("perf", Under::None, 1.0),
            cell("perf", Under::None, 2.5),
            cell("perf", Under::Kvm, 7.0),
            cell("tbench", Under::Kvm, 9.0),
        ];
        let text = figures_document(&results(cells)).terminal(None).join("\n");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        for line in [
            "program figure none kvm",
            "perf time, s 2.5 7",
            "tbench time, s - 9",
        ] {
            assert!(lines.iter().any(|known| known == line), "{line}\n{text}");
        }
        assert!(
            text.contains("note on tbench, kvm: it \\u{7} beeps"),
            "{text}"
        );
    }

    #[test]
    fn what_programs_print_acts_on_no_page() {
        let run = Run::new("a", results(vec![cell("perf", Under::None, 3.0)]));
        let page = programs_section(&[run]).into_string();
        assert!(page.contains("&lt;b&gt;\\u{1b}[2J\nlast"), "{page}");
        assert!(
            programs_section(&[Run::new("b", Results::default())])
                .into_string()
                .is_empty()
        );
    }
}
