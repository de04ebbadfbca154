// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows how much of a cost is due to the layer below the guest: compares each cell with the same cell on the bare
//! machine, and with the same cell under Rouse.

use std::collections::BTreeSet;

use plan::{Deliver, Trap, Under, Wait, Wake, Workload};
use results::{Cell, Results};

use crate::column::{Column, TOO_FEW};
use crate::scale::{Scale, operation_name};
use crate::screen::words;

/// Returns the median of a cell, in the shown unit.
fn median_in_unit(cell: &Cell, scale: Scale) -> Option<f64> {
    let stats = cell.stats_with_median()?;
    Some(
        scale
            .for_cell(cell)
            .convert_percentile(stats.p50, stats.bounds()),
    )
}

/// Finds the counterpart of `cell` on the bare machine in `cells`, and returns how much more `cell` costs.
fn cost_over_bare(cell: &Cell, cells: &[&Cell], scale: Scale) -> Option<String> {
    let floor = cells
        .iter()
        .find(|floor| cell.has_bare_machine_twin(floor))?;
    let rounded = |cell: &Cell| {
        let stats = cell.stats_with_median()?;
        Some((stats.p50, Some(stats.bounds())))
    };
    let by = scale
        .for_cell(cell)
        .show_difference(rounded(cell)?, rounded(floor)?);
    (cell.under != Under::None).then(|| by.trim_start_matches('+').to_owned())
}

/// Returns the ratio of the cell's cost to its cost under Rouse. `None` if values are times of a host's threads.
fn ratio_to_rouse(cell: &Cell, cells: &[&Cell], scale: Scale) -> Option<f64> {
    if scale.of_host {
        return None;
    }
    let rouse = |other: &&&Cell| other.under == Under::Rouse && cell.is_like(other);
    let rouse = median_in_unit(cells.iter().find(rouse)?, scale)?;
    let times = median_in_unit(cell, scale)? / rouse;
    (cell.under != Under::Rouse && rouse > 0.0).then_some(times)
}

/// Returns the columns that compare layers, if the cells ran under more than one layer.
pub fn cost_columns(cells: &[&Cell], scale: Scale) -> Vec<Column> {
    let unders: BTreeSet<Under> = cells.iter().map(|cell| cell.under).collect();
    if unders.len() < 2 {
        return Vec::new();
    }
    let column = |title, of: &dyn Fn(&Cell) -> Option<String>| {
        let texts = cells.iter().map(|cell| of(cell).unwrap_or(TOO_FEW.into()));
        let texts: Vec<String> = texts.collect();
        let any = texts.iter().any(|text| text != TOO_FEW);
        any.then(|| Column::numbers("p50", title, texts))
    };
    let over = column("over none", &|cell| cost_over_bare(cell, cells, scale));
    let of = column("of rouse", &|cell| {
        Some(format_ratio(ratio_to_rouse(cell, cells, scale)?))
    });
    over.into_iter().chain(of).collect()
}

/// Formats a ratio with three digits, or with more if its integer part is longer.
pub fn format_ratio(ratio: f64) -> String {
    match ratio {
        ..10.0 => format!("{ratio:.2}x"),
        ..100.0 => format!("{ratio:.1}x"),
        _ => format!("{ratio:.0}x"),
    }
}

/// Compares, in one sentence, the costs of a wake-up with and without an interrupt under the different layers below the
/// guest. `None` if the cells ran under only one layer, or if values are times of a host's threads.
pub fn cost_sentence(results: &Results, scale: Scale) -> Option<String> {
    if scale.of_host {
        return None;
    }
    let measured = results.cells.iter().filter(|cell| cell.stats.is_some());
    let cells: Vec<&Cell> = measured
        .filter(|cell| cell.what.workload == Workload::Pingpong)
        .collect();
    let is_sleep = |cell: &Cell| cell.what.wait == Wait::Wfi && cell.what.wake == Wake::Ipi;
    let sleep = cell_under_most_layers(&cells, scale, &is_sleep)?;
    let first = format!(
        "One {} of pingpong, in {}, from {}",
        operation_name(Workload::Pingpong),
        scale.unit_of_results(results),
        costs_text(&sleep)
    );
    // A CPU that polls long enough executes no instruction that could trap.
    let is_polled = |cell: &Cell| {
        let what = &cell.what;
        (what.wait, what.wake, what.trap) == (Wait::PollWfi, Wake::Elide, Trap::None)
    };
    let polled = cell_under_most_layers(&cells, scale, &is_polled);
    Some(match polled {
        Some(polled) => format!("{first}; from {}.", costs_text(&polled)),
        None => format!("{first}."),
    })
}

/// A cell, with its median under each layer below the guest.
struct LayerRow<'r> {
    cell: &'r Cell,
    medians: Vec<(Under, f64)>,
}

