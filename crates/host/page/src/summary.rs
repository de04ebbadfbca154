// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sentence that sums up a run.

use plan::{Deliver, Trap, Wait, Workload};
use results::{Cell, Results};

use crate::columns::MARK;
use crate::scale::{Scale, operation_name, shown_median};

/// The way of waiting to which all ratios refer. It is the way in which Linux would wait.
const REFERENCE: Wait = Wait::PollWfi;
const WORKLOAD: Workload = Workload::Pingpong;

/// A way of waiting: its name, its lowest median, and the ratio of this median to the reference.
struct Way {
    name: String,
    p50: u64,
    ratio: f64,
}

/// Compares each way of waiting, by its median, with the reference. Returns no ratios if values are times of a host's
/// threads, because such ratios would not describe the machine.
pub fn summary_sentence(results: &Results, scale: Scale) -> String {
    let Some(reference) = reference_cell(results).filter(|_| !scale.of_host) else {
        let measured = measured_cells(results).count();
        let skipped = results.cells.len() - measured;
        let caution = match scale.of_host {
            true => {
                " Values are times of this host's threads: no ratio of them is one of a machine."
            }
            false => "",
        };
        return format!("Measured cells: {measured}, skipped: {skipped}.{caution}");
    };
    let parts: Vec<String> = other_waits(results, reference)
        .iter()
        .map(|way| format!("{} {:.2}x", way.name, way.ratio))
        .collect();
    let against = format!(
        "Cost relative to {} ({}, {}: {} {} a {} = 1.00x; higher is slower)",
        starred_name(REFERENCE.to_string(), reference),
        reference.what.deliver,
        reference.what.wake,
        scale.show_value(shown_median(reference).unwrap_or(0)),
        scale.unit_of_results(results),
        operation_name(WORKLOAD)
    );
    let marked = parts.iter().any(|part| part.contains(MARK));
    let caution = match marked || !reference.not_modelled.is_empty() {
        true => format!(" A ratio with a {MARK} is one of lengths of code, not of waits."),
        false => String::new(),
    };
    match parts.as_slice() {
        [] => format!("{against}: nothing else was measured."),
        parts => format!(
            "{against}, each at its best: {}.{caution}",
            parts.join(", ")
        ),
    }
}

/// Lists the costs that the run's numbers exclude because the machine does not model them. `None` if values are not
/// instructions.
pub fn unmodelled_costs(results: &Results) -> Option<String> {
    let messaging = measured_cells(results).any(|cell| cell.what.workload == Workload::Messaging);
    let order = match messaging {
        true => " The tasks of messaging run in another order than on CPUs that run at once.",
        false => "",
    };
    (results.unit == "insns").then(|| {
        format!(
            "These are counts of instructions, not times: CPUs run one after another here, and neither caches nor \
             the latency of an interrupt or an exit is modelled.{order}"
        )
    })
}

/// Compares polling by the guest with polling by the hypervisor, in cells where WFI is trapped. `None` unless all four
/// cells were measured, or if values are times of a host's threads.
pub fn compare_polling(results: &Results, scale: Scale) -> Option<String> {
    if scale.of_host {
        return None;
    }
    let best = |wait: Wait, host: bool| {
        let cells = measured_cells(results).filter(|cell| {
            cell.what.workload == WORKLOAD
                && cell.what.wait == wait
                && cell.what.trap == Trap::Wfi
                && cell.what.deliver == Deliver::Inject
                && (cell.what.host_poll_us != 0) == host
        });
        let medians = cells.filter_map(|cell| Some((shown_median(cell)?, cell)));
        let (p50, cell) = medians.min_by_key(|(p50, _)| *p50)?;
        Some(starred_name(scale.show_value(p50), cell))
    };
    Some(format!(
        "Round trip (trapped WFI, injected), {}: no polling {}, host polls {}, guest polls {}, both poll {}.",
        scale.unit_of_results(results),
        best(Wait::Wfi, false)?,
        best(Wait::Wfi, true)?,
        best(REFERENCE, false)?,
        best(REFERENCE, true)?,
    ))
}

fn measured_cells(results: &Results) -> impl Iterator<Item = &Cell> {
    results.cells.iter().filter(|cell| cell.stats.is_some())
}

/// Returns the fastest cell that waits like the reference.
fn reference_cell(results: &Results) -> Option<&Cell> {
    measured_cells(results)
        .filter(|cell| cell.what.workload == WORKLOAD && cell.what.wait == REFERENCE)
        .filter(|cell| shown_median(cell).is_some())
        .min_by_key(|cell| shown_median(cell))
}

