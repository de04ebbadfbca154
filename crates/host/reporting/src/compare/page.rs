// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a comparison. It has the verdict in words, the cells that differ (before and after), every cell, and
//! both machines.

use maud::{Markup, html};
use page::document::Document;
use page::scale::Scale;
use page::table::Units;
use page::{Bar, Bars, Column, Entry, Shared};
use results::Cell;
use results::compare::{Compared, Comparison, Differs, LEVEL, Pair, Verdict, differences};
use results::merge::Run;
use shell::command;

use super::cell_names::subject_columns;
use super::side::Side;
use super::text;

/// Number of cells that a chart shows, beginning with the largest difference.
const MOST: usize = 12;

/// Returns the page.
pub fn comparison_page(found: &Comparison<'_>, differs: &[Differs], a: &Side, b: &Side) -> String {
    let scale = Scale::for_results(a.first_results());
    let brief = text::document(found, differs, a, b, None, false);
    let units = Units::of_cells(
        found.pairs.iter().map(|pair| pair.cell),
        a.first_results(),
        scale,
    );
    let mut all = Document::default();
    all.table(text::table_columns(found, scale, &units, None));
    let runs: Vec<_> = a.runs.iter().chain(&b.runs).cloned().collect();
    let body = html! {
        header.answer {
            h1 { "Comparison of " (a.shown) " (A) and " (b.shown) " (B)" }
            div.words { (brief.html()) }
            @if let Some(chart) = differences_chart(found, scale, units.common_unit()) { div.first { (chart) } }
        }
        section id="cells" { h2 { "All cells of both" } (all.html()) }
        (page::machine(&runs))
        section id="reproduce" { h2 { "How to reproduce" } pre { (command::this_command()) } }
    };
    page::document("Comparison", body)
}

/// Returns a chart of the cells that differ, as pairs of bars.
fn differences_chart(found: &Comparison<'_>, scale: Scale, unit: &str) -> Option<Markup> {
    let changed = found
        .pairs
        .iter()
        .filter_map(|pair| Some((pair, pair.deciding_figure()?)));
    let mut changed: Vec<(&Pair<'_>, &Compared)> =
        changed.filter(|(_, total)| total.has_changed()).collect();
    changed.sort_by(|one, other| {
        other
            .1
            .percent_difference()
            .abs()
            .total_cmp(&one.1.percent_difference().abs())
    });
    let cells = changed.iter().map(|(pair, _)| pair.cell).collect();
    let columns = subject_columns(cells);
    let rest = Column::join_columns("cell", &columns[1..], ", ");
    let labels = columns[0].texts().iter().zip(rest.texts());
    let labels = labels.map(|(workload, rest)| (workload.clone(), rest.clone()));
    let groups = changed.iter().zip(labels).take(MOST);
    let groups = groups.map(|((pair, total), label)| bar_group(pair, total, label, scale));
    let groups: Vec<Bars> = groups.collect();
    if groups.is_empty() {
        return None;
    }
    let legend = [
        ("fill c-grey", "A"),
        ("fill c-red", "B, worse"),
        ("fill c-green", "B, better"),
    ];
    let drawn = |class: &str| {
        let classes = groups.iter().flat_map(|group| &group.bars);
        let mut classes = classes.map(|bar| format!("fill {}", bar.class));
        classes.any(|known| known == class)
    };
    let legend = legend.iter().filter(|(class, _)| drawn(class));
    let legend: Vec<Entry> = legend
        .map(|(class, name)| ((*class).into(), (*name).into(), String::new()))
        .collect();
    let name = match changed.len() {
        all @ ..=MOST => format!("{all} cells that differ, before and after"),
        all => format!("{MOST} of {all} cells that differ, before and after, the most first"),
    };
    let shared = Shared::of(groups.iter());
    Some(page::bars_of(&name, &legend, &groups, unit, shared))
}

fn bar_group(pair: &Pair<'_>, total: &Compared, label: (String, String), scale: Scale) -> Bars {
    let scale = scale.for_cell(pair.cell);
    let [before, after] =
        [&total.a, &total.b].map(|side| scale.convert_value(side.median() as u64));
    let [shown_before, shown_after] =
        [&total.a, &total.b].map(|side| scale.show_figure(side.rounded_median()));
    let class = match total.verdict {
        Verdict::Worse => "c-red",
        _ => "c-green",
    };
    let bar = |name: &str, class: &str, value, text: String| Bar {
        class: class.into(),
        value,
        hint: format!("{}: {name} {text}", pair.cell.title()),
        text,
    };
    let by = match total.percent_difference() {
        percent if percent.is_finite() => format!(" ({percent:+.1} %)"),
        _ => String::new(),
    };
    Bars {
        label,
        bars: vec![
            bar("A", "c-grey", before, shown_before),
            bar("B", class, after, format!("{shown_after}{by}")),
        ],
    }
}

/// Returns a sample page, which compares one of `runs` with a copy that has other medians.
pub fn sample_page(runs: &[Run]) -> String {
    let has_median = |cell: &&Cell| cell.stats_with_median().is_some();
    let medians = |run: &&Run| run.results.cells.iter().filter(has_median).count();
    let before = runs.iter().filter(|run| medians(run) > 1);
    let before: Vec<Run> = before.take(1).cloned().collect();
    let mut after = before.clone();
    for cell in after.iter_mut().flat_map(|run| &mut run.results.cells) {
        cell.critical = None;
        cell.pass_p50.clear();
        if let Some(stats) = &mut cell.stats {
            stats.p50 += stats.p50 / 20 + 1;
        }
    }
    let [a, b] = [
        Side::from_runs("before", before),
        Side::from_runs("after", after),
    ];
    let found = Comparison::new(&a.runs, &b.runs, LEVEL);
    comparison_page(&found, &differences(&a.runs, &b.runs), &a, &b)
}
