// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts that divide a whole into parts: stages, exits, residency.

use std::collections::BTreeSet;

use plan::Under;
use results::{Cell, Counts};

use crate::cells::{Panel, path_name, wait_text};
use crate::curves::value_range;
use crate::frame::Entry;
use crate::stacks::{Chart, Stack, StackRow, Stacks};

/// Colours of the parts, in the order of the parts' names.
const COLOURS: [&str; 9] = [
    "c-blue",
    "c-orange",
    "c-green",
    "c-red",
    "c-sky",
    "c-purple",
    "c-green-light",
    "c-grey",
    "c-ink",
];
/// Colour and name of the remaining part.
const REST: (&str, &str) = ("c-rest", "rest");
/// Usual orders of the parts' names. Names that are not listed come last.
const EXITS: [&str; 9] = [
    "wfi",
    "wfe",
    "sgi",
    "irq",
    "maintenance",
    "sysreg",
    "hvc",
    "smc",
    "mmio",
];
const RESIDENCY: [&str; 4] = ["run", "poll", "wfi", "el2"];

type Parts = Vec<(&'static str, String, f64)>;

/// The largest acceptable ratio of the median of samples with time stamps to the median without. Beyond this ratio, the
/// parts mainly show the cost of the stamps.
const DISTORTED: f64 = 2.0;

/// Returns a chart with the stages of each cell that has them. The stages are from the cell's samples with time stamps.
/// Returns only a sentence if the stamps lengthen these samples too much.
pub fn stages_chart(panel: &Panel<'_>) -> Option<Chart> {
    let cells = cells_with(panel, |cell| cell.stages().next().is_some());
    let times = cells.iter().filter_map(|cell| cell.distortion());
    let [least, most] = value_range(times);
    if least > DISTORTED && most > 0.0 {
        return Some(Chart::About(format!(
            "{}: no stages, since samples with time stamps are {least:.1} to {most:.1} times as long as others; the table \
             below has them.",
            panel.title
        )));
    }
    let names = stage_names(&cells);
    let mut overlapping = 0;
    let rows = stack_rows(&cells, |cell| {
        let parts = names.iter().enumerate().filter_map(|(index, name)| {
            let stage = cell.stages().find(|stage| stage.name == *name)?;
            Some((
                colour_class(index),
                name.clone(),
                panel.shown_value(stage.stats.p50),
            ))
        });
        let mut parts: Parts = parts.collect();
        let total = cell.stats?.p50;
        let whole = panel.shown_value(
            cell.stamped_stage()
                .map_or(total, |stamped| stamped.stats.p50),
        );
        let sum: f64 = parts.iter().map(|part| part.2).sum();
        if sum < whole {
            parts.push((REST.0, REST.1.into(), whole - sum));
        } else if sum > whole * 1.02 {
            overlapping += 1;
        }
        Some((parts, Some(panel.shown_value(total))))
    });
    let mut note = format!("p50, {}, {}", panel.value_label(), sample_counts(&cells));
    if overlapping > 0 {
        note = format!("{note}; in {overlapping} cells the medians of the stages sum up to more");
    }
    draw_chart(
        panel,
        rows,
        &legend(&names),
        (panel.unit(), &note),
        "stages",
    )
}

/// Returns the names of the stages in the order of a wake-up, which the cell with the most stages determines.
pub fn stage_names(cells: &[&Cell]) -> Vec<String> {
    let longest = cells.iter().max_by_key(|cell| cell.stages().count());
    let mut names: Vec<String> = Vec::new();
    for stage in longest
        .into_iter()
        .chain(cells)
        .flat_map(|cell| cell.stages())
    {
        if !names.contains(&stage.name) {
            names.push(stage.name.clone());
        }
    }
    names
}

/// Returns a chart of the time at EL2 by cause of exit, from the samples with time stamps.
pub fn el2_time_chart(panel: &Panel<'_>) -> Option<Chart> {
    let time = |cell: &Cell| cell.counters.get("time").cloned().unwrap_or_default();
    // Counters of time are always in ticks.
    let shown = |cell: &Cell, ticks| panel.scale.for_cell(cell).convert_ticks(ticks);
    // The stamps add instructions to a sample, so its parts are not shown if values are instructions.
    let cells = cells_with(panel, |cell| {
        let known = cell.unit != "insns" && shown(cell, 1).is_some();
        known && stamped_samples(cell) > 0 && time(cell).values().sum::<u64>() > 0
    });
    let counts: Vec<Counts> = cells.iter().map(|cell| time(cell)).collect();
    let names = order_names(&EXITS, counts.iter());
    let wakes = f64::from(panel.cells[0].what.workload.wakeups());
    let rows = stack_rows(&cells, |cell| {
        let samples = stamped_samples(cell) as f64 * wakes;
        let times = time(cell);
        let parts = names.iter().enumerate().map(|(index, name)| {
            let ticks = times.get(name).copied().unwrap_or(0);
            let shown = shown(cell, ticks).unwrap_or(0.0);
            (colour_class(index), name.clone(), shown / samples)
        });
        Some((parts.collect(), None))
    });
    let unit = format!("{} per wake-up", panel.unit());
    let note = format!(
        "mean {unit} at EL2 by cause, {}{}",
        sample_counts(&cells),
        distortion_text(&cells)
    );
    draw_chart(panel, rows, &legend(&names), (&unit, &note), "time at EL2")
}

/// Returns the cells with known exits.
fn cells_with_exits<'r>(panel: &Panel<'r>) -> Vec<&'r Cell> {
    cells_with(panel, |cell| {
        cell.under == Under::Rouse && !cell.exits_of_samples().is_empty()
    })
}

