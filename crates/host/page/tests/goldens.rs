// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of the logs whose results crates/host/results tests: people see the same of a log,
//! unless a reviewed change differs.

use std::path::Path;

use results::goldens::{golden, runs};
use results::merge::{self, Run};

/// Compares the page of some runs with the file of this name.
fn page_of(name: &str, runs: &[Run]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let path = folder.join(format!("{name}.html"));
    golden(&path, &by_lines(&page::html(None, runs)));
}

/// Returns the page, a line per element, so that a difference is readable; without style and script.
fn by_lines(page: &str) -> String {
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (body, _) = rest.split_once("<script>").unwrap();
    format!("{head}{body}").replace("><", ">\n<") + "\n"
}

#[test]
fn golden_pages() {
    for run in runs() {
        page_of(&run.label.clone(), &[run]);
    }
}

/// Runs of several logs on one page.
#[test]
fn golden_page_of_all_runs() {
    page_of("all", &merge::runs(runs()));
}
