// SPDX-License-Identifier: MIT OR Apache-2.0
//! Presents results to people: `report.html` ([`html()`]), and the parts that tables of a terminal ([`table`],
//! [`grid`]) share with it. [`scale`] chooses the unit, [`columns`] has the columns of the cells, [`summary`]
//! the headline, [`machines`] the same cells side by side. Nothing here reads or writes a file.
//!
//! The page is one file that needs nothing else. Its one script lets the reader sort and filter tables; without
//! it the page has the same content. The charts are SVG, drawn here. They are small, all of one width, and as
//! many as fit stand side by side, so that their text has the same size
//! on a wide screen, on a phone and on paper.

#![forbid(unsafe_code)]

mod appendix;
mod axis;
mod bars;
mod cells;
mod charts;
mod clocks;
mod column;
pub mod columns;
mod contents;
mod curves;
pub mod document;
mod frame;
pub mod grid;
mod knee;
pub mod layer_costs;
mod leading_median;
mod machine;
mod machine_comparison;
pub mod machines;
mod neighbours;
pub mod pairs;
pub mod path;
pub mod scale;
pub mod screen;
pub mod shortfalls;
mod stacks;
pub mod standalone;
pub mod summary;
mod svg;
pub mod table;

pub use bars::{Bar, Group as Bars, Shared};
pub use column::{Column, thousands};
pub use curves::Line;
pub use frame::Entry;
pub use machine::asked;

use base64::prelude::{BASE64_STANDARD, Engine};
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use results::merge::Run;
use sha2::{Digest, Sha256};

use scale::Scale;

/// The style sheet.
const STYLE: &str = include_str!("style.css");
/// Sorts and filters tables.
const SCRIPT: &str = include_str!("script.js");

/// The page's policy: it loads nothing, and runs no script but its own, whatever texts come from a log.
fn policy() -> String {
    let script = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'")
}

/// Returns a chart of one line, for pages that are not about runs.
pub fn chart(name: &str, points: &[(f64, f64)], along: &str, unit: &str) -> Markup {
    let line = Line {
        class: "line c-blue".into(),
        name: String::new(),
        points: points.to_vec(),
    };
    chart_of(name, &[line], along, unit)
}

/// Likewise of several lines. Names without room at the lines' ends are in a legend, by numbers.
pub fn chart_of(name: &str, lines: &[Line], along: &str, unit: &str) -> Markup {
    let about = format!("{name}: {unit} over {along}");
    let draw = |lines: &[Line]| curves::sweep(lines, along, unit, &about);
    if lines
        .iter()
        .all(|line| svg::width_of(&line.name) <= curves::NAMES)
    {
        return frame::figure(name, "", &[], draw(lines)).render();
    }
    let numbered = (1..).zip(lines).map(|(number, line)| Line {
        class: line.class.clone(),
        name: number.to_string(),
        points: line.points.clone(),
    });
    let numbered: Vec<Line> = numbered.collect();
    let legend = numbered.iter().zip(lines);
    let legend =
        legend.map(|(line, named)| (line.class.clone(), line.name.clone(), named.name.clone()));
    frame::figure(name, "", &legend.collect::<Vec<_>>(), draw(&numbered)).render()
}

/// Returns groups of bars, with a legend, on axes that other charts may share.
pub fn bars_of(
    name: &str,
    legend: &[Entry],
    groups: &[Bars],
    unit: &str,
    shared: Shared,
) -> Markup {
    let drawn = bars::chart_in(shared, groups, unit, &format!("{name}: {unit}"));
    frame::figure(name, "", legend, drawn).render()
}

/// Describes where runs were made, and what these places do not model.
pub fn machine(runs: &[Run]) -> Markup {
    machine::section(runs)
}

/// Returns the page about some runs.
pub fn html(title: Option<&str>, runs: &[Run]) -> String {
    let title = title.map_or_else(|| default_title(runs), str::to_owned);
    let body = html! {
        (heading(&title, runs))
        (machine::section(runs))
        (machine_comparison::section(runs))
        @for block in charts::sections(runs) { (block) }
        (appendix::sections(runs))
    };
    document(&title, body)
}

/// Returns a page of this kind, with `body` in it.
pub fn document(title: &str, body: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (contents::before_sections(body)) }
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

fn heading(title: &str, runs: &[Run]) -> Markup {
    html! {
        header {
            h1 { (title) }
            @for run in runs {
                p.headline {
                    @if runs.len() > 1 { b { (run.label) ": " } }
                    (summary::sentence(&run.results, Scale::of(&run.results)))
                }
            }
            @for run in runs {
                @if let Some(text) = layer_costs::sentence(&run.results, Scale::of(&run.results)) {
                    p.headline { @if runs.len() > 1 { b { (run.label) ": " } } (text) }
                }
            }
            (headline_numbers(runs))
            @for run in runs {
                @if let Some(text) = summary::left_out(&run.results) {
                    p.about { @if runs.len() > 1 { b { (run.label) ": " } } (text) }
                }
            }
            @for run in runs {
                @for line in pairs::lines(&run.results, Scale::of(&run.results)) {
                    p.about { @if runs.len() > 1 { b { (run.label) ": " } } (line) }
                }
            }
            @for run in runs {
                @if let Some(missing) = run.results.incomplete_text() {
                    p.about {
                        b { "Incomplete" } @if runs.len() > 1 { " (" (run.label) ")" }
                        ": " (missing) "."
                    }
                }
            }
            p.meta { (counts(runs)) }
        }
    }
}

/// Shows the sentence again, as numbers side by side.
fn headline_numbers(runs: &[Run]) -> Markup {
    html! {
        @for run in runs {
            @let ways = summary::headline(&run.results);
            @let scale = Scale::of(&run.results);
            @if ways.len() > 1 {
                p.about.tight {
                    @if runs.len() > 1 { (run.label) ": " }
                    "Median " (scale.unit(&run.results))
                    (summary::lead(&run.results).between())
                    " per wake-up, half a round trip of pingpong; each way of waiting at its best"
                }
                ul.strip {
                    @for way in &ways {
                        li {
                            span.name { (way.name) }
                            b { (svg::number(scale.value(way.p50) / 2.0)) }
                            span.muted { (format!("{:.2}×", way.ratio)) }
                        }
                    }
                }
            }
        }
    }
}

/// Describes the page's data.
fn counts(runs: &[Run]) -> String {
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
        svg::number(samples as f64)
    )
}

#[cfg(test)]
mod tests;