/// Returns every cause of exits that occurs.
pub fn exit_causes(panel: &Panel<'_>) -> Vec<String> {
    counter_names(&cells_with_exits(panel), &EXITS, Cell::exits_of_samples)
}

/// Returns a chart of the exits by cause.
pub fn exits_chart(panel: &Panel<'_>) -> Option<Chart> {
    let cells = cells_with_exits(panel);
    let names = exit_causes(panel);
    let wakes = f64::from(panel.cells[0].what.workload.wakeups());
    let rows = stack_rows(&cells, |cell| {
        let parts = names.iter().enumerate().map(|(index, name)| {
            let exits = cell.exits_per_sample(name) / wakes;
            (colour_class(index), name.clone(), exits)
        });
        Some((parts.collect(), None))
    });
    let divided = if wakes == 1.0 {
        ""
    } else {
        ", two wake-ups a round trip"
    };
    let note = format!(
        "exits per wake-up{divided}, {}",
        Panel::sample_counts(cells.iter())
    );
    draw_chart(
        panel,
        without_empty_paths(rows),
        &legend(&names),
        ("exits per wake-up", &note),
        "exits by cause",
    )
}

/// Returns a chart of the residency by state.
pub fn residency_chart(panel: &Panel<'_>) -> Option<Chart> {
    let cells = cells_with(panel, |cell| cell.residency.values().sum::<u64>() > 0);
    let names = counter_names(&cells, &RESIDENCY, |cell| &cell.residency);
    let rows = stack_rows(&cells, |cell| {
        let sum = cell.residency.values().sum::<u64>() as f64;
        let parts = names.iter().enumerate().map(|(index, name)| {
            let part = cell.residency.get(name).copied().unwrap_or(0) as f64;
            (colour_class(index), name.clone(), part * 100.0 / sum)
        });
        Some((parts.collect(), None))
    });
    let note = format!(
        "of all CPUs within samples, {}{}",
        sample_counts(&cells),
        distortion_text(&cells)
    );
    draw_chart(
        panel,
        rows,
        &legend(&names),
        ("%", &note),
        "residency by state",
    )
}

/// Returns the number of samples whose time stamps show in which state the CPUs spent their time.
fn stamped_samples(cell: &Cell) -> u64 {
    let counts = cell.counters.get("stamped");
    let samples = counts.and_then(|counts| counts.get("samples"));
    samples.copied().unwrap_or(0)
}

/// Describes the ratio of the medians of samples with and without stamps, as a range over the cells.
fn distortion_text(cells: &[&Cell]) -> String {
    let times = cells.iter().filter_map(|cell| cell.distortion());
    let (least, most) = times.fold((f64::MAX, 0.0_f64), |(least, most), times| {
        (least.min(times), most.max(times))
    });
    match most {
        0.0 => String::new(),
        _ => format!(", whose medians are {least:.2} to {most:.2} times those without"),
    }
}

