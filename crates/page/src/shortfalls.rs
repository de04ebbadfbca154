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
    lines.extend(results.cells.iter().filter_map(lost_stamps));
    let incomplete = results.incomplete_text();
    lines.extend(incomplete.map(|missing| format!("INCOMPLETE: {missing}")));
    lines
}

/// That a cell has lost samples with time stamps: what it shows of them is of the others.
fn lost_stamps(cell: &Cell) -> Option<String> {
    let stamped = cell.counters.get("stamped")?;
    let count = |name: &str| stamped.get(name).copied().unwrap_or(0);
    let (lost, left) = (count("lost"), count("samples"));
    (lost > 0).then(|| {
        format!(
            "{}: {lost} of {} samples with stamps are lost, since their notes were overwritten before they were read; \
             where the CPUs were is that of the rest",
            cell.title(),
            lost + left
        )
    })
}

fn counted(cells: usize) -> String {
    match cells {
        1 => "1 cell".into(),
        _ => format!("{cells} cells"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Counts;

    #[test]
    fn a_cell_that_lost_samples_with_stamps_says_so() {
        let mut results = results::samples::results();
        let cell = &mut results.cells[1];
        let counts = |lost| Counts::from([("samples".into(), 90), ("lost".into(), lost)]);
        cell.counters.insert("stamped".into(), counts(0));
        assert!(shortfalls(&results).is_empty());
        results.cells[1]
            .counters
            .insert("stamped".into(), counts(10));
        let lines = shortfalls(&results);
        assert!(
            lines[0].contains("10 of 100 samples with stamps are lost"),
            "{lines:?}"
        );
    }
}
