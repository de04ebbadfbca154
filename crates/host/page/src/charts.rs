// SPDX-License-Identifier: MIT OR Apache-2.0
//! The charts, section by section.

mod cost;
mod distributions;
mod exit_table;
mod map;
mod parts;
mod path;
mod stage_table;
mod sweeps;

use maud::{Markup, Render};
use results::merge::Run;

use crate::cells::{Panel, panels};
use crate::frame::{Figure, Item, Section, new_section};
use crate::stacks::{self, Chart};

/// A part of the page: charts, or other content.
#[derive(Debug)]
pub enum PagePart {
    /// Charts.
    Charts(Section),
    /// Other content.
    Other(Markup),
}

impl Render for PagePart {
    fn render(&self) -> Markup {
        match self {
            Self::Charts(section) => section.render(),
            Self::Other(markup) => markup.clone(),
        }
    }
}

/// Returns the chart that shows the answer, and each further section for which the runs have data.
pub fn chart_sections(runs: &[Run]) -> (Option<Figure>, Vec<PagePart>) {
    let all = panels(runs);
    let maps = map::map_section(&all);
    let panels: Vec<Panel<'_>> = all.into_iter().map(Panel::with_one_pair).collect();
    let mut sweeps = sweeps::section(&panels);
    let mut cost = new_section(
        "cost",
        "Cost by way of waiting",
        "Median of each cell; a bar for each way that the wake-up can take; without an interrupt one for all that cost the same. A star (*) here and below: the machine does not \
         model what this wait depends on.",
        cost::chart_items(&panels),
    );
    // If a limit was swept, the curve over this limit is the answer.
    let answer = sweeps
        .take_first_figure()
        .or_else(|| cost.take_first_figure());
    let parts = vec![
        PagePart::Charts(sweeps),
        PagePart::Charts(cost),
        PagePart::Charts(maps),
        PagePart::Charts(distributions::section(&panels)),
        PagePart::Charts(new_section(
            "stages",
            "Where it goes",
            "The path by level, and what CPUs do after it or next to it: the mark and the second number are the path \
             without bookkeeping. Charts of stages are medians of samples with time stamps, from end to end; there the mark \
             and the second number are the median without stamps, and grey is what no stage accounts for.",
            [
                draw_charts(&panels, path::work_chart),
                draw_charts(&panels, parts::stages_chart),
            ]
            .into_iter()
            .flatten()
            .collect(),
        )),
        PagePart::Other(stage_table::tables(&panels)),
        PagePart::Charts(new_section(
            "exits",
            "Exits per wake-up",
            "Exits to EL2 by cause, over all CPUs that took part, divided by the wake-ups; then what they take, within samples \
             with time stamps.",
            [
                draw_charts(&panels, parts::exits_chart),
                draw_charts(&panels, parts::el2_time_chart),
            ]
            .into_iter()
            .flatten()
            .collect(),
        )),
        PagePart::Other(exit_table::tables(&panels)),
        PagePart::Charts(new_section(
            "residency",
            "Residency",
            "Where the CPUs were within samples, in per cent of their time: in the guest, polling, halted, at EL2.",
            draw_charts(&panels, parts::residency_chart),
        )),
    ];
    (answer, parts)
}

/// Draws a chart of each panel that has the data. All charts share one scale.
fn draw_charts(panels: &[Panel<'_>], of: fn(&Panel<'_>) -> Option<Chart>) -> Vec<Item> {
    stacks::draw_charts(panels.iter().filter_map(of).collect())
}
