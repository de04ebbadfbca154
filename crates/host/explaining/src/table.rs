// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows explanations, for a terminal, a mail or a page.

use std::collections::BTreeSet;

use anyhow::Result;
use foreign::Quoted;
use page::Column;
use page::document::Document;
use shell::failure::bad_input;

use crate::events::Events;
use crate::explanation::{Explained, ExplainedCell, FunctionCost};
use crate::step::Step;

/// The largest number of steps for which a sample's steps are shown in order.
const SHORT: usize = 60;
/// Number of functions that a difference or a long sample shows by default.
pub const TOP: usize = 20;

/// Questions about a sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Questions<'q> {
    /// How many of the longest functions to show.
    pub top: Option<usize>,
    /// The function whose cost to show.
    pub function: Option<&'q str>,
    /// The function up to which to show the path.
    pub until: Option<&'q str>,
}

impl Questions<'_> {
    /// Whether the questions are about single samples, and not about the difference between two.
    pub const fn are_of_samples(&self) -> bool {
        self.function.is_some() || self.until.is_some()
    }
}

/// Returns the document about all cells in the explanations `all`. If there are two, they are named A and B.
pub fn document(all: &[&Explained], questions: &Questions<'_>) -> Result<Document> {
    let mut document = Document::default();
    let sides: &[&str] = match all {
        [_] => &[""],
        _ => &["A: ", "B: "],
    };
    let cells = sides.iter().zip(all);
    let cells = cells.flat_map(|(side, one)| one.cells.iter().map(move |cell| (*side, cell)));
    let cells: Vec<(&str, &ExplainedCell)> = cells.collect();
    if let Some(name) = questions.function.or(questions.until) {
        require_function(&cells, name, questions.until.is_some())?;
    }
    match questions.function {
        Some(name) => add_function(&mut document, &cells, name),
        None => {
            for (side, cell) in cells {
                add_heading(&mut document, side, cell);
                add_answer(&mut document, cell, questions);
                document.push(String::new());
            }
        }
    }
    add_notes(&mut document, all);
    Ok(document)
}

fn add_answer(document: &mut Document, cell: &ExplainedCell, questions: &Questions<'_>) {
    match (questions.until, questions.top) {
        (Some(name), _) => add_path_until(document, cell, name),
        (None, None) if cell.steps.len() <= SHORT => add_steps_in_order(document, &cell.steps),
        (None, top) => add_longest_functions(document, cell, top.unwrap_or(TOP)),
    }
}

/// Returns an error if no cell executes the function `name` or, with `on_path`, if no cell has it on its path.
fn require_function(cells: &[(&str, &ExplainedCell)], name: &str, on_path: bool) -> Result<()> {
    let has = |cell: &ExplainedCell| {
        let mut functions = cell.functions.iter();
        functions.any(|one| one.name == name && (one.count != 0 || !on_path))
    };
    if cells.iter().any(|(_, cell)| has(cell)) {
        return Ok(());
    }
    let like = cells
        .first()
        .map_or(String::new(), |(_, cell)| list_similar(cell, name, on_path));
    let place = match on_path {
        true => "on its path",
        false => "in any sample",
    };
    bad_input!(
        "no cell has a function `{}` {place}{like}",
        Quoted::new(name)
    )
}

/// Adds the notes of all explanations, each note once.
pub fn add_notes(document: &mut Document, all: &[&Explained]) {
    let notes: BTreeSet<&String> = all.iter().flat_map(|one| &one.notes).collect();
    document.extend(notes.into_iter().map(|note| format!("note: {note}")));
}

fn add_heading(document: &mut Document, side: &str, cell: &ExplainedCell) {
    let [samples, alike] = cell.samples;
    document.push(format!(
        "{side}{}: the median sample has {} {} on its path{} and {} off it; {}.",
        cell.name(),
        thousands(cell.path),
        cell.counted_noun(),
        match cell.path - cell.bookkeeping {
            net if net == cell.path => String::new(),
            net => format!(
                " ({} without the bookkeeping of the measurement, as other tables show it)",
                thousands(net)
            ),
        },
        thousands(cell.work.saturating_sub(cell.path)),
        match cell.has_time() {
            true => format!("it is one of {samples}"),
            false => format!("{alike} of {samples} samples executed exactly these"),
        },
    ));
    document.push(format!("All CPUs: {}.", describe_events(cell)));
}

/// Returns the exits and interrupts of a sample.
pub fn describe_events(cell: &ExplainedCell) -> String {
    let Events { exits, sent } = &cell.events;
    let exits = exits.iter().map(|(cause, many)| format!("{cause} {many}"));
    let exits: Vec<String> = exits.collect();
    let exits = match exits.is_empty() {
        true => "none".into(),
        false => exits.join(", "),
    };
    format!("exits to EL2 {exits}; interrupts sent {sent}")
}

/// Adds a table of a sample's steps, in order.
fn add_steps_in_order(document: &mut Document, steps: &[Step]) {
    let shown: Vec<&Step> = steps.iter().collect();
    let text = |of: &dyn Fn(&Step) -> String| shown.iter().map(|step| of(step)).collect();
    let on = |step: &Step, wanted| match step.on_path == wanted {
        true => step.count.to_string(),
        false => "·".into(),
    };
    document.table(vec![
        Column::words("CPU", text(&|step| step.cpu.to_string())),
        Column::words("level", text(&|step| format!("EL{}", step.level))),
        Column::words("code", text(&|step| step.image.clone())),
        Column::words("function", text(&|step| step.function.clone())).result(),
        Column::numbers("", "path", text(&|step| on(step, true))).result(),
        Column::numbers("", "off it", text(&|step| on(step, false))),
        Column::words("after", text(&|step| step.via.clone().unwrap_or_default())),
    ]);
}

