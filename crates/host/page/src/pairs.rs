// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells that differ only in their pair of CPUs: which pair is nearest, and the effect of the distance in affinity.

use plan::{Pair, Under};
use results::{Cell, Results, Stats};

use crate::scale::{Scale, shown_median};

/// If at least 12 pairs were measured, tables show only one of them.
pub const MANY: usize = 12;

/// Cells that differ only in their pair of CPUs.
#[derive(Debug)]
pub struct Group<'c> {
    /// Title of the cells, without the pair.
    pub title: String,
    key: (Under, plan::Cell, &'c str),
    /// The cells, in their order.
    pub cells: Vec<&'c Cell>,
}

/// Returns groups of measured cells that differ only in their pair. Leaves out groups with only one pair.
pub fn group_by_kind<'c>(cells: impl Iterator<Item = &'c Cell>) -> Vec<Group<'c>> {
    let mut groups: Vec<Group<'c>> = Vec::new();
    for cell in cells.filter(|cell| cell.what.has_pair() && cell.stats.is_some()) {
        let pair = Pair::FIRST;
        let key = (
            cell.under,
            plan::Cell { pair, ..cell.what },
            cell.run.as_str(),
        );
        // Cells of one group are usually consecutive, so the latest group is tried first.
        let known = groups.iter_mut().rev().find(|group| group.key == key);
        match known {
            Some(group) => group.cells.push(cell),
            None => groups.push(Group {
                title: format!("{} under {}", key.1.title(), cell.under),
                key,
                cells: vec![cell],
            }),
        }
    }
    groups.retain(|group| group.cells.len() > 1);
    groups
}

/// If a group has `many` pairs or more, drops all of its cells except the first.
pub fn drop_further_pairs<'c>(cells: &[&'c Cell], many: usize) -> Vec<&'c Cell> {
    let groups = group_by_kind(cells.iter().copied());
    let many = groups.iter().filter(|group| group.cells.len() >= many);
    let left: Vec<&Cell> = many.flat_map(|group| &group.cells[1..]).copied().collect();
    let is_left = |cell: &&&Cell| !left.iter().any(|other| std::ptr::eq(**cell, *other));
    match left.is_empty() {
        true => cells.to_vec(),
        false => cells.iter().filter(is_left).copied().collect(),
    }
}

/// Returns the highest affinity level in which the sender and the receiver differ, 0 to 3.
fn affinity_level(cell: &Cell) -> Option<usize> {
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let differ = number(&cell.sender)? ^ number(&cell.receiver)?;
    // Aff3 is in bits 39 to 32, and Aff2 to Aff0 are in bits 23 to 0 (DDI 0487K.a, MPIDR_EL1).
    let fields = [differ, differ >> 8, differ >> 16, differ >> 32];
    fields.iter().rposition(|field| field & 0xff != 0)
}

/// Describes which cells of `group` are missing from the map, and why. `None` if none is missing.
pub fn left_out_note(group: &Group<'_>) -> Option<String> {
    let cells = group.cells.iter();
    let few = cells.filter(|cell| shown_median(cell).is_none()).count();
    let of = group.cells.len();
    let needed = Stats::samples_needed(500);
    let why = format!("too few for a median: use --iterations {needed} or more");
    match few {
        0 => None,
        few if few == of => Some(format!(
            "{}: no map, since none of {of} pairs has {needed} samples, {why}.",
            group.title
        )),
        few => Some(format!(
            "{}: {few} of {of} pairs are blank in the map, with less than {needed} samples, {why}.",
            group.title
        )),
    }
}

/// Describes the groups of a run, one per line. A further line per affinity level shows the effect of the distance.
pub fn pair_lines(results: &Results, scale: Scale) -> Vec<String> {
    let groups = group_by_kind(results.cells.iter());
    groups
        .iter()
        .flat_map(|group| group_lines(group, results, scale))
        .collect()
}

fn group_lines(group: &Group<'_>, results: &Results, scale: Scale) -> Vec<String> {
    let mut medians: Vec<(u64, &Cell)> = Vec::new();
    medians.extend(
        group
            .cells
            .iter()
            .filter_map(|cell| Some((shown_median(cell)?, *cell))),
    );
    medians.sort_by_key(|(median, _)| *median);
    let left_out = left_out_note(group);
    let (Some(nearest), Some(farthest)) = (medians.first(), medians.last()) else {
        return Vec::from_iter(left_out);
    };
    let shown = |(median, cell): &(u64, &Cell)| {
        format!("{} ({})", scale.show_value(*median), cell.what.pair)
    };
    let unit = scale.unit_of_cells(results, &group.cells);
    let all = group.cells[0]
        .what
        .pairs(results.machine.cpus as usize)
        .count();
    let mut lines = vec![format!(
        "{}, {} of {all} pairs, medians in {unit}: nearest {}, median {}, farthest {}.",
        group.title,
        medians.len(),
        shown(nearest),
        hist::of_sorted(&medians, 500)
            .map_or(String::new(), |(median, _)| scale.show_value(*median)),
        shown(farthest),
    )];
    for wanted in 0..4 {
        let here = medians
            .iter()
            .filter(|(_, cell)| affinity_level(cell) == Some(wanted));
        let here: Vec<u64> = here.map(|(median, _)| *median).collect();
        if let [Some(first), Some(middle), Some(last)] =
            [here.first(), hist::of_sorted(&here, 500), here.last()]
        {
            let [first, middle, last] = [first, middle, last].map(|value| scale.show_value(*value));
            let pairs = here.len();
            lines.push(format!(
                "  differ up to Aff{wanted}: {pairs} pairs, {first} to {last}, median {middle}"
            ));
        }
    }
    lines.extend(left_out);
    lines
}
