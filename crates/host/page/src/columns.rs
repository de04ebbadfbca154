// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns of the table: the words of a cell, its statistics, its events.

use std::collections::BTreeSet;

use plan::{DIMENSIONS, Info, Place, Show, Under};
use results::{Cell, Counts, Stats};

use crate::column::{Column, NONE, TOO_FEW, UNKNOWN, format_rate};
use crate::layer_costs;
use crate::neighbours;
use crate::path;
use crate::scale::Scale;

/// Causes of exits that have a column of their own. The column `other` sums up the remaining causes.
const CAUSES: [&str; 4] = ["wfi", "wfe", "sgi", "irq"];

/// Returns the columns for cells of one workload.
pub fn columns_of_cells(cells: &[&Cell], scale: Scale) -> Vec<Column> {
    let mut columns = word_columns(cells);
    columns.extend(system_columns(cells));
    columns.extend(limit_columns(cells));
    columns.extend(stream_period_column(cells));
    columns.extend(passes_column(cells));
    columns.push(samples_column(cells));
    columns.extend(path::path_columns(cells));
    columns.extend(statistics_columns(cells, scale));
    columns.extend(layer_costs::cost_columns(cells, scale));
    for cause in CAUSES {
        columns.push(exits_column(cells, cause, &|name| name == cause));
    }
    let is_other = |name: &str| !CAUSES.contains(&name);
    columns.push(exits_column(cells, "other", &is_other));
    let counts = |group, title: &str, of: &dyn Fn(&Cell) -> u64| {
        let texts = cells.iter().map(|cell| format_made_rate(cell, of(cell)));
        Column::numbers(group, title, texts.collect())
    };
    let count = |counts: Option<&Counts>, name: &str| {
        counts
            .and_then(|counts| counts.get(name))
            .copied()
            .unwrap_or(0)
    };
    for kind in ["sent", "elided"] {
        columns.push(counts("IPIs/op", kind, &|cell| {
            count(Some(&cell.ipis), kind)
        }));
    }
    columns.push(counts("guest/op", "irqs", &|cell| {
        count(cell.counters.get("irq"), "taken")
    }));
    columns.push(counts("guest/op", "timeouts", &|cell| {
        count(Some(&cell.wakes), "timeout")
    }));
    columns.extend(linux_columns(cells));
    columns.extend(load_columns(cells));
    columns.extend(noise_column(cells));
    columns.extend(neighbours::columns(cells, scale));
    match path::all_have_paths(cells) {
        true => columns.extend(path::level_columns(cells)),
        false => columns.extend(residency_columns(cells)),
    }
    columns.extend(energy_column(cells));
    columns
}

/// Whether `cell` has no known exits.
fn has_no_known_exits(cell: &Cell) -> bool {
    cell.exits_of_samples().values().all(|count| *count == 0)
}

/// Returns the exits per sample, counting only the causes that `is` accepts. The text is `?` if the layer below the
/// guest does not count exits, and `-` if there is no layer below the guest.
fn exits_column(cells: &[&Cell], title: &str, is: &dyn Fn(&str) -> bool) -> Column {
    let texts = cells.iter().map(|cell| {
        let counted = cell.exits_of_samples().iter();
        let of_causes = counted.filter(|(cause, _)| is(cause));
        let sum = of_causes.map(|(_, count)| count).sum();
        match cell.divided_samples() {
            _ if !cell.has_exit_counts() => UNKNOWN.into(),
            // On the bare machine, no layer below the guest could count exits, and 0 would look like a count.
            _ if cell.under == Under::None && has_no_known_exits(cell) => NONE.into(),
            Some(seen) => format_rate(sum as f64 / (seen.samples + seen.unclear).max(1) as f64),
            None => format_made_rate(cell, sum),
        }
    });
    Column::numbers("exits/op", title, texts.collect())
}

