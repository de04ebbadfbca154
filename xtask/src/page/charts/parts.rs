// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts of what a whole is made of: stages, exits, residency.

use std::collections::BTreeSet;

use maud::Markup;

use crate::page::cells::{Panel, path, waiting};
use crate::page::frame::{Entry, figure};
use crate::page::stacks::{self, Row, Stack};
use crate::results::{Cell, Counts};

/// Colours in the order in which names take them.
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
/// The part that nothing accounts for.
const REST: (&str, &str) = ("c-rest", "rest");
/// Orders in which names are shown; others follow.
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

/// Stages of each cell that has any.
pub fn stages(panel: &Panel<'_>) -> Option<Markup> {
    let cells = with(panel, |cell| !cell.stages.is_empty());
    // In the order of the first cell that has them: that of the wake-up.
    let mut names: Vec<String> = Vec::new();
    for stage in cells.iter().flat_map(|cell| &cell.stages) {
        if !names.contains(&stage.name) {
            names.push(stage.name.clone());
        }
    }
    let mut overlapping = 0;
    let rows = rows(&cells, |cell| {
        let parts = names.iter().enumerate().filter_map(|(index, name)| {
            let stage = cell.stages.iter().find(|stage| stage.name == *name)?;
            Some((colour(index), name.clone(), panel.value(stage.stats.p50)))
        });
        let mut parts: Parts = parts.collect();
        let whole = panel.value(cell.stats?.p50);
        let sum: f64 = parts.iter().map(|part| part.2).sum();
        if sum < whole {
            parts.push((REST.0, REST.1.into(), whole - sum));
        } else if sum > whole * 1.02 {
            overlapping += 1;
        }
        Some((parts, Some(whole)))
    });
    let mut note = format!("p50, {}, {}", panel.measure(), Panel::samples(cells.iter()));
    if overlapping > 0 {
        note = format!(
            "{note}; in {overlapping} cells the stages overlap and sum up to more than the whole"
        );
    }
    draw(
        panel,
        rows,
        &legend(&names),
        (panel.unit(), &note),
        "stages",
    )
}

/// Exits by cause.
pub fn exits(panel: &Panel<'_>) -> Option<Markup> {
    let cells = with(panel, |cell| cell.under != "none" && !cell.exits.is_empty());
    let names = names(&cells, &EXITS, |cell| &cell.exits);
    let wakes = wakes_per_sample(panel.cells[0]);
    let rows = rows(&cells, |cell| {
        let parts = names.iter().enumerate().map(|(index, name)| {
            let exits = cell.per_sample(&cell.exits, name) / wakes;
            (colour(index), name.clone(), exits)
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
        Panel::samples(cells.iter())
    );
    draw(
        panel,
        without_empty_paths(rows),
        &legend(&names),
        ("exits per wake-up", &note),
        "exits by cause",
    )
}

/// Residency by state.
pub fn residency(panel: &Panel<'_>) -> Option<Markup> {
    let cells = with(panel, |cell| cell.residency.values().sum::<u64>() > 0);
    let names = names(&cells, &RESIDENCY, |cell| &cell.residency);
    let rows = rows(&cells, |cell| {
        let sum = cell.residency.values().sum::<u64>() as f64;
        let parts = names.iter().enumerate().map(|(index, name)| {
            let part = cell.residency.get(name).copied().unwrap_or(0) as f64;
            (colour(index), name.clone(), part * 100.0 / sum)
        });
        Some((parts.collect(), None))
    });
    let note = format!(
        "per cent of the time of all CPUs, {}",
        Panel::samples(cells.iter())
    );
    draw(
        panel,
        rows,
        &legend(&names),
        ("%", &note),
        "residency by state",
    )
}

/// Wake-ups that one sample of a workload has.
fn wakes_per_sample(cell: &Cell) -> f64 {
    if cell.workload == "pingpong" {
        2.0
    } else {
        1.0
    }
}

fn with<'r>(panel: &Panel<'r>, has: impl Fn(&Cell) -> bool) -> Vec<&'r Cell> {
    let (cells, _) = panel.plain();
    cells.into_iter().filter(|cell| has(cell)).collect()
}

/// Names of counters that are not zero everywhere, in a known order.
fn names(cells: &[&Cell], order: &[&str], of: impl Fn(&Cell) -> &Counts) -> Vec<String> {
    let counted: BTreeSet<&String> = cells
        .iter()
        .flat_map(|cell| {
            of(cell)
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(name, _)| name)
        })
        .collect();
    let known = order.iter().map(|name| (*name).to_owned());
    let others = counted
        .iter()
        .filter(|name| !order.contains(&name.as_str()));
    let others = others.map(|name| (*name).clone()).collect::<Vec<_>>();
    known
        .filter(|name| counted.contains(name))
        .chain(others)
        .collect()
}

/// A stack for each cell, below the path that it shares with others.
fn rows(cells: &[&Cell], mut parts: impl FnMut(&Cell) -> Option<(Parts, Option<f64>)>) -> Vec<Row> {
    let mut paths: Vec<String> = Vec::new();
    for cell in cells {
        if !paths.contains(&path(cell)) {
            paths.push(path(cell));
        }
    }
    let mut rows = Vec::new();
    for of in paths {
        rows.push(Row::Heading(of.clone()));
        for cell in cells.iter().filter(|cell| path(cell) == of) {
            let (wait, trap) = waiting(cell);
            let label = format!("{wait} {trap}").trim_end().to_owned();
            if let Some((parts, whole)) = parts(cell) {
                rows.push(Row::Stack(Stack {
                    label,
                    parts,
                    whole,
                }));
            }
        }
    }
    rows
}

/// A path on which no cell has anything takes one line.
fn without_empty_paths(rows: Vec<Row>) -> Vec<Row> {
    let mut kept: Vec<Row> = Vec::new();
    let mut rows = rows.into_iter().peekable();
    while let Some(row) = rows.next() {
        let Row::Heading(path) = row else {
            continue;
        };
        let stacks: Vec<Row> =
            std::iter::from_fn(|| rows.next_if(|row| matches!(row, Row::Stack(_)))).collect();
        let empty = |row: &Row| matches!(row, Row::Stack(stack) if stack.sum() == 0.0);
        if stacks.iter().all(empty) {
            kept.push(Row::Heading(format!("{path}: none")));
        } else {
            kept.push(Row::Heading(path));
            kept.extend(stacks);
        }
    }
    kept
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

fn legend(names: &[String]) -> Vec<Entry> {
    let entries = names.iter().enumerate();
    entries
        .map(|(index, name)| {
            (
                format!("fill {}", colour(index)),
                name.clone(),
                String::new(),
            )
        })
        .collect()
}

fn draw(
    panel: &Panel<'_>,
    rows: Vec<Row>,
    legend: &[Entry],
    (unit, note): (&str, &str),
    what: &str,
) -> Option<Markup> {
    if legend.is_empty() {
        return None;
    }
    let about = format!("{}: {what}", panel.title);
    Some(figure(
        &panel.title,
        note,
        legend,
        stacks::chart(&rows, unit, &about),
    ))
}
