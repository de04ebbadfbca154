// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is less than was asked for.

use plan::End;
use results::{Cell, Results};

use crate::columns::FEWER;

/// Why cells have fewer samples than asked for, and what is not there.
pub fn shortfalls(results: &Results) -> Vec<String> {
    let with = |of: &dyn Fn(&Cell) -> bool| results.cells.iter().filter(|cell| of(cell)).count();
    let settled = with(&|cell| cell.ended == Some(End::Settled));
    let slow = with(&Cell::ran_out_of_time);
    let most = results.cells.iter().map(|cell| cell.iterations).max();
    let most = most.unwrap_or(0);
    let mut lines = Vec::new();
    if settled > 0 {
        lines.push(format!(
            "n: {} ended before {most} wake-ups because two passes gave the same percentiles",
            counted(settled)
        ));
    }
    if slow > 0 {
        lines.push(format!(
            "{FEWER} {} ended before {most} wake-ups because time was up; --cell-ms gives more",
            counted(slow)
        ));
    }
    let incomplete = results.incomplete_text();
    lines.extend(incomplete.map(|missing| format!("INCOMPLETE: {missing}")));
    lines
}

fn counted(cells: usize) -> String {
    match cells {
        1 => "1 cell".into(),
        _ => format!("{cells} cells"),
    }
}
