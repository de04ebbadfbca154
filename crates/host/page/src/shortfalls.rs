// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why there are fewer results than requested, or why results are uncertain.

use plan::End;
use results::{Cell, Results, clock, counter};

use crate::columns::{COARSE, FEWER, MOVED};

/// Lists why cells have fewer samples than requested, what is missing, during which cells the core's clock frequency
/// changed, and which figures come from a model.
pub fn list_shortfalls(results: &Results) -> Vec<String> {
    let with = |of: &dyn Fn(&Cell) -> bool| results.cells.iter().filter(|cell| of(cell)).count();
    let settled = with(&|cell| cell.ended == Some(End::Settled));
    let slow = with(&Cell::ran_out_of_time);
    let most = results.cells.iter().map(|cell| cell.iterations).max();
    let most = most.unwrap_or(0);
    let mut lines = Vec::new();
    if settled > 0 {
        lines.push(format!(
            "n: {} ended before {most} wake-ups because two passes gave the same percentiles",
            format_cells(settled)
        ));
    }
    if slow > 0 {
        lines.push(format!(
            "{FEWER} {} ended before {most} wake-ups because time was up; --cell-ms gives more",
            format_cells(slow)
        ));
    }
    lines.extend(results.cells.iter().filter_map(lost_stamps_note));
    lines.extend(moved_clocks_note(results));
    lines.extend(coarse_cells_note(results));
    lines.extend(energy_models(results));
    lines.extend(results.serrors.counts_text());
    let incomplete = results.incomplete_text();
    lines.extend(incomplete.map(|missing| format!("INCOMPLETE: {missing}")));
    lines
}

/// Reports that a cell has lost samples with time stamps, so that some of its figures cover only the remaining ones.
fn lost_stamps_note(cell: &Cell) -> Option<String> {
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

/// Names the cells during whose passes the core's frequency changed.
fn moved_clocks_note(results: &Results) -> Option<String> {
    let cells = results.cells.iter();
    let moved: Vec<&Cell> = cells
        .filter(|cell| cell.core_clock_moved.is_some())
        .collect();
    let ranges = moved.iter().filter_map(|cell| cell.core_hz());
    let (low, high) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let mhz = |hz: u64| hz as f64 / 1e6;
    Some(format!(
        "{MOVED} {}: the core's clock moved by more than {} % between passes, or from the run's first: {:.0} to {:.0} MHz",
        format_cells(moved.len()),
        clock::MOVED * 100.0,
        mhz(low),
        mhz(high)
    ))
}

/// Names the cells whose medians are only a few ticks of the counter.
fn coarse_cells_note(results: &Results) -> Option<String> {
    let cells = results.cells.iter();
    let shares: Vec<f64> = cells.filter_map(|cell| cell.counter_coarse).collect();
    let most = shares.iter().copied().reduce(f64::max)?;
    let most = match most * 100.0 {
        100.0.. => "all of one".into(),
        percent => format!("{percent:.0} % of one"),
    };
    Some(format!(
        "{COARSE} {}: a step of the counter is more than {} % of the median, and up to {most}; samples are multiples of it, \
         so the mean says more than the median",
        format_cells(shares.len()),
        counter::COARSE * 100.0
    ))
}

/// Describes the models from which the energy figures come.
fn energy_models(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for model in results
        .cells
        .iter()
        .filter_map(|cell| cell.energy_model.as_ref())
    {
        let line = format!(
            "model: energy is not measured; it is the time in each state of samples with stamps, times {}",
            model.watts.model_text()
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn format_cells(cells: usize) -> String {
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
        assert!(list_shortfalls(&results).is_empty());
        results.cells[1]
            .counters
            .insert("stamped".into(), counts(10));
        let lines = list_shortfalls(&results);
        assert!(
            lines[0].contains("10 of 100 samples with stamps are lost"),
            "{lines:?}"
        );
    }

    #[test]
    fn energy_is_called_a_model_with_its_source_and_absent_without_watts() {
        let mut results = results::samples::results();
        let shown = |results: &Results| {
            let cells: Vec<&Cell> = results.cells.iter().collect();
            let columns =
                crate::columns::columns_of_cells(&cells, crate::scale::Scale::for_results(results));
            let energy = columns.into_iter().find(|column| column.group() == "model");
            energy.map(|column| (column.title().to_owned(), column.texts().to_vec()))
        };
        assert!(shown(&results).is_none() && energy_models(&results).is_empty());
        results.cells[1].energy_model = Some(results::EnergyModel {
            uj_per_wakeup: 1.234,
            watts: results::Watts {
                source: "a bench supply".into(),
                run: 2.0,
                ..Default::default()
            },
        });
        let texts = ["·", "1.23"].map(String::from).to_vec();
        assert_eq!(shown(&results), Some(("uJ/wake-up".into(), texts)));
        let lines = list_shortfalls(&results);
        assert!(
            lines[0].starts_with("model: energy is not measured"),
            "{lines:?}"
        );
        assert!(lines[0].ends_with("by: a bench supply"), "{lines:?}");
    }

    #[test]
    fn a_coarse_counter_is_told_with_the_largest_share_and_a_fine_one_is_not() {
        let mut results = results::samples::results();
        assert!(coarse_cells_note(&results).is_none());
        results.cells[1].counter_coarse = Some(0.108);
        let text = list_shortfalls(&results).join("\n");
        assert_eq!(
            text,
            "^ 1 cell: a step of the counter is more than 5 % of the median, and up to 11 % of one; samples \
             are multiples of it, so the mean says more than the median"
        );
        results.cells[1].counter_coarse = Some(1.0);
        assert!(
            coarse_cells_note(&results)
                .unwrap()
                .contains("up to all of one")
        );
        let cells: Vec<&Cell> = results.cells.iter().collect();
        let columns =
            crate::columns::columns_of_cells(&cells, crate::scale::Scale::for_results(&results));
        let waits = columns.iter().find(|column| column.title() == "wait");
        assert_eq!(waits.unwrap().texts(), ["wfi", "wfi^"]);
    }

    #[test]
    fn serrors_are_told_where_there_were_any() {
        let mut results = Results::default();
        assert!(list_shortfalls(&results).is_empty());
        results.serrors.restartable = 3;
        let lines = list_shortfalls(&results);
        assert!(
            lines[0].starts_with("SErrors: 0 left by firmware, 0 corrected, 3 restartable;"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_clock_that_moved_is_told_with_its_range_and_a_steady_one_is_not() {
        let mut results = results::samples::results();
        results.cells[1].pass_core_hz = vec![[2_600_000_000, 2_599_000_000]; 4];
        assert!(moved_clocks_note(&results).is_none());
        results.cells[1].pass_core_hz[3][1] = 1_300_000_000;
        results.cells[1].core_clock_moved = Some(0.5);
        let text = list_shortfalls(&results).join("\n");
        assert_eq!(
            text,
            "~ 1 cell: the core's clock moved by more than 2 % between passes, or from the run's \
             first: 1300 to 2600 MHz"
        );
        let cells: Vec<&Cell> = results.cells.iter().collect();
        let columns =
            crate::columns::columns_of_cells(&cells, crate::scale::Scale::for_results(&results));
        let waits = columns.iter().find(|column| column.title() == "wait");
        assert_eq!(waits.unwrap().texts(), ["wfi", "wfi~"]);
    }
}