/// Adds a table of the longest functions, with the sum of all remaining functions.
fn add_longest_functions(document: &mut Document, cell: &ExplainedCell, top: usize) {
    let on_path = cell.functions.iter().filter(|one| one.count != 0);
    let functions: Vec<&FunctionCost> = on_path.collect();
    let (shown, rest) = functions.split_at(functions.len().min(top));
    let text = |of: &dyn Fn(&FunctionCost) -> String| shown.iter().map(|one| of(one)).collect();
    let mut columns = vec![
        Column::words("CPU", text(&|one| one.cpu.to_string())),
        Column::words("level", text(&|one| format!("EL{}", one.level))),
        Column::words("code", text(&|one| one.image.clone())),
        Column::words("function", text(&|one| one.name.clone())).result(),
        Column::numbers("", "path", text(&|one| thousands(one.count))).result(),
        Column::numbers("all samples", "min", text(&|one| thousands(one.all[0]))),
        Column::numbers("all samples", "p50", text(&|one| thousands(one.all[1]))),
        Column::numbers("all samples", "max", text(&|one| thousands(one.all[2]))),
    ];
    if cell.has_time() {
        let instructions = text(&|one| thousands(one.instructions));
        columns.insert(5, Column::numbers("", "insns", instructions));
    }
    document.table(columns);
    let sum: u64 = rest.iter().map(|one| one.count).sum();
    if sum != 0 {
        document.push(format!(
            "{} further functions: {} {}; --top {} shows all.",
            rest.len(),
            thousands(sum),
            cell.counted_noun(),
            functions.len()
        ));
    }
}

/// Adds a table of the path up to a function.
fn add_path_until(document: &mut Document, cell: &ExplainedCell, name: &str) {
    let on_path = cell.steps.iter().filter(|step| step.on_path);
    let steps: Vec<Step> = on_path.cloned().collect();
    let Some(place) = steps.iter().position(|step| step.function == name) else {
        document.push(format!("{name} is not on its path."));
        return;
    };
    add_steps_in_order(document, &steps[..place]);
    let sum: u64 = steps[..place].iter().map(|step| step.count).sum();
    document.push(format!(
        "{} {} until {name}.",
        thousands(sum),
        cell.counted_noun()
    ));
}

/// Adds a table that shows what a function costs in each cell.
fn add_function(document: &mut Document, cells: &[(&str, &ExplainedCell)], name: &str) {
    let rows = cells.iter().flat_map(|(side, cell)| {
        let same = cell.functions.iter().filter(|one| one.name == name);
        same.map(move |one| (format!("{side}{}", cell.name()), one))
    });
    let rows: Vec<(String, &FunctionCost)> = rows.collect();
    let text = |of: &dyn Fn(&FunctionCost) -> String| rows.iter().map(|(_, one)| of(one)).collect();
    let noun = cells
        .first()
        .map_or("instructions", |(_, cell)| cell.counted_noun());
    document.push(format!("{name}: {noun} on the path"));
    let cells = rows.iter().map(|(cell, _)| cell.clone()).collect();
    document.table(vec![
        Column::words("cell", cells).result(),
        Column::words("CPU", text(&|one| one.cpu.to_string())),
        Column::words("level", text(&|one| format!("EL{}", one.level))),
        Column::words("code", text(&|one| one.image.clone())),
        Column::numbers("", "median sample", text(&|one| thousands(one.count))),
        Column::numbers("all samples", "min", text(&|one| thousands(one.all[0]))).result(),
        Column::numbers("all samples", "p50", text(&|one| thousands(one.all[1]))).result(),
        Column::numbers("all samples", "max", text(&|one| thousands(one.all[2]))).result(),
    ]);
}

/// Returns the end of an error message: functions whose names contain `name`.
fn list_similar(cell: &ExplainedCell, name: &str, on_path: bool) -> String {
    let functions = cell.functions.iter();
    let functions = functions.filter(|one| one.count != 0 || !on_path);
    let name = name.to_lowercase();
    let like: BTreeSet<&str> = functions
        .map(|one| one.name.as_str())
        .filter(|one| one.to_lowercase().contains(&name))
        .collect();
    let like: Vec<&str> = like.into_iter().take(5).collect();
    match like.is_empty() || name.is_empty() {
        true => "; --top lists its functions".into(),
        false => format!("; it has {}", like.join(", ")),
    }
}

/// Formats a number with its sign.
pub fn with_sign(number: i64) -> String {
    let digits = thousands(number.unsigned_abs());
    match number {
        ..0 => format!("-{digits}"),
        0 => digits,
        1.. => format!("+{digits}"),
    }
}

/// Formats a number with separated thousands.
pub fn thousands(number: u64) -> String {
    page::thousands(number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn the_path_of_other_tables_is_next_to_that_of_the_functions() {
        let mut cell = samples::cell_with_steps("a 1 80, b 2 37");
        let shown = |cell: &ExplainedCell| {
            let mut document = Document::default();
            add_heading(&mut document, "", cell);
            document.terminal(None).join("\n")
        };
        let plain = shown(&cell);
        assert!(
            plain.contains("117 instructions on its path and"),
            "{plain}"
        );
        cell.bookkeeping = 26;
        cell.check_sums().unwrap();
        let net = shown(&cell);
        assert!(
            net.contains("on its path (91 without the bookkeeping"),
            "{net}"
        );
        // A file from another program may contain any number here.
        cell.bookkeeping = 118;
        assert!(
            cell.check_sums()
                .unwrap_err()
                .to_string()
                .contains("more than the path")
        );
    }
}
