// SPDX-License-Identifier: MIT OR Apache-2.0
//! The top of the page: the words and the small table of the first screen, and one chart.

mod by_hypervisor;

use maud::{Markup, Render, html};
use results::Results;
use results::merge::{self, Run};

use crate::equal_runs::{merge_equal, run_labels};
use crate::frame::Figure;
use crate::scale::Scale;
use crate::{machines, pairs, screen, summary, svg};

/// Whether the runs are boots that repeat one measurement, with the same cells, machine and source tree.
pub fn are_boots(runs: &[Run]) -> bool {
    let [first, others @ ..] = runs else {
        return false;
    };
    let keys = |run: &Run| {
        run.results
            .cells
            .iter()
            .map(results::Cell::key)
            .collect::<Vec<_>>()
    };
    let alike = |run: &Run| {
        let (a, b) = (&first.results, &run.results);
        a.board == b.board
            && a.is_of_same_sources(b)
            && a.unit == b.unit
            && a.machine.cpu == b.machine.cpu
            && a.machine.features == b.machine.features
            && keys(first) == keys(run)
    };
    !others.is_empty() && others.iter().all(alike)
}

/// Returns the title, the answer and its chart.
pub fn heading(title: &str, runs: &[Run], chart: Option<&Figure>) -> Markup {
    html! {
        header.answer {
            h1 { (title) }
            div.words {
            @if are_boots(runs) {
                p.headline { (runs.len()) " boots of the same cells. Charts are of the first." }
                (results_answer(&merge::into_one(runs)))
            } @else if runs.len() > 1 {
                @for sentence in machines::order_sentences(&machines::comparable_groups(runs)) { p { (sentence) } }
                @for (labels, text) in merge_equal(runs, run_answer) { (run_labels(&labels)) (text) }
            } @else {
                @for run in runs { (run_answer(run)) }
            }
            }
            @if let Some(chart) = chart { div.first { (chart.render()) } }
            p.meta { (describe_data(runs)) }
        }
    }
}

/// Returns the answer of one run.
fn run_answer(run: &Run) -> Markup {
    results_answer(&run.results)
}

fn results_answer(results: &Results) -> Markup {
    let scale = Scale::for_results(results);
    let screen = match by_hypervisor::document(results, scale) {
        Some(table) => Some(table),
        None => screen::document(results, screen::Rest::Below),
    };
    html! {
        @match screen {
            Some(screen) => (screen.html()),
            None => {
                p.headline { (summary::summary_sentence(results, scale)) }
                @if let Some(text) = summary::unmodelled_costs(results) { p.about { (text) } }
            }
        }
        @for line in pairs::pair_lines(results, scale) { p.about { (line) } }
        @if let Some(missing) = results.incomplete_text() { p.about { b { "Incomplete: " } (missing) "." } }
    }
}

/// Describes the page's data: the numbers of cells and samples, and the tool.
fn describe_data(runs: &[Run]) -> String {
    let cells = || runs.iter().flat_map(|run| &run.results.cells);
    let measured = cells().filter(|cell| cell.stats.is_some());
    let samples: u64 = measured
        .clone()
        .filter_map(|cell| Some(cell.stats?.count))
        .sum();
    let skipped = cells().filter(|cell| cell.skipped.is_some()).count();
    let damaged: usize = runs.iter().map(|run| run.results.damaged.len()).sum();
    let tool = runs.first().map_or("", |run| run.results.tool.as_str());
    format!(
        "{} cells, {} samples, {skipped} cells skipped, {damaged} damaged; {tool}",
        measured.count(),
        svg::format_number(samples as f64)
    )
}
