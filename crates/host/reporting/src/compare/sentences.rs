// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sentences with which a comparison begins.

use results::compare::{Compared, Comparison, Quantity, Verdict};

use super::screen;
use super::text::format_percent;
use page::cell_names::CellNames;

/// Counts cells by the verdict on their path, unless each cell's work has the same verdict as its path. A wake-up on
/// CPUs that run in parallel takes only as long as the path, because all other work happens meanwhile.
pub fn path_sentence(found: &Comparison<'_>) -> Option<String> {
    let both = found.pairs.iter().filter_map(|pair| {
        let (total, path) = (pair.deciding_figure()?, pair.figure(Quantity::Path)?);
        (total.has_changed() || path.has_changed()).then_some((total, path))
    });
    let both: Vec<(&Compared, &Compared)> = both.collect();
    if both
        .iter()
        .all(|(total, path)| total.verdict == path.verdict)
    {
        return None;
    }
    let count = |verdict, word: &str| {
        let cells = both.iter().filter(|(_, path)| path.verdict == verdict);
        let cells = cells.count();
        (cells > 0).then(|| format!("{cells} {word}"))
    };
    let counts = [
        count(Verdict::Worse, "worse"),
        count(Verdict::Better, "better"),
        count(Verdict::NoDifference, "without a difference"),
        count(Verdict::TooFew, "with too few runs"),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let changed = both.iter().filter(|(_, path)| path.has_changed());
    let percents = changed.map(|(_, path)| path.percent_difference());
    let range = percents.fold(None, |range: Option<(f64, f64)>, percent| {
        let (low, high) = range.unwrap_or((percent, percent));
        Some((low.min(percent), high.max(percent)))
    });
    let range = match range {
        Some((low, high)) => format!(" ({low:+.1} to {high:+.1} %)"),
        None => String::new(),
    };
    Some(format!(
        "On the path alone, which is what a wake-up takes where CPUs run at once: {}{range}. The rest, polling for instance, \
         happens meanwhile.",
        counts.join(", ")
    ))
}

/// Returns the number of cells with each verdict, and the cell that changed most.
pub fn verdict_sentence(found: &Comparison<'_>, names: &CellNames) -> String {
    let count = |verdict, words: &str| (found.count_verdict(verdict), words.to_owned());
    let none = match found.exact {
        true => "no difference",
        false => "no difference seen",
    };
    let mut told = vec![count(Verdict::NoDifference, none)];
    told.push(count(Verdict::TooFew, "too few runs"));
    told.push(count(Verdict::FewSamples, "too few samples"));
    told.push(count(Verdict::Unknown, "not measured on both sides"));
    told.push((found.lost.len(), "not measured in B".into()));
    told.push((found.added.len(), "only in B".into()));
    told.retain(|(count, _)| *count > 0);
    told.splice(
        0..0,
        [
            count(Verdict::Worse, "worse"),
            count(Verdict::Better, "better"),
        ],
    );
    let told: Vec<String> = told
        .iter()
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    let exact = if found.exact { ", exact" } else { "" };
    let text = format!("B against A{exact}: {}", told.join(", "));
    let pairs = found.pairs.iter();
    let changed = pairs.filter_map(|pair| Some((pair, pair.deciding_figure()?)));
    let changed = changed.filter(|(_, total)| total.has_changed());
    // Of equal differences, the first counts, as in the table.
    match changed.rev().max_by(|a, b| {
        a.1.percent_difference()
            .abs()
            .total_cmp(&b.1.percent_difference().abs())
    }) {
        Some((pair, total)) => {
            format!(
                "{text}; most in {} ({} %).",
                screen::without_delivery(pair.cell, names.name(pair.cell)),
                format_percent(total)
            )
        }
        None => format!("{text}."),
    }
}
