// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explanations for a terminal, a mail, a page.

use std::collections::BTreeSet;

use anyhow::Result;
use page::Column;
use page::document::Document;
use shell::failure::bad_input;

use crate::difference::{Change, Difference};
use crate::explanation::{Explained, ExplainedCell, FunctionCost};
use crate::walk::Step;

/// Most steps of a sample that are shown in order.
const SHORT: usize = 60;
/// Functions that a difference or a long sample shows.
const TOP: usize = 20;

/// Questions about a sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Questions<'q> {
    /// How many of the longest functions.
    pub top: Option<usize>,
    /// The cost of this function.
    pub function: Option<&'q str>,
    /// The path up to this function.
    pub until: Option<&'q str>,
}

impl Questions<'_> {
    /// Whether nothing is asked.
    pub const fn are_none(&self) -> bool {
        self.top.is_none() && self.function.is_none() && self.until.is_none()
    }
}

/// Returns the document about all cells.
pub fn document(all: &[&Explained], questions: &Questions<'_>) -> Result<Document> {
    let mut document = Document::default();
    let cells = all.iter().flat_map(|one| &one.cells);
    if let Some(name) = questions.function {
        of_function(&mut document, cells.collect(), name)?;
        return Ok(document);
    }
    for cell in cells {
        heading(&mut document, cell);
        match (questions.until, questions.top) {
            (Some(name), _) => until(&mut document, cell, name)?,
            (None, None) if cell.steps.len() <= SHORT => in_order(&mut document, &cell.steps),
            (None, top) => longest(&mut document, cell, top.unwrap_or(TOP)),
        }
        document.push(String::new());
    }
    notes(&mut document, all);
    Ok(document)
}

/// Adds the notes, each once.
fn notes(document: &mut Document, all: &[&Explained]) {
    let notes: BTreeSet<&String> = all.iter().flat_map(|one| &one.notes).collect();
    document.extend(notes.into_iter().map(|note| format!("note: {note}")));
}

fn heading(document: &mut Document, cell: &ExplainedCell) {
    let [samples, alike] = cell.samples;
    document.push(format!(
        "{}: the median sample has {} instructions on its path and {} off it; {alike} of {samples} samples are alike.",
        cell.name(),
        thousands(cell.path),
        thousands(cell.work.saturating_sub(cell.path)),
    ));
}

