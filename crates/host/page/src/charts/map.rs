// SPDX-License-Identifier: MIT OR Apache-2.0
//! A map: the median of each pair of CPUs, a row for each sender.

use crate::cells::Panel;
use crate::frame::{Entry, Figure, Item, Section, figure, mixed};
use crate::leading_median::By;
use crate::pairs::{self, Group};
use crate::svg::{Anchor, Canvas, WIDTH, number};

/// Shades, from the nearest to the farthest.
const SHADES: usize = 7;
const LEFT: f64 = 34.0;
const TOP: f64 = 26.0;
/// Most labels of an axis.
const LABELS: usize = 16;

/// Returns the section: a map for each kind of cells with pairs.
pub fn maps(panels: &[Panel<'_>]) -> Section {
    let drawn = panels.iter().flat_map(|panel| {
        let groups = pairs::groups(panel.cells.iter().copied());
        let maps: Vec<Item> = groups
            .iter()
            .flat_map(|group| {
                let left_out = pairs::left_out(group).map(Item::About);
                let map = map(panel, group).map(Item::Figure);
                map.into_iter().chain(left_out)
            })
            .collect();
        maps
    });
    let counted = panels.iter().any(|panel| panel.run.results.unit == "insns");
    let of_host = panels.iter().any(|panel| panel.scale.of_host);
    let caveat = match (counted, of_host) {
        (true, _) => {
            " Instructions are the same between any two CPUs: this machine models no distance."
        }
        (_, true) => " These are threads of the emulator: the map says nothing about a machine.",
        _ => "",
    };
    mixed(
        "pairs",
        "Between which CPUs",
        &format!(
            "Median of each pair: a row for each sender, a column for each receiver. What is blank was not measured, or too seldom; a \
                      round trip is measured once for both directions.{caveat}"
        ),
        drawn.collect(),
    )
}

fn map(panel: &Panel<'_>, group: &Group<'_>) -> Option<Figure> {
    let by = By::of(&group.cells);
    let medians = group.cells.iter().filter_map(|cell| {
        let value = panel.value(by.median(cell)?);
        Some((cell.what.pair.cpus(), value, cell.stats?.count))
    });
    let medians: Vec<([usize; 2], f64, u64)> = medians.collect();
    let values = || medians.iter().map(|(_, value, _)| *value);
    let (low, high) = (
        values().fold(f64::MAX, f64::min),
        values().fold(0.0, f64::max),
    );
    let cpus = 1 + medians.iter().flat_map(|(pair, ..)| *pair).max()?;
    let side = (WIDTH - LEFT - 2.0) / cpus as f64;
    let mut canvas = Canvas::new(TOP + side * cpus as f64 + 4.0);
    canvas.text((LEFT, 9.0), Anchor::Start, "tick", "receiver");
    canvas.text((LEFT - 4.0, 9.0), Anchor::End, "tick", "sender");
    for cpu in (0..cpus).step_by(cpus.div_ceil(LABELS)) {
        let at = (cpu as f64 + 0.5) * side;
        let text = cpu.to_string();
        canvas.text((LEFT + at, TOP - 4.0), Anchor::Middle, "tick", &text);
        canvas.text((LEFT - 4.0, TOP + at + 3.5), Anchor::End, "tick", &text);
    }
    for ([from, to], value, count) in &medians {
        let place = (LEFT + *to as f64 * side, TOP + *from as f64 * side);
        let class = format!("heat h{}", shade(*value, low, high));
        let hint = format!("{from} to {to}: {}, n = {count}", number(*value));
        canvas.rect(place, (side, side), &class, &hint);
    }
    let all = group.cells[0]
        .what
        .pairs(panel.run.results.machine.cpus as usize);
    let note = format!(
        "{}, p50 of {} of {} pairs",
        panel.measured(by.between()),
        medians.len(),
        all.count().max(medians.len() as u64)
    );
    let about = format!("{}: medians by sender and receiver", group.title);
    Some(figure(
        &group.title,
        &note,
        &legend(low, high, panel.unit()),
        canvas.finish(&about),
    ))
}

/// Returns the shade of a value between `low` and `high`.
fn shade(value: f64, low: f64, high: f64) -> usize {
    if high <= low {
        return 0;
    }
    ((value - low) / (high - low) * SHADES as f64).min(SHADES as f64 - 1.0) as usize
}

fn legend(low: f64, high: f64, unit: &str) -> Vec<Entry> {
    let shades = if high > low { SHADES } else { 1 };
    let bound = |n: usize| low + (high - low) * n as f64 / shades as f64;
    let entry = |n: usize| {
        let text = format!("{} to {}", number(bound(n)), number(bound(n + 1)));
        (
            format!("heat h{n}"),
            text,
            if n + 1 == shades {
                unit.into()
            } else {
                String::new()
            },
        )
    };
    (0..shades).map(entry).collect()
}