/// Formats a count per sample, although the counter also covers the ends of blocks. If the count is a multiple of the
/// number of wake-ups, the quotient is shown, which is then the number per sample. Otherwise, an upper bound on the
/// samples' average is shown, marked by `≤`. On Linux, the wake-ups before a block's first sample are like the samples,
/// so the average over all wake-ups is shown.
fn format_made_rate(cell: &Cell, count: u64) -> String {
    let samples = cell.stats.map_or(0, |stats| stats.count).max(1);
    let made = cell.made.max(samples);
    let [of_all, at_most] = [made, samples].map(|of| format_rate(count as f64 / of as f64));
    let alike = cell.what.workload.is_linux() || count.is_multiple_of(made);
    match alike || of_all == at_most {
        true => of_all,
        false => format!("≤{at_most}"),
    }
}

/// Returns columns of Linux's counters, if Linux is the guest.
fn linux_columns(cells: &[&Cell]) -> Vec<Column> {
    /// Titles of columns, with the names of their counters.
    const SHOWN: [(&str, &str); 3] = [
        ("switches", "switches"),
        ("timers", "timer"),
        ("resched", "resched"),
    ];
    let of = |cell: &Cell, name| {
        let counts = cell.counters.get("linux");
        counts.map_or(0.0, |counts| cell.per_sample(counts, name))
    };
    let shown = SHOWN
        .iter()
        .filter(|_| cells.iter().any(|cell| cell.counters.contains_key("linux")));
    shown
        .map(|(title, name)| {
            let texts = cells.iter().map(|cell| format_rate(of(cell, name)));
            Column::numbers("Linux/op", title, texts.collect())
        })
        .collect()
}

/// For requests that arrive at set times, returns the reached share of the requested load, and the longest queue.
fn load_columns(cells: &[&Cell]) -> Vec<Column> {
    let column = |title, of: &dyn Fn(&Cell) -> Option<String>| {
        let texts = cells.iter().map(|cell| of(cell).unwrap_or("·".into()));
        Column::numbers("load", title, texts.collect())
    };
    if cells.iter().all(|cell| cell.load_reached().is_none()) {
        return Vec::new();
    }
    let reached = column("reached %", &|cell| {
        Some(format!("{:.1}", cell.load_reached()? * 100.0))
    });
    let queue = column("queue", &|cell| {
        let load = cell.counters.get("arrivals")?;
        Some(load.get("longest-queue")?.to_string())
    });
    vec![reached, queue]
}

/// Returns a column with the rounds of noise per operation, if any noise was requested.
fn noise_column(cells: &[&Cell]) -> Option<Column> {
    let rounds = |cell: &Cell| {
        let noise = cell.counters.get("noise");
        noise.map_or(0.0, |counts| cell.per_sample(counts, "rounds"))
    };
    let any = cells.iter().any(|cell| cell.counters.contains_key("noise"));
    let texts = cells.iter().map(|cell| format_rate(rounds(cell)));
    any.then(|| Column::numbers("noise/op", "rounds", texts.collect()))
}

/// Returns the column of the energy per wake-up according to the energy model, if any cell has an energy value.
fn energy_column(cells: &[&Cell]) -> Option<Column> {
    let texts = cells.iter().map(|cell| match &cell.energy_model {
        Some(model) => format!("{:.2}", model.uj_per_wakeup),
        None => "·".into(),
    });
    let any = cells.iter().any(|cell| cell.energy_model.is_some());
    any.then(|| Column::numbers("model", "uJ/wake-up", texts.collect()))
}