/// Adds a sample in order.
fn in_order(document: &mut Document, steps: &[Step]) {
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

/// Adds the longest functions, and the sum of the others.
fn longest(document: &mut Document, cell: &ExplainedCell, top: usize) {
    let on_path = cell.functions.iter().filter(|one| one.count != 0);
    let functions: Vec<&FunctionCost> = on_path.collect();
    let (shown, rest) = functions.split_at(functions.len().min(top));
    let text = |of: &dyn Fn(&FunctionCost) -> String| shown.iter().map(|one| of(one)).collect();
    document.table(vec![
        Column::words("CPU", text(&|one| one.cpu.to_string())),
        Column::words("level", text(&|one| format!("EL{}", one.level))),
        Column::words("code", text(&|one| one.image.clone())),
        Column::words("function", text(&|one| one.name.clone())).result(),
        Column::numbers("", "path", text(&|one| thousands(one.count))).result(),
        Column::numbers("all samples", "min", text(&|one| thousands(one.all[0]))),
        Column::numbers("all samples", "p50", text(&|one| thousands(one.all[1]))),
        Column::numbers("all samples", "max", text(&|one| thousands(one.all[2]))),
    ]);
    let sum: u64 = rest.iter().map(|one| one.count).sum();
    if sum != 0 {
        document.push(format!(
            "{} further functions: {} instructions; --top {} shows all.",
            rest.len(),
            thousands(sum),
            functions.len()
        ));
    }
}

/// Adds the path up to a function.
fn until(document: &mut Document, cell: &ExplainedCell, name: &str) -> Result<()> {
    let on_path = cell.steps.iter().filter(|step| step.on_path);
    let steps: Vec<Step> = on_path.cloned().collect();
    let Some(place) = steps.iter().position(|step| step.function == name) else {
        bad_input!(
            "--until: {} has no function `{name}` on its path{}",
            cell.name(),
            near(cell, name)
        );
    };
    in_order(document, &steps[..place]);
    let sum: u64 = steps[..place].iter().map(|step| step.count).sum();
    document.push(format!("{} instructions until {name}.", thousands(sum)));
    Ok(())
}

/// Adds what a function costs in each cell.
fn of_function(document: &mut Document, cells: Vec<&ExplainedCell>, name: &str) -> Result<()> {
    let mut rows: Vec<(&ExplainedCell, &FunctionCost)> = Vec::new();
    for cell in &cells {
        rows.extend(
            cell.functions
                .iter()
                .filter(|one| one.name == name)
                .map(|one| (*cell, one)),
        );
    }
    if rows.is_empty() {
        let hint = cells.first().map_or(String::new(), |cell| near(cell, name));
        bad_input!("--function: no sample has a function `{name}`{hint}");
    }
    let text = |of: &dyn Fn(&ExplainedCell, &FunctionCost) -> String| {
        rows.iter().map(|(cell, one)| of(cell, one)).collect()
    };
    document.push(format!("{name}: instructions on the path"));
    document.table(vec![
        Column::words("cell", text(&|cell, _| cell.name())).result(),
        Column::words("CPU", text(&|_, one| one.cpu.to_string())),
        Column::words("code", text(&|_, one| one.image.clone())),
        Column::numbers("", "median sample", text(&|_, one| thousands(one.count))).result(),
        Column::numbers("all samples", "min", text(&|_, one| thousands(one.all[0]))),
        Column::numbers("all samples", "p50", text(&|_, one| thousands(one.all[1]))),
        Column::numbers("all samples", "max", text(&|_, one| thousands(one.all[2]))),
    ]);
    Ok(())
}

/// Returns the end of an error: functions with a part of this name.
fn near(cell: &ExplainedCell, name: &str) -> String {
    let functions = cell.functions.iter().map(|one| one.name.as_str());
    let like: Vec<&str> = functions.filter(|one| one.contains(name)).take(5).collect();
    match like.is_empty() {
        true => "; --top lists its functions".into(),
        false => format!("; it has {}", like.join(", ")),
    }
}

/// Returns the differences of the cells that both have.
pub fn differences(both: [&Explained; 2], top: Option<usize>) -> Result<Document> {
    let mut document = Document::default();
    let [a, b] = both;
    let mut found = false;
    for of_b in &b.cells {
        let is_like = |of_a: &&ExplainedCell| of_a.words == of_b.words;
        let Some(of_a) = a.cells.iter().find(is_like) else {
            continue;
        };
        found = true;
        difference(
            &mut document,
            &Difference::of([of_a, of_b]),
            top.unwrap_or(TOP),
        );
        document.push(String::new());
    }
    if !found {
        bad_input!("explain: A and B have no cell in common; explain both with the same options");
    }
    notes(&mut document, &both);
    Ok(document)
}

fn difference(document: &mut Document, difference: &Difference<'_>, top: usize) {
    let [a, b] = difference.cells;
    document.push(format!(
        "{}: the path of the median sample has {} instructions in A and {} in B, {}.",
        a.name(),
        thousands(a.path),
        thousands(b.path),
        signed(difference.total())
    ));
    if difference.changes.is_empty() {
        document.push("No function differs.".into());
        return;
    }
    if let Some(parts) = &difference.parts {
        document.push(format!(
            "Up to {} instructions both go the same way. In {}, A goes on with {}, B with {}.",
            thousands(parts.after),
            if parts.function.is_empty() {
                "their first function"
            } else {
                &parts.function
            },
            parts.to[0],
            parts.to[1]
        ));
    }
    let (shown, rest) = difference
        .changes
        .split_at(difference.changes.len().min(top));
    let mut rows: Vec<[String; 7]> = shown.iter().map(row).collect();
    if !rest.is_empty() {
        let sum = |side: usize| rest.iter().map(|one| one.counts[side]).sum();
        let counts = [sum(0), sum(1)];
        let [_, _, _, a, b, by, _] = row(&Change {
            function: Default::default(),
            level: 0,
            counts,
        });
        rows.push([
            "".into(),
            "".into(),
            format!("{} further functions", rest.len()),
            a,
            b,
            by,
            "".into(),
        ]);
    }
    let column = |n: usize| rows.iter().map(|row| row[n].clone()).collect();
    document.table(vec![
        Column::words("level", column(0)),
        Column::words("code", column(1)),
        Column::words("function", column(2)).result(),
        Column::numbers("", "A", column(3)).result(),
        Column::numbers("", "B", column(4)).result(),
        Column::numbers("", "by", column(5)).result(),
        Column::words("", column(6)),
    ]);
    document.push(format!(
        "Sum of all changes: {}.",
        signed(difference.changes.iter().map(Change::by).sum())
    ));
}

fn row(change: &Change) -> [String; 7] {
    let (image, name) = &change.function;
    [
        format!("EL{}", change.level),
        image.clone(),
        name.clone(),
        thousands(change.counts[0]),
        thousands(change.counts[1]),
        signed(change.by()),
        change.kind().into(),
    ]
}

/// Returns a number with its sign.
fn signed(number: i64) -> String {
    let digits = thousands(number.unsigned_abs());
    match number {
        ..0 => format!("-{digits}"),
        0 => digits,
        1.. => format!("+{digits}"),
    }
}

/// Returns a number with its thousands apart.
pub fn thousands(number: u64) -> String {
    page::thousands(number as f64)
}
