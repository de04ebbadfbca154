// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines that paths miss, as tables.

use std::collections::BTreeMap;

use cost::Path;
use page::Column;

use super::{Design, Line, Missed, design};

pub const HEADING: &str = "lines of 64 bytes that EL2 misses with nothing in caches, code/data: by design, and as measured; of those in the second cache too; lines that it \
                           asked for in vain (ahead), used and did not miss (there), and of translation tables (walked)";
const NONE: &str = "-";

type Models = BTreeMap<String, BTreeMap<String, Missed>>;

/// The paths that any of the `models` has.
fn paths(models: &Models) -> Vec<Path> {
    let taken = |path: &&Path| models.values().any(|of| of.contains_key(path.name()));
    Path::ALL.iter().filter(taken).copied().collect()
}

/// A row for each path: its design, and what each model missed.
pub fn columns(models: &Models) -> Vec<Column> {
    let paths = paths(models);
    let texts = |of: &dyn Fn(Path) -> String| paths.iter().map(|&path| of(path)).collect();
    let mut columns = vec![
        Column::words("path", texts(&|path| path.name().into())),
        Column::numbers("", "by design", texts(&by_design)),
    ];
    for (model, of) in models {
        let number = |title, text: &dyn Fn(&Missed) -> String| {
            let text = |path: Path| of.get(path.name()).map_or(NONE.into(), text);
            Column::numbers(model, title, texts(&text))
        };
        columns.push(number("missed", &|missed| {
            let (code, data) = missed.counts();
            format!("{code}/{data}")
        }));
        columns.push(number("second", &|missed| {
            let second = missed.used.iter().filter(|line| line.second);
            second.count().to_string()
        }));
        columns.push(number("ahead", &|missed| missed.ahead.len().to_string()));
        columns.push(number("there", &|missed| missed.there.len().to_string()));
        columns.push(number("walked", &|missed| missed.walked.to_string()));
    }
    columns
}

/// The lines of a path's design, code/data.
fn by_design(path: Path) -> String {
    let of = |code| {
        let entries = design(path).iter();
        let entries = entries.filter(|entry| entry.kinds[0].is_code() == code);
        entries.map(|entry| entry.lines).sum::<usize>()
    };
    format!("{}/{}", of(true), of(false))
}

/// A row for each part of a path's design: how many lines, what they are called on the models that missed them, and why.
pub fn named(models: &Models) -> Vec<Column> {
    let parts = paths(models).into_iter().flat_map(|path| {
        let parts = design(path).iter();
        parts.map(move |part| (path, part))
    });
    let parts: Vec<(Path, &Design)> = parts.collect();
    let texts = |of: &dyn Fn(Path, &Design) -> String| {
        let texts = parts.iter().map(|(path, part)| of(*path, part));
        texts.collect()
    };
    vec![
        Column::words("path", texts(&|path, _| path.name().into())),
        Column::words("what", texts(&|_, part| what(part).into())),
        Column::numbers("", "lines", texts(&|_, part| part.lines.to_string())),
        Column::words("which", texts(&|path, part| names(models, path, part))),
        Column::words("why", texts(&|_, part| part.why.into())),
    ]
}

/// What the lines of `part` are of.
fn what(part: &Design) -> &'static str {
    match part.kinds {
        [kind] => kind.name(),
        [first, ..] if first.is_code() => "code",
        _ => "data",
    }
}

/// Most lines of a part that are named: those of Rust are where the compiler put them, and the saved card has them all.
const NAMED: usize = 4;

/// The lines of `part` that any of the models missed, or used without that.
fn names(models: &Models, path: Path, part: &Design) -> String {
    let missed = models.values().filter_map(|of| of.get(path.name()));
    let fits = |line: &&Line| part.fits(line);
    let mut names: Vec<String> = Vec::new();
    for (lines, mark) in missed.flat_map(|of| [(&of.used, ""), (&of.there, " (there)")]) {
        for line in lines.iter().filter(fits) {
            let name = format!("{}{mark}", line.name);
            if !names
                .iter()
                .any(|other| *other == name || *other == line.name)
            {
                names.push(name);
            }
        }
    }
    names.sort();
    match names.len() {
        0 => NONE.into(),
        1..=NAMED => names.join(", "),
        _ => format!("{}, ...", names[..NAMED].join(", ")),
    }
}
