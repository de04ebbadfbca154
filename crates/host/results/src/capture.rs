// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the text captured from a console. The text has the records of one or more boots among other output, and may
//! have been damaged on the serial line.

use wire::{MARK, Record};

use plan::{Under, Word};

use crate::records::{Collector, Records};
use crate::{Repeated, Results};

/// The text before the deadline's name in the line that the hypervisor prints when a deadline has passed.
pub const LATE: &str = "rouse: deadline: ";

/// Returns the name of the deadline that ended a boot in `text`, if any.
pub fn missed_deadline(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.split_once(LATE));
    line.map(|(_, why)| why.trim())
}

/// Whether `text` contains anything that looks like a record.
pub fn has_records(text: &str) -> bool {
    text.contains(MARK)
}

/// Returns the boots in `text`, in order.
///
/// A boot ends after its last record, or where the sequence numbers restart. If the first records of the next boot are
/// lost, its cells must not be mistaken for cells of the previous boot.
pub fn split_boots(text: &str) -> Vec<Records> {
    let mut boots = Vec::new();
    let mut collector = Collector::default();
    let mut last = "";
    for piece in text.split(['\n', '\r']).flat_map(marked_parts) {
        if let Ok(record) = Record::parse(piece) {
            // If the console echoes a record, the copy does not start a second boot.
            if piece == last {
                continue;
            }
            last = piece;
            if record.kind == "boot" || collector.is_over_before(record.seq) {
                boots.push(std::mem::take(&mut collector).finish());
            }
        }
        collector.feed(piece);
    }
    boots.push(collector.finish());
    boots.retain(|boot| boot.begun);
    boots
}

/// Splits a line at the marks that begin records. There are several if the line end between two records was lost.
fn marked_parts(line: &str) -> impl Iterator<Item = &str> {
    let starts: Vec<usize> = line.match_indices(MARK).map(|(at, _)| at).collect();
    let ends: Vec<usize> = starts.iter().copied().skip(1).chain([line.len()]).collect();
    starts
        .into_iter()
        .zip(ends)
        .map(|(from, to)| &line[from..to])
}

/// Collects the results of the boots in `text`. `None` if there is no undamaged record.
pub fn results(text: &str) -> Option<Results> {
    let boots = split_boots(text);
    let mut results = Results::new("", "", None);
    let mut complaints: [Repeated; 3] = Default::default();
    for (place, boot) in boots.iter().enumerate() {
        let under = boot.machine.get("under");
        results.add(under.and_then(|word| Under::parse(word)), boot);
        // A single boot has the number 0, which means that no number is shown.
        let number = if boots.len() > 1 { place + 1 } else { 0 };
        for (texts, all) in complaint_lists(&mut results)
            .into_iter()
            .zip(&mut complaints)
        {
            texts.drain(..).for_each(|text| all.add_text(number, text));
        }
    }
    for (texts, all) in complaint_lists(&mut results).into_iter().zip(complaints) {
        texts.extend(all.into_texts());
    }
    if let Some(why) = missed_deadline(text) {
        results
            .problems
            .push(format!("the deadline is over: {why}"));
    }
    (!boots.is_empty()).then_some(results)
}

/// Returns the lists in which problems are reported: missing parts, damaged cells, other problems.
fn complaint_lists(results: &mut Results) -> [&mut Vec<String>; 3] {
    let Results {
        missing,
        damaged,
        problems,
        ..
    } = results;
    [missing, damaged, problems]
}

#[cfg(test)]
mod tests;
