// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables and pages of the logs whose results crates/results tests: what people
//! see of a log is as it was, or the change is looked at.
//!
//! Written anew by `ROUSE_REWRITE=1 cargo test -p results -p xtask golden`.

use std::fs;
use std::path::{Path, PathBuf};

use results::merge::{self, Run};
use results::{Results, capture};

use crate::{page, places, table};

/// Width of the tables.
const WIDTH: usize = 100;

/// The logs, by name.
fn logs() -> Vec<(String, Results)> {
    let folder = places::inside("crates/results/tests/goldens");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    files.sort();
    let named = files.iter().map(|path| {
        let text = fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, capture::results(&text).unwrap())
    });
    named.collect()
}

/// Compares `text` with the golden file of this name.
fn golden(name: &str, text: &str) {
    let path = places::inside("xtask/tests/goldens").join(name);
    if std::env::var_os("ROUSE_REWRITE").is_some() {
        return fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let at = expected
        .lines()
        .zip(text.lines())
        .position(|(was, is)| was != is);
    assert!(
        expected == text,
        "{} is different from line {} on; if that is meant: ROUSE_REWRITE=1 cargo test -p results -p xtask golden",
        shown(&path),
        at.unwrap_or_else(|| expected.lines().count().min(text.lines().count())) + 1
    );
}

fn shown(path: &Path) -> String {
    places::shown(path)
}

/// The page, a line per element, so that a difference can be read; without the style.
fn by_lines(page: &str) -> String {
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    format!("{head}{body}").replace("><", ">\n<") + "\n"
}

fn run(label: &str, results: Results) -> Run {
    Run {
        label: label.into(),
        results,
        commands: vec![format!("cargo xtask report {label}.log")],
    }
}

#[test]
fn golden_tables() {
    for (name, results) in logs() {
        let lines = table::lines(&results, Some(WIDTH)).join("\n");
        golden(&format!("{name}.txt"), &(lines + "\n"));
    }
}

#[test]
fn golden_pages() {
    for (name, results) in logs() {
        let page = page::html(None, &[run(&name, results)]).unwrap();
        golden(&format!("{name}.html"), &by_lines(&page));
    }
}

/// Runs of several logs on one page, and in one file.
#[test]
fn golden_page_of_all_runs() {
    let runs = logs()
        .into_iter()
        .map(|(name, results)| run(&name, results));
    let runs = merge::runs(runs.collect());
    golden("all.html", &by_lines(&page::html(None, &runs).unwrap()));
    golden("all.json", &merge::into_one(&runs).to_json().unwrap());
}