/// Returns columns with the percentage of the samples' time that the CPUs spent in each state, if any cell has such
/// times. If there are samples with time stamps, also returns the ratio of their length to that of other samples.
fn residency_columns(cells: &[&Cell]) -> Vec<Column> {
    let names: BTreeSet<&String> = cells
        .iter()
        .flat_map(|cell| cell.residency.keys())
        .collect();
    let column = |name: &&String| {
        let texts = cells.iter().map(|cell| {
            let sum: u64 = cell.residency.values().sum();
            let part = cell.residency.get(*name).copied().unwrap_or(0);
            match sum {
                0 => "·".into(),
                _ => format!("{:.1}", part as f64 * 100.0 / sum as f64),
            }
        });
        Column::numbers("time %", name, texts.collect())
    };
    let mut columns: Vec<Column> = names.iter().map(column).collect();
    let stamps = cells.iter().map(|cell| match cell.distortion() {
        Some(times) if !cell.residency.is_empty() => format!("{times:.2}x"),
        _ => "·".into(),
    });
    let stamps: Vec<String> = stamps.collect();
    if stamps.iter().any(|text| text != "·") {
        columns.push(Column::numbers("time %", "stamps", stamps));
    }
    columns
}

/// Returns the columns of words: the hypervisor, and the dimensions that are shown as words. Some of them appear only
/// if they distinguish cells.
fn word_columns(cells: &[&Cell]) -> Vec<Column> {
    let under = cells.iter().map(|cell| cell.under.to_string()).collect();
    let mut columns: Vec<Column> = column_if_varied("under", under).into_iter().collect();
    let is_linux = cells.iter().all(|cell| cell.what.workload.is_linux());
    for info in DIMENSIONS.iter().filter(|info| info.place != Place::System) {
        let texts: Vec<String> = cells.iter().map(|cell| marked_value(cell, info)).collect();
        columns.extend(match info.show {
            Show::Title | Show::Sweep { .. } => None,
            // Linux makes this decision itself, so it is not a choice of the user, and has no column.
            Show::Column if is_linux && !cells.iter().any(|cell| info.applies(&cell.what)) => None,
            Show::Column => Some(Column::words(info.key, texts)),
            Show::IfDifferent | Show::Special(_) => column_if_varied(info.key, texts),
        });
    }
    if is_linux {
        let texts = cells.iter().map(|cell| cell.idles_by.clone());
        columns.push(Column::words("idles by", texts.collect()));
    }
    columns
}

/// Returns the dimensions of the system that distinguish cells, sorted by name.
fn system_columns(cells: &[&Cell]) -> Vec<Column> {
    let system = DIMENSIONS.iter().filter(|info| info.place == Place::System);
    let mut system: Vec<&Info> = system.collect();
    system.sort_unstable_by_key(|info| info.key);
    let columns = system.into_iter().filter_map(|info| {
        let texts = cells.iter().map(|cell| match cell.dimension_text(info) {
            text if text.is_empty() => "-".into(),
            text => text,
        });
        column_if_varied(info.key, texts.collect())
    });
    columns.collect()
}

/// Returns a column, but only if its texts differ.
fn column_if_varied(title: &str, texts: Vec<String>) -> Option<Column> {
    let differ = texts.windows(2).any(|pair| pair[0] != pair[1]);
    differ.then(|| Column::words(title, texts))
}

/// Mark of a wait that depends on a property that the machine does not model.
pub const MARK: &str = "*";

/// Mark of a wait that was measured while the core's clock frequency changed.
pub const MOVED: &str = "~";

/// Mark of a wait whose median is only a few steps of the counter.
pub const COARSE: &str = "^";

/// Mark of a cell with few samples, because each sample took a long time.
pub const FEWER: &str = "<";

/// Returns a column with each cell's number of passes, if any cell was cut short.
fn passes_column(cells: &[&Cell]) -> Option<Column> {
    let text = |cell: &&Cell| cell.passes_text();
    let any = cells.iter().any(|cell| cell.is_part());
    any.then(|| Column::numbers("", "passes", cells.iter().map(text).collect()))
}

fn marked_value(cell: &Cell, info: &Info) -> String {
    let word = cell.dimension_text(info);
    let marks = [
        (!cell.not_modelled.is_empty(), MARK),
        (cell.core_clock_moved.is_some(), MOVED),
        (cell.counter_coarse.is_some(), COARSE),
    ];
    let marks = marks.into_iter().filter(|_| info.key == "wait");
    marks.fold(word, |word, (is, mark)| word + if is { mark } else { "" })
}