/// Describes how many samples have stages. The stages come from the samples with time stamps, which are separate from
/// the measured samples.
fn sample_counts(cells: &[&Cell]) -> String {
    let most = |cell: &&Cell| cell.stages.iter().map(|stage| stage.stats.count).max();
    let counts: Vec<u64> = cells.iter().filter_map(most).collect();
    let stamped = cells.iter().any(|cell| cell.stamped_stage().is_some());
    let what = if stamped { " samples with stamps" } else { "" };
    match (counts.iter().min(), counts.iter().max()) {
        (Some(least), Some(most)) if least == most => format!("n = {most}{what}"),
        (Some(least), Some(most)) => format!("n = {least} to {most}{what}"),
        _ => Panel::sample_counts(cells.iter()),
    }
}

pub fn cells_with<'r>(panel: &Panel<'r>, has: impl Fn(&Cell) -> bool) -> Vec<&'r Cell> {
    let (cells, _) = panel.unswept_cells();
    cells.into_iter().filter(|cell| has(cell)).collect()
}

/// Returns the names of the counters that are above zero in at least one cell, in the usual order.
fn counter_names(cells: &[&Cell], order: &[&str], of: impl Fn(&Cell) -> &Counts) -> Vec<String> {
    order_names(order, cells.iter().map(|cell| of(cell)))
}

fn order_names<'c>(order: &[&str], counts: impl Iterator<Item = &'c Counts>) -> Vec<String> {
    let counted = counts.flat_map(|counts| counts.iter().filter(|(_, count)| **count > 0));
    let counted: BTreeSet<&str> = counted.map(|(name, _)| name.as_str()).collect();
    let known = order.iter().copied().filter(|name| counted.contains(name));
    let others = counted.iter().copied().filter(|name| !order.contains(name));
    known.chain(others).map(str::to_owned).collect()
}

/// Returns a stack for each cell. Cells with the same path share a heading that names the path.
pub fn stack_rows(
    cells: &[&Cell],
    mut parts: impl FnMut(&Cell) -> Option<(Parts, Option<f64>)>,
) -> Vec<StackRow> {
    let mut paths: Vec<String> = Vec::new();
    for cell in cells {
        if !paths.contains(&path_name(cell)) {
            paths.push(path_name(cell));
        }
    }
    let mut rows = Vec::new();
    for of in paths {
        rows.push(StackRow::Heading(of.clone()));
        for cell in cells.iter().filter(|cell| path_name(cell) == of) {
            let label = wait_text(cell);
            if let Some((parts, whole)) = parts(cell) {
                rows.push(StackRow::Stack(Stack {
                    label,
                    parts,
                    whole,
                }));
            }
        }
    }
    rows
}

/// Removes the stacks of each path in which no cell has a part above 0, and says so in the path's heading.
fn without_empty_paths(rows: Vec<StackRow>) -> Vec<StackRow> {
    let mut kept: Vec<StackRow> = Vec::new();
    let mut rows = rows.into_iter().peekable();
    while let Some(row) = rows.next() {
        let StackRow::Heading(path) = row else {
            continue;
        };
        let stacks: Vec<StackRow> =
            std::iter::from_fn(|| rows.next_if(|row| matches!(row, StackRow::Stack(_)))).collect();
        let empty = |row: &StackRow| matches!(row, StackRow::Stack(stack) if stack.sum() == 0.0);
        if stacks.iter().all(empty) {
            kept.push(StackRow::Heading(format!("{path}: none")));
        } else {
            kept.push(StackRow::Heading(path));
            kept.extend(stacks);
        }
    }
    kept
}

pub fn colour_class(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

pub fn legend(names: &[String]) -> Vec<Entry> {
    let entries = names.iter().enumerate();
    entries
        .map(|(index, name)| {
            (
                format!("fill {}", colour_class(index)),
                name.clone(),
                String::new(),
            )
        })
        .collect()
}

pub fn draw_chart(
    panel: &Panel<'_>,
    rows: Vec<StackRow>,
    legend: &[Entry],
    (unit, note): (&str, &str),
    what: &str,
) -> Option<Chart> {
    (!legend.is_empty()).then(|| {
        Chart::Stacks(Stacks {
            caption: panel.title.clone(),
            note: note.into(),
            legend: legend.to_vec(),
            rows,
            unit: unit.into(),
            about: format!("{}: {what}", panel.title),
        })
    })
}
