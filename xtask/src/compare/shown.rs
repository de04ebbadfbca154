// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a comparison shows.

use results::compare::{Comparison, Difference, Median, Pair, Verdict};
use results::{Build, Cell, keys};

use crate::grid::{self, Column};
use crate::report::inputs::Input;
use crate::table::Scale;

/// Cells of one side that are listed.
const LISTED: usize = 12;

/// The table, no wider than `width`, what could not be compared, and the sentence.
pub fn lines(
    comparison: &Comparison<'_>,
    a: &Input,
    b: &Input,
    width: Option<usize>,
) -> Vec<String> {
    let scale = Scale::of(&a.results);
    let unit = scale.unit(&a.results);
    let mut lines = vec![
        format!("A: {} ({})", a.shown, place(a)),
        format!("B: {} ({})", b.shown, place(b)),
    ];
    lines.extend(compilers(a, b));
    lines.extend([
        String::new(),
        format!("medians in {unit}, with 95 % confidence intervals"),
    ]);
    lines.extend(grid::fitted(columns(comparison, scale), width));
    lines.extend(only("A", &comparison.only_a));
    lines.extend(only("B", &comparison.only_b));
    for (side, input) in [("A", a), ("B", b)] {
        let missing = input.results.incomplete_text();
        lines.extend(missing.map(|missing| format!("{side} is incomplete: {missing}")));
    }
    lines.push(String::new());
    if a.results.unit != "insns" {
        lines.push(
            "The intervals are those of the samples of one run each; runs may differ by more. \
             Repeat before you believe a small difference."
                .into(),
        );
    }
    lines.push(sentence(comparison));
    lines
}

fn place(input: &Input) -> String {
    let results = &input.results;
    let parts = [
        results.board.as_str(),
        results.machine.cpu.as_str(),
        results.tool.as_str(),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// That two compilers made the code, if they did: then not every difference is one of
/// the trees.
fn compilers(a: &Input, b: &Input) -> Option<String> {
    let [a, b] = [a, b].map(|input| input.results.build.as_ref().map(Build::compiler));
    let (a, b) = (a?, b?);
    (a != b).then(|| format!("A and B were built with different compilers: {a}; {b}"))
}

fn columns(comparison: &Comparison<'_>, scale: Scale) -> Vec<Column> {
    let pairs = &comparison.pairs;
    let mut columns: Vec<Column> = Vec::new();
    for key in keys() {
        let word = |pair: &Pair<'_>| pair.a.word(key).unwrap_or_default();
        let texts: Vec<String> = pairs.iter().map(word).collect();
        if texts.iter().any(|text| *text != texts[0]) || key == "wait" {
            columns.push(Column::words(key.trim_end_matches("-us"), texts));
        }
    }
    let of = |text: &dyn Fn(&Difference) -> String| -> Vec<String> {
        let texts = pairs.iter().map(|pair| pair.total.as_ref().map(text));
        texts.map(Option::unwrap_or_default).collect()
    };
    columns.push(Column::numbers(
        "",
        "A",
        of(&|total| median(&total.a, scale)),
    ));
    columns.push(Column::numbers(
        "",
        "B",
        of(&|total| median(&total.b, scale)),
    ));
    columns.push(Column::numbers("", "by", of(&|total| by(total, scale))));
    columns.push(Column::numbers(
        "",
        "%",
        of(&|total| match total.by() {
            0 => "·".into(),
            _ => format!("{:+.1}", total.percent()),
        }),
    ));
    columns.push(Column::words(
        "verdict",
        pairs.iter().map(verdict).collect(),
    ));
    if pairs
        .iter()
        .any(|pair| pair.a.is_part() || pair.b.is_part())
    {
        let passes = pairs
            .iter()
            .map(|pair| format!("A {}, B {}", pair.a.passes_text(), pair.b.passes_text()));
        columns.push(Column::words("passes", passes.collect()));
    }
    if pairs.iter().any(|pair| pair.stage.is_some()) {
        let stages = pairs.iter().map(|pair| match &pair.stage {
            Some((name, stage)) if changed(pair) => format!("{name} {}", by(stage, scale)),
            _ => String::new(),
        });
        columns.push(Column::words("mostly in stage", stages.collect()));
    }
    columns
}

fn changed(pair: &Pair<'_>) -> bool {
    matches!(pair.verdict(), Verdict::Better | Verdict::Worse)
}

/// A median, with its interval if that is more than a point.
fn median(median: &Median, scale: Scale) -> String {
    let value = scale.show_percentile(median.value);
    if median.low == median.high {
        return value;
    }
    format!(
        "{value} [{}, {}]",
        scale.show(median.low),
        scale.show(median.high)
    )
}

fn by(difference: &Difference, scale: Scale) -> String {
    let size = scale.show(difference.by().unsigned_abs());
    match difference.by() {
        0 => "·".into(),
        ..0 => format!("-{size}"),
        _ => format!("+{size}"),
    }
}

fn verdict(pair: &Pair<'_>) -> String {
    match pair.verdict() {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference",
        Verdict::Unknown if pair.a.skipped.is_some() => "skipped",
        Verdict::Unknown => "not measured",
    }
    .into()
}

/// Cells that only one side has.
fn only(side: &str, cells: &[&Cell]) -> Vec<String> {
    if cells.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), format!("only in {side}:")];
    lines.extend(
        cells
            .iter()
            .take(LISTED)
            .map(|cell| format!("  {} {}", cell.under, cell.title())),
    );
    if let Some(more) = cells.len().checked_sub(LISTED + 1) {
        lines.push(format!("  and {} more", more + 1));
    }
    lines
}

fn sentence(comparison: &Comparison<'_>) -> String {
    let [better, worse, same, unknown] = [
        Verdict::Better,
        Verdict::Worse,
        Verdict::NoDifference,
        Verdict::Unknown,
    ]
    .map(|verdict| comparison.count(verdict));
    let mut text = format!("B against A: {worse} worse, {better} better, {same} no difference");
    if unknown > 0 {
        text = format!("{text}, {unknown} not measured on both sides");
    }
    let changed = comparison.pairs.iter().filter(|pair| changed(pair));
    let largest = changed.filter_map(|pair| Some((pair, pair.total.as_ref()?)));
    let largest = largest.max_by(|a, b| a.1.percent().abs().total_cmp(&b.1.percent().abs()));
    match largest {
        Some((pair, total)) => {
            format!(
                "{text}; most in {} ({:+.1} %).",
                pair.a.title(),
                total.percent()
            )
        }
        None => format!("{text}."),
    }
}
