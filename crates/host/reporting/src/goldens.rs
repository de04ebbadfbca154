// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of the logs whose results crates/host/results tests. The table of a log changes
//! only by a reviewed change.

use page::{screen, table};
use results::goldens::{golden, logs};

use shell::places;

/// Width of the tables.
const WIDTH: usize = 100;

#[test]
fn golden_tables() {
    let folder = places::inside("crates/host/reporting/tests/goldens");
    for (name, results) in logs() {
        let lines = table::lines(&results, Some(WIDTH)).join("\n");
        golden(&folder.join(format!("{name}.txt")), &(lines + "\n"));
    }
}

#[test]
fn golden_screens() {
    let folder = places::inside("crates/host/reporting/tests/goldens");
    for (name, results) in logs() {
        if let Some(screen) = screen::document(&results, screen::Rest::Elsewhere) {
            let lines = screen.terminal(Some(screen::WIDTH)).join("\n");
            golden(&folder.join(format!("{name}.screen.txt")), &(lines + "\n"));
        }
    }
}