/// Returns the columns of limits and pauses, in microseconds, that apply to any of the cells.
fn limit_columns(cells: &[&Cell]) -> Vec<Column> {
    let columns = DIMENSIONS.iter().filter_map(|info| {
        let Show::Sweep { column, .. } = info.show else {
            return None;
        };
        let texts = cells.iter().map(|cell| cell.dimension_text(info));
        let texts: Vec<String> = texts
            .map(|text| match text.as_str() {
                "" | "0" => "-".into(),
                _ => text,
            })
            .collect();
        let any = texts.iter().any(|text| text != "-");
        any.then(|| Column::numbers("us", column, texts))
    });
    columns.collect()
}

/// Returns the column with the event stream's actual period, if the workload measures it.
fn stream_period_column(cells: &[&Cell]) -> Option<Column> {
    let subject = |cell: &Cell| cell.event_stream_made_ns != 0 && cell.what.workload.is_alone();
    let texts = cells.iter().map(|cell| match cell.event_stream_made_ns {
        0 => "-".into(),
        ns => format!("{:.1}", ns as f64 / 1e3),
    });
    let any = cells.iter().any(|cell| subject(cell));
    any.then(|| Column::numbers("us", "made", texts.collect()))
}

/// A percentile: its column's title, its rank in per mille, and the function that returns its value.
type Percentile = (&'static str, u64, fn(&Stats) -> u64);

const PERCENTILES: [Percentile; 4] = [
    ("p50", 500, |stats| stats.p50),
    ("p90", 900, |stats| stats.p90),
    ("p99", 990, |stats| stats.p99),
    ("p99.9", 999, |stats| stats.p999),
];

/// Returns a column with each cell's number of samples.
fn samples_column(cells: &[&Cell]) -> Column {
    let count = |cell: &&Cell| {
        let count = cell.stats.map(|stats| stats.count.to_string());
        let mark = if cell.ran_out_of_time() { FEWER } else { "" };
        format!("{}{mark}", count.unwrap_or_default())
    };
    Column::numbers("", "n", cells.iter().map(count).collect())
}

fn statistics_columns(cells: &[&Cell], scale: Scale) -> Vec<Column> {
    let group = match path::all_have_paths(cells) {
        true => path::WORK,
        false => "",
    };
    let column = |title: &str, show: &dyn Fn(&Stats, Scale) -> String| {
        let texts = cells.iter().map(|cell| {
            let stats = cell.stats.as_ref();
            let shown = stats.map(|stats| show(stats, scale.for_cell(cell)));
            shown.unwrap_or_default()
        });
        Column::numbers(group, title, texts.collect())
    };
    let mut columns = Vec::new();
    let is_blind =
        |cell: &&Cell| cell.what.workload.median_hides_wake_ups() || cell.counter_coarse.is_some();
    if cells.iter().any(is_blind) {
        columns.push(column("mean", &|stats, scale| {
            scale.show_value(stats.mean.round() as u64)
        }));
    }
    columns.push(column("min", &|stats, scale| scale.show_value(stats.min)));
    let shown = if scale.of_host { 1 } else { PERCENTILES.len() };
    for &(title, per_mille, of) in &PERCENTILES[..shown] {
        let supported = |cell: &&&Cell| cell.stats.is_some_and(|stats| stats.supports(per_mille));
        if cells.iter().any(|cell| supported(&cell)) {
            let column = column(title, &|stats, scale| match stats.supports(per_mille) {
                true => scale.show_percentile(of(stats), stats.bounds()),
                false => TOO_FEW.into(),
            });
            columns.push(match title {
                "p50" => column.result(),
                _ => column,
            });
        }
    }
    if !scale.of_host {
        columns.push(column("max", &|stats, scale| scale.show_value(stats.max)));
    }
    columns
}

#[cfg(test)]
mod tests;
