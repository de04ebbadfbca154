// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sentences with the comparisons that people came for.

use plan::{Deliver, Trap, Wait, Wake};
use results::{Cell, Results};

use super::rows::Rows;
use crate::path;
use crate::scale::Scale;

/// The sentences of a table.
pub fn sentences(rows: &Rows<'_>, results: &Results, scale: Scale) -> Vec<String> {
    let unit = scale.unit_of(results, &rows.cells);
    // With anything else swept, two cells that are found first may differ in more than the wait.
    let special = match rows.is_plain() {
        true => [polling(rows, scale, unit), trapping(rows, scale)],
        false => [None, None],
    };
    let special: Vec<String> = special.into_iter().flatten().collect();
    match special.as_slice() {
        [] => extremes(rows, scale, unit).into_iter().collect(),
        _ => special,
    }
}

/// Ratio from which two medians are worth a sentence.
const FAR: f64 = 1.05;

/// The first cell of this kind.
fn find<'r>(rows: &Rows<'r>, wait: Wait, trap: Trap, wake: Wake) -> Option<&'r Cell> {
    let mut cells = rows.cells.iter();
    let found = cells.find(|cell| {
        let what = &cell.what;
        (what.wait, what.trap, what.wake) == (wait, trap, wake)
            && what.deliver == Deliver::Inject
            && what.host_poll_us == 0
            && cell.under == rows.cells[0].under
    });
    found.copied()
}

fn median(cell: &Cell) -> Option<u64> {
    let stats = cell.stats.filter(|stats| stats.supports(500));
    stats.map(|stats| stats.p50).filter(|median| *median > 0)
}

/// A polled wake-up without an interrupt against one out of a trapped WFI.
fn polling(rows: &Rows<'_>, scale: Scale, unit: &str) -> Option<String> {
    let polled = find(rows, Wait::PollWfi, Trap::None, Wake::Elide)?;
    // A poll that ended before the wake-up came is answered by an IPI.
    if polled.ipis.get("sent").is_some_and(|sent| *sent > 0) {
        return None;
    }
    let (trapped, name) = match find(rows, Wait::Wfi, Trap::Wfi, Wake::Ipi) {
        Some(cell) => (cell, "a trapped WFI"),
        None => (find(rows, Wait::Wfi, Trap::None, Wake::Ipi)?, "WFI"),
    };
    let (less, more) = (median(polled)?, median(trapped)?);
    Some(format!(
        "A polled wake-up without IPI takes {} {unit}, an injected one out of {name} {}: {:.1} times as many.",
        scale.show(less),
        scale.show(more),
        more as f64 / less as f64
    ))
}

/// The cost of trapping WFI, and where it lies.
fn trapping(rows: &Rows<'_>, scale: Scale) -> Option<String> {
    let trapped = find(rows, Wait::Wfi, Trap::Wfi, Wake::Ipi)?;
    let plain = find(rows, Wait::Wfi, Trap::None, Wake::Ipi)?;
    // Without paths there is nothing to say of it that the table does not.
    if !path::of_all(&[trapped, plain]) {
        return None;
    }
    let (with, without) = (median(trapped)?, median(plain)?);
    let adds = match with.checked_sub(without) {
        Some(more) => format!("Trapping WFI adds {}", scale.show(more)),
        None => format!("Trapping WFI saves {}", scale.show(without - with)),
    };
    let net = |cell: &Cell| {
        cell.critical
            .as_ref()
            .map_or(0, |critical| critical.net.p50)
    };
    Some(match net(plain).checked_sub(net(trapped)) {
        Some(fewer @ 1..) => format!(
            "{adds}, but {fewer} fewer lie before the woken task: EL2 is entered already when the IPI comes."
        ),
        _ => format!(
            "{adds}, {} of them before the woken task.",
            net(trapped) - net(plain)
        ),
    })
}

/// The least and the most of any table.
fn extremes(rows: &Rows<'_>, scale: Scale, unit: &str) -> Option<String> {
    let all = rows.rows.iter().flat_map(|row| {
        let cells = row.cells.iter().zip(&rows.titles);
        cells.filter_map(move |(cell, title)| {
            let name = match rows.titles.len() {
                1 => row.shown(),
                _ => format!("{}; {title}", row.shown()),
            };
            Some((median((*cell)?)?, name))
        })
    });
    let all: Vec<_> = all.collect();
    let least = all.iter().min_by_key(|(median, ..)| *median)?;
    let most = all.iter().max_by_key(|(median, ..)| *median)?;
    if (most.0 as f64) < least.0 as f64 * FAR {
        return None;
    }
    Some(format!(
        "Least: {} {unit} ({}). Most: {} ({}), {:.1} times as many.",
        scale.show(least.0),
        least.1,
        scale.show(most.0),
        most.1,
        most.0 as f64 / least.0 as f64
    ))
}
