// SPDX-License-Identifier: MIT OR Apache-2.0
//! The charts, section by section.

mod distributions;
mod exit_table;
mod map;
mod parts;
mod path;
mod stage_table;
mod sweeps;

use maud::{Markup, Render};
use results::merge::Run;

use crate::bars::{self, Bar, Group};
use crate::cells::{PATH_COLOURS, Panel, panels, path as path_of, path_class, waiting};
use crate::frame::{Entry, Figure, Section, figure, section};
use crate::leading_median::By;

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

/// Every section of charts that the runs have data for.
pub fn sections(runs: &[Run]) -> Vec<PagePart> {
    let all = panels(runs);
    let maps = PagePart::Charts(map::maps(&all));
    let panels: Vec<Panel<'_>> = all.into_iter().map(Panel::thinned).collect();
    vec![
        PagePart::Charts(section(
            "cost",
            "Cost by way of waiting",
            "Median of each cell, by wait and trap; a bar for each way that the wake-up can take. Where samples \
             are taken apart it is that of the path, without bookkeeping; pointing at a bar shows the work of all \
             CPUs too. A star (*) here and below: the machine does not model what this wait depends on.",
            figures(&panels, cost),
        )),
        maps,
        PagePart::Charts(distributions::section(&panels)),
        PagePart::Charts(section(
            "stages",
            "Where it goes",
            "Medians of the stages of a wake-up, from end to end, as time stamps see them. The mark and \
             the second number are the median without stamps: what lies beyond it is what stamping \
             costs. Grey is what no stage accounts for. Charts without stamps are of samples that were taken \
             apart by an onlooker: the path by level, and what CPUs do after it or beside it; the mark and the \
             second number are the path without bookkeeping.",
            [
                figures(&panels, path::without_stamps),
                figures(&panels, parts::stages),
            ]
            .into_iter()
            .flatten()
            .collect(),
        )),
        PagePart::Other(stage_table::tables(&panels)),
        PagePart::Charts(section(
            "exits",
            "Exits per wake-up",
            "Exits to EL2 by cause, over all CPUs that took part, divided by the wake-ups: of the samples alone \
             where they are taken apart; then what \
             they take, within samples with stamps; how much longer those are stands beside it.",
            [
                figures(&panels, parts::exits),
                figures(&panels, parts::time_at_el2),
            ]
            .into_iter()
            .flatten()
            .collect(),
        )),
        PagePart::Other(exit_table::tables(&panels)),
        PagePart::Charts(section(
            "residency",
            "Residency",
            "Where the CPUs were within samples, in per cent of their time: in the guest, polling, halted, at \
             EL2. Where that takes stamps, how much longer the samples are with them stands beside it.",
            figures(&panels, parts::residency),
        )),
        PagePart::Charts(sweeps::section(&panels)),
    ]
}

fn figures(panels: &[Panel<'_>], draw: fn(&Panel<'_>) -> Option<Figure>) -> Vec<Figure> {
    panels.iter().filter_map(draw).collect()
}

/// Returns bars of the medians, grouped by way of waiting.
pub fn cost(panel: &Panel<'_>) -> Option<Figure> {
    let (cells, chosen) = panel.plain();
    let by = panel.lead();
    let mut groups: Vec<Group> = Vec::new();
    let mut legend: Vec<Entry> = Vec::new();
    for cell in &cells {
        let stats = cell.stats?;
        let Some(value) = by.median(cell).map(|median| panel.value(median)) else {
            continue;
        };
        let class = path_class(cell);
        let entry = (format!("fill {class}"), path_of(cell), String::new());
        if !legend.contains(&entry) {
            legend.push(entry);
        }
        let (p50, min) = (panel.value(stats.p50), panel.value(stats.min));
        let told = match by {
            By::Path => format!("path {value}, work of all CPUs p50 {p50}, min {min}"),
            By::Sample => format!("p50 {value}, min {min}"),
        };
        let hint = format!("{}: {told}, n = {}", cell.title(), stats.count);
        let bar = Bar { class, value, hint };
        let label = waiting(cell);
        match groups.iter_mut().find(|group| group.label == label) {
            Some(group) => group.bars.push(bar),
            None => groups.push(Group {
                label,
                bars: vec![bar],
            }),
        }
    }
    if groups.is_empty() {
        return None;
    }
    legend.sort_by_key(|entry| {
        PATH_COLOURS
            .iter()
            .position(|known| entry.0.ends_with(known))
    });
    let mut note = format!(
        "p50, {}, {}",
        panel.lead_measure(),
        Panel::samples(cells.iter())
    );
    if !chosen.is_empty() {
        note = format!("{note}; {chosen}");
    }
    let about = format!("{}: medians by way of waiting", panel.title);
    let chart = bars::chart(&groups, panel.unit(), &about);
    Some(figure(&panel.title, &note, &legend, chart))
}
