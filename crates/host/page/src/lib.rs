// SPDX-License-Identifier: MIT OR Apache-2.0
//! Presents results to people: `report.html` ([`results_page`]), and the parts that it shares with tables on a terminal
//! ([`table`], [`grid`]). [`scale`] chooses the unit, [`columns`] has the columns of the cells, [`summary`] has the
//! headline, and [`machines`] shows the same cells of several machines side by side. No code in this crate reads or
//! writes a file.
//!
//! The page is one file that needs no other file. The page's only script lets the reader sort and filter tables;
//! without the script, the page has the same content. This crate draws the charts as SVG. All charts are small and have
//! the same width, and as many as fit are side by side, so that their text has the same size on a wide screen, on a
//! phone and on paper.

#![forbid(unsafe_code)]

mod answer;
mod appendix;
mod axis;
mod bars;
pub mod cell_names;
mod cells;
mod charts;
mod clocks;
mod column;
pub mod columns;
mod contents;
mod curves;
pub mod document;
mod equal_runs;
mod frame;
pub mod grid;
mod knee;
pub mod layer_costs;
mod machine;
mod machine_comparison;
pub mod machines;
mod neighbours;
pub mod pairs;
pub mod path;
pub mod programs;
pub mod scale;
pub mod screen;
pub mod shortfalls;
mod stacks;
pub mod standalone;
pub mod summary;
mod svg;
pub mod table;
mod trend;

pub use bars::{Bar, Group as Bars, Shared};
pub use column::{Column, thousands};
pub use curves::Line;
pub use frame::Entry;
pub use machine::asked;
pub use svg::format_number as shown;
pub use trend::Trend;

use base64::prelude::{BASE64_STANDARD, Engine};
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use results::merge::Run;
use sha2::{Digest, Sha256};

/// The style sheet.
const STYLE: &str = include_str!("style.css");
/// The script that sorts and filters tables.
const SCRIPT: &str = include_str!("script.js");

/// The page's content security policy: the page loads nothing and runs only its own script, whatever texts a log
/// contains.
fn content_policy() -> String {
    let script = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'")
}

/// Returns a chart of lines, for pages that are not about runs. If the names do not fit at the lines' ends, the lines
/// get numbers, and a legend lists the numbers with the names.
pub fn chart_of(name: &str, lines: &[Line], along: &str, unit: &str) -> Markup {
    let about = format!("{name}: {unit} over {along}");
    let values = lines.iter().flat_map(|line| &line.points);
    let range = curves::value_range(values.map(|point| point.1));
    let draw = |lines: &[Line]| curves::draw_sweep(lines, range, along, unit, &about);
    curves::draw_named_lines(name, "", lines, draw).render()
}

/// Like [`chart_of`], for one line.
pub fn chart(name: &str, points: &[(f64, f64)], along: &str, unit: &str) -> Markup {
    let line = Line {
        class: "line c-blue".into(),
        name: String::new(),
        points: points.to_vec(),
    };
    chart_of(name, &[line], along, unit)
}

/// Returns a chart of a figure over the runs that `runs` names.
pub fn chart_of_trend(
    name: &str,
    note: &str,
    trend: &Trend,
    runs: &[String],
    unit: &str,
) -> Markup {
    let about = format!("{name}: {unit} over runs");
    frame::new_figure(name, note, &[], trend.draw_trend(runs, unit, &about)).render()
}

/// Returns charts of bar groups, with a legend. Charts may share their axis.
pub fn bars_of(
    name: &str,
    legend: &[Entry],
    groups: &[Bars],
    unit: &str,
    shared: Shared,
) -> Markup {
    let drawn = bars::draw_chart(shared, groups, unit, &format!("{name}: {unit}"));
    frame::new_figure(name, "", legend, drawn).render()
}

/// Describes the machines that made the runs, and what these machines do not model.
pub fn machine(runs: &[Run]) -> Markup {
    machine::machine_section(runs)
}

/// Returns the page about some runs.
pub fn results_page(title: Option<&str>, runs: &[Run]) -> String {
    let title = title.map_or_else(|| default_title(runs), str::to_owned);
    let (chart, sections) = charts::chart_sections(charted_runs(runs));
    let body = html! {
        (answer::heading(&title, runs, chart.as_ref()))
        @for section in sections { (section) }
        @if !answer::are_boots(runs) { (machine_comparison::section(runs)) }
        (programs::programs_section(runs))
        (appendix::cells(runs))
        (machine::machine_section(runs))
        (appendix::provenance(runs))
    };
    document(&title, body)
}

/// Returns the runs that charts show. If the runs are boots that repeat one measurement, returns only the first run,
/// because the other runs differ only by noise.
fn charted_runs(runs: &[Run]) -> &[Run] {
    match answer::are_boots(runs) {
        true => &runs[..1],
        false => runs,
    }
}

/// Returns a page with contents `body`, in the style of all pages.
pub fn document(title: &str, body: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(content_policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (contents::insert_contents(body)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn default_title(runs: &[Run]) -> String {
    let mut boards: Vec<&str> = Vec::new();
    for run in runs {
        let board = run.results.board.as_str();
        let name = if board.is_empty() {
            run.label.as_str()
        } else {
            board
        };
        if !boards.contains(&name) {
            boards.push(name);
        }
    }
    format!("The cost of waking an idle CPU: {}", boards.join(", "))
}

#[cfg(test)]
mod tests;