/// Returns the `wanted` cell that was measured under the most layers. Among several such cells, prefers one without a
/// trap and without a poll by the hypervisor, and with injected interrupts.
fn cell_under_most_layers<'r>(
    cells: &[&'r Cell],
    scale: Scale,
    wanted: &dyn Fn(&Cell) -> bool,
) -> Option<LayerRow<'r>> {
    let row = |&cell: &&'r Cell| {
        let of_row = |other: &&&Cell| cell.is_like(other) || cell.has_bare_machine_twin(other);
        let others = cells.iter().filter(of_row);
        let mut medians: Vec<_> = others
            .filter_map(|other| Some((other.under, median_in_unit(other, scale)?)))
            .collect();
        // The layers are in the order that people expect: the bare machine, Rouse, other hypervisors.
        medians.sort_by_key(|(under, _)| (*under != Under::None, *under));
        LayerRow { cell, medians }
    };
    let rows = cells.iter().filter(|cell| wanted(cell)).map(row);
    let rows = rows.filter(|row| row.medians.len() > 1);
    rows.max_by_key(|row| {
        let what = &row.cell.what;
        let is_plain = what.trap == Trap::None && what.host_poll_us == 0;
        let is_injected = what.deliver == Deliver::Inject;
        (row.medians.len(), is_plain, is_injected)
    })
}

/// Describes a row in words: says that all costs are equal, or lists each cost with its ratio to Rouse's (or to the
/// first layer's).
fn costs_text(row: &LayerRow<'_>) -> String {
    let LayerRow { cell, medians } = row;
    let (first_under, first) = medians[0];
    let wait = words::wait_text(cell, false) + &words::trap_text(cell, false);
    let name = match cell.what.wake {
        Wake::Ipi if cell.what.deliver == Deliver::Inject => format!("{wait}, IPI injected:"),
        Wake::Ipi => format!("{wait}:"),
        Wake::Elide => format!("{wait}, {}:", words::arrival_text(cell)),
    };
    if medians.iter().all(|(_, median)| *median == first) {
        return format!("{name} {first:.0} under each");
    }
    let one = medians.iter().find(|(under, _)| *under == Under::Rouse);
    let (one_under, one) = one.copied().unwrap_or((first_under, first));
    let each = medians.iter().map(|&(under, median)| match under {
        under if under == one_under || under == Under::None => format!("{under} {median:.0}"),
        _ => format!("{under} {median:.0} ({})", format_ratio(median / one)),
    });
    format!("{name} {}", each.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Stats;

    fn cell(under: Under, wait: Wait, trap: Trap, p50: u64) -> Cell {
        let mut what = plan::Cell {
            workload: Workload::Pingpong,
            wait,
            trap,
            ..plan::Cell::default()
        };
        if wait == Wait::PollWfi {
            what.wake = Wake::Elide;
        }
        if under == Under::None {
            what.deliver = Deliver::Direct;
        }
        let stats = Stats {
            count: 100,
            p50,
            ..Stats::default()
        };
        Cell {
            under,
            what,
            stats: Some(stats),
            ..Cell::default()
        }
    }

    fn several() -> Results {
        Results {
            unit: "insns".into(),
            cells: vec![
                cell(Under::None, Wait::Wfi, Trap::None, 88),
                cell(Under::Rouse, Wait::Wfi, Trap::Wfi, 226),
                cell(Under::Xen, Wait::Wfi, Trap::Wfi, 904),
                cell(Under::None, Wait::PollWfi, Trap::None, 79),
                cell(Under::Xen, Wait::PollWfi, Trap::None, 79),
            ],
            ..Results::default()
        }
    }

    #[test]
    fn a_cell_stands_beside_that_of_the_bare_machine_and_that_of_rouse() {
        let results = several();
        let cells: Vec<&Cell> = results.cells.iter().collect();
        let columns = cost_columns(&cells, Scale::for_results(&results));
        let shown: Vec<_> = columns
            .iter()
            .map(|column| (column.title(), column.texts().join(" ")))
            .collect();
        let expected = [
            ("over none", "- 138 816 - 0".to_owned()),
            ("of rouse", "- - 4.00x - -".to_owned()),
        ];
        assert_eq!(shown, expected);
        assert!(super::cost_columns(&cells[1..2], Scale::for_results(&results)).is_empty());
    }

    #[test]
    fn the_sentence_has_the_dearest_and_what_is_alike() {
        let results = several();
        let text = cost_sentence(&results, Scale::for_results(&results)).unwrap();
        assert_eq!(
            text,
            "One round trip of pingpong, in instructions, from WFI, trapped, IPI injected: none 88, rouse 226, \
             xen 904 (4.00x); from polls 0 us, then WFI, no IPI, polled: 79 under each."
        );
        let mut alone = several();
        alone.cells.truncate(1);
        assert_eq!(cost_sentence(&alone, Scale::for_results(&alone)), None);
    }

    #[test]
    fn another_gap_is_another_cell() {
        let mut results = several();
        results.cells[0].what.gap_us = 20;
        let cells: Vec<&Cell> = results.cells.iter().collect();
        assert_eq!(
            cost_over_bare(cells[1], &cells, Scale::for_results(&results)),
            None
        );
    }
}
