// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `compare`: judges cell by cell whether B is better or worse than A.

mod options;

pub use options::CompareArgs;

pub mod across;
mod cell_names;
mod first_look;
mod gate;
mod kernels;
mod layer_costs;
pub mod page;
mod screen;
mod sentences;
mod side;
pub mod text;

use std::fmt;

use ::page::document::Document;
use anyhow::Result;
use results::Cell;
use results::compare::{ASPECTS, Comparison, differences};

use crate::report;
pub use first_look::first_look;
pub use gate::format_cells;
use gate::{Gate, Judgement};
use shell::failure::bad_input;
use shell::output::Output;
use shell::terminal::note;
use side::{Side, parse_percent};

/// The error if B is worse than the gate allows.
#[derive(Debug)]
pub struct Worse(String);

impl fmt::Display for Worse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Worse {}

/// Runs `cargo xtask compare`.
pub fn compare(args: &CompareArgs) -> Result<()> {
    args.format.claim()?;
    told(args)
}

/// Like [`compare`], for a caller that has already reserved standard output.
pub fn told(args: &CompareArgs) -> Result<()> {
    let out = args
        .out
        .as_ref()
        .map(|out| Output::claim("--out", out))
        .transpose()?;
    let (document, page, judgement) = judge_sides(args)?;
    args.format.show_document(&document)?;
    report::write_page(&page, out.zip(args.out.as_deref()))?;
    match judgement {
        Judgement::Passed => Ok(()),
        Judgement::Failed(why) => Err(Worse(why).into()),
        Judgement::NotTried(why) => bad_input!("{why}"),
    }
}

/// Returns the document, the page, and whether B passes.
fn judge_sides(args: &CompareArgs) -> Result<(Document, String, Judgement)> {
    let gate = args.fail_if_worse.as_deref().map(Gate::parse).transpose()?;
    let level = parse_percent("--level", &args.level)?;
    if !(level > 0.0 && level < 50.0) {
        bad_input!(
            "--level: `{}` is not a level; name one above 0 and below 50 %",
            args.level
        );
    }
    let see = args
        .see
        .as_deref()
        .map(|text| parse_percent("--see", text))
        .transpose()?;
    let allowed = parse_allowed(args.allow.as_deref())?;
    let (a, b) = match (args.runs.as_slice(), args.with.as_slice()) {
        ([a, b], []) => (std::slice::from_ref(a), std::slice::from_ref(b)),
        ([], _) => bad_input!(
            "nothing to compare is named; name {}",
            crate::saved_runs::possible_inputs()
        ),
        (_, []) => bad_input!(
            "{} named, and it is not clear which are whose; name two, or those of B after --with",
            match args.runs.len() {
                1 => "1 run is".to_owned(),
                several => format!("{several} runs are"),
            }
        ),
        (a, b) => (a, b),
    };
    let (paths_a, paths_b) = (a, b);
    let (mut a, mut b) = (Side::read_runs("A", a)?, Side::read_runs("B", b)?);
    side::check_distinct((&a, paths_a), (&b, paths_b))?;
    for line in a.complaints().chain(b.complaints()) {
        note!("warning: {line}");
    }
    side::check_units(&a, &b)?;
    // A gate compares each cell only with the same cell.
    if gate.is_none() {
        across::move_sole_difference_to_names(&mut a, &mut b);
    }
    let comparison = Comparison::new(&a.runs, &b.runs, level / 100.0);
    if comparison.pairs.is_empty() && comparison.lost.iter().all(|lost| lost.has == 0) {
        let cells = comparison.lost.iter().map(|lost| lost.cell);
        let first = [
            cells.min_by_key(|cell| cell.id),
            comparison.added.first().copied(),
        ];
        bad_input!(
            "{} and {} have no cell in common ({}); `report` shows both, or run both with the same options",
            a.shown,
            b.shown,
            first_difference(first)
        );
    }
    side::check_cells(&comparison)?;
    let mut differs = differences(&a.runs, &b.runs);
    differs.extend(comparison.path_difference());
    let judgement = match &gate {
        None => Judgement::Passed,
        Some(gate) => {
            let not_allowed = differs
                .iter()
                .filter(|differs| !allowed.contains(&differs.aspect));
            let not_allowed: Vec<_> = not_allowed.collect();
            gate.judge(&comparison, &not_allowed, &b)
        }
    };
    let whole = args.format.is_whole();
    let document = text::document(&comparison, &differs, &a, &b, see, whole);
    Ok((
        document,
        page::comparison_page(&comparison, &differs, &a, &b),
        judgement,
    ))
}

/// Parses the aspects in which the sides may differ.
fn parse_allowed(list: Option<&str>) -> Result<Vec<&'static str>> {
    let words = list
        .unwrap_or_default()
        .split(',')
        .filter(|word| !word.is_empty());
    let known = |word: &str| match ASPECTS.iter().find(|aspect| **aspect == word) {
        Some(aspect) => Ok(*aspect),
        None => bad_input!("--allow: there is no `{word}`; use {}", ASPECTS.join(", ")),
    };
    words.map(known).collect()
}

/// Describes the first cells of A and B by the dimensions in which they differ, or by their titles if a side has no
/// cell.
fn first_difference(first: [Option<&Cell>; 2]) -> String {
    let [Some(a), Some(b)] = first else {
        let [a, b] = first.map(|cell| cell.map_or("none".into(), Cell::title));
        return format!("A: {a}; B: {b}");
    };
    let word = |cell: &Cell, key| cell.word(key).unwrap_or_else(|| "none".into());
    let differing = results::keys().filter(|key| a.word(key) != b.word(key));
    let differing: Vec<String> = differing
        .map(|key| format!("{key} is {} in A and {} in B", word(a, key), word(b, key)))
        .collect();
    differing.join(", ")
}

#[cfg(test)]
mod tests;