/// Returns the fastest cell for each way of waiting except the reference, in the order of the cells.
fn other_waits(results: &Results, reference: &Cell) -> Vec<Way> {
    let mut best: Vec<(String, Way)> = Vec::new();
    let one = shown_median(reference).unwrap_or(0).max(1);
    for cell in measured_cells(results).filter(|cell| differs_only_in_wait(cell, reference)) {
        let Some(p50) = shown_median(cell) else {
            continue;
        };
        let (known, ratio) = (wait_name(cell), p50 as f64 / one as f64);
        let name = format!("{known} ({})", cell.what.wake);
        let way = Way { name, p50, ratio };
        match best.iter_mut().find(|(name, _)| *name == known) {
            Some((_, best)) if best.p50 <= p50 => {}
            Some((_, best)) => *best = way,
            None => best.push((known, way)),
        }
    }
    best.into_iter().map(|(_, way)| way).collect()
}

/// Whether a cell differs from the reference only in the way of waiting.
fn differs_only_in_wait(cell: &Cell, reference: &Cell) -> bool {
    let same = |key| cell.word(key) == reference.word(key);
    cell.what.wait != REFERENCE
        && ["under", "workload", "deliver", "gap-us"]
            .into_iter()
            .all(same)
}

/// Marks a name if the cell's wait depends on a property that the machine does not model.
fn starred_name(name: String, cell: &Cell) -> String {
    match cell.not_modelled.is_empty() {
        true => name,
        false => name + MARK,
    }
}

/// Names the way of waiting, and the trap if the wait can halt.
fn wait_name(cell: &Cell) -> String {
    let plan::Cell { wait, trap, .. } = cell.what;
    let trapped = wait.halts() && trap.wfi() || wait.uses_events() && trap.wfe();
    let wait_shown = starred_name(wait.to_string(), cell);
    match (wait.halts() || wait.uses_events(), trapped) {
        (false, _) => wait_shown,
        (true, true) => format!("{wait_shown} trapped"),
        (true, false) => format!("{wait_shown} untrapped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Stats;

    fn cell(wait: &str, trap: &str, wake: &str, p50: u64) -> Cell {
        let mut what = plan::Cell {
            workload: WORKLOAD,
            ..plan::Cell::default()
        };
        for (key, word) in [("wait", wait), ("trap", trap), ("wake", wake)] {
            what.set(key, word).unwrap();
        }
        let stats = Stats {
            count: 24,
            p50,
            ..Stats::default()
        };
        Cell {
            what,
            stats: Some(stats),
            ..Cell::default()
        }
    }

    fn results(cells: Vec<Cell>) -> Results {
        Results {
            unit: "insns".into(),
            cells,
            ..Results::default()
        }
    }

    #[test]
    fn every_wait_is_held_against_the_reference() {
        let results = results(vec![
            cell("spin", "none", "ipi", 220),
            cell("spin", "none", "elide", 180),
            cell("wfi", "none", "ipi", 600),
            cell("wfi", "wfi", "ipi", 800),
            cell("poll-wfi", "none", "ipi", 500),
            cell("poll-wfi", "none", "elide", 400),
        ]);
        assert_eq!(
            summary_sentence(&results, Scale::for_results(&results)),
            "Cost relative to poll-wfi (inject, elide: 400 instructions a round trip = 1.00x; higher is slower), \
             each at its best: spin (elide) 0.45x, wfi untrapped (ipi) 1.50x, wfi trapped (ipi) 2.00x."
        );
    }

    #[test]
    fn a_ratio_of_what_is_not_modelled_is_marked() {
        let mut spin = cell("spin", "none", "elide", 51);
        spin.not_modelled = vec!["cpus_run_at_once".into()];
        let results = results(vec![spin, cell("poll-wfi", "none", "elide", 78)]);
        let text = summary_sentence(&results, Scale::for_results(&results));
        assert!(
            text.contains("spin* (elide) 0.65x. A ratio with a *"),
            "{text}"
        );
    }

    #[test]
    fn a_median_of_too_few_samples_is_no_headline() {
        let mut few = cell("wfi", "none", "ipi", 90);
        few.stats.as_mut().unwrap().count = 19;
        let results = results(vec![few, cell("poll-wfi", "none", "elide", 78)]);
        let text = summary_sentence(&results, Scale::for_results(&results));
        assert!(text.ends_with("nothing else was measured."), "{text}");
    }

    #[test]
    fn what_instructions_leave_out_is_said_beside_them() {
        let mut results = results(vec![cell("wfi", "none", "ipi", 88)]);
        let text = unmodelled_costs(&results).unwrap();
        for part in ["one after another", "caches", "an exit"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("messaging"));
        results.cells[0].what.workload = Workload::Messaging;
        assert!(unmodelled_costs(&results).unwrap().contains("messaging"));
        results.unit = "cycles".into();
        assert_eq!(unmodelled_costs(&results), None);
    }

    #[test]
    fn without_the_reference_there_is_a_count() {
        let results = results(vec![cell("wfi", "none", "ipi", 1)]);
        assert_eq!(
            summary_sentence(&results, Scale::for_results(&results)),
            "Measured cells: 1, skipped: 0."
        );
    }
}
