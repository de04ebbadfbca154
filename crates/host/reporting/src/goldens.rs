// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the tables of the logs whose results are tested in crates/host/results. The table of a log stays the same
//! unless a reviewed change alters it.

use page::{screen, table};
use results::goldens::{golden, log_results};

use shell::places;

/// Width of the tables.
const WIDTH: usize = 100;

#[test]
fn golden_tables() {
    let folder = places::inside("crates/host/reporting/tests/goldens");
    for (name, results) in log_results() {
        let lines = table::lines(&results, Some(WIDTH)).join("\n");
        golden(&folder.join(format!("{name}.txt")), &(lines + "\n"));
    }
}

#[test]
fn golden_screens() {
    let folder = places::inside("crates/host/reporting/tests/goldens");
    for (name, results) in log_results() {
        if let Some(screen) = screen::document(&results, screen::Rest::Elsewhere) {
            let lines = screen.terminal(Some(screen::WIDTH)).join("\n");
            golden(&folder.join(format!("{name}.screen.txt")), &(lines + "\n"));
        }
    }
}
