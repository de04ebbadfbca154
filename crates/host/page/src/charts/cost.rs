// SPDX-License-Identifier: MIT OR Apache-2.0
//! The medians as bars, grouped by way of waiting. Colours distinguish hypervisors, or runs if there are several runs.

use results::Cell;

use crate::bars::{self, Bar, Group, Shared};
use crate::cells::{Panel, count_host_polls, path_class, path_name, wait_and_properties};
use crate::frame::{Entry, Item, new_figure};
use crate::scale::shown_median;
use crate::svg::format_number;

/// Colours of runs.
const RUNS: [&str; 6] = [
    "c-blue", "c-orange", "c-green", "c-purple", "c-red", "c-grey",
];

/// Returns a chart for each pair of a workload and a unit. All runs that have both are on one axis.
pub fn chart_items(panels: &[Panel<'_>]) -> Vec<Item> {
    let mut kinds: Vec<Vec<&Panel<'_>>> = Vec::new();
    for panel in panels {
        let alike = |kind: &&mut Vec<&Panel<'_>>| {
            kind[0].subject == panel.subject && kind[0].value_label() == panel.value_label()
        };
        match kinds.iter_mut().find(alike) {
            Some(kind) => kind.push(panel),
            None => kinds.push(vec![panel]),
        }
    }
    let kinds: Vec<Kind<'_, '_>> = kinds
        .iter()
        .filter_map(|panels| Kind::gather(panels))
        .collect();
    kinds.iter().map(|kind| kind.draw_chart(&kinds)).collect()
}

/// A chart before its axis is known.
struct Kind<'p, 'r> {
    panel: &'p Panel<'r>,
    title: String,
    note: String,
    legend: Vec<Entry>,
    groups: Vec<Group>,
}

/// Returns the cells of a run that a chart of medians shows, and a note that names the values chosen for other
/// dimensions.
fn shown_cells<'r>(panel: &Panel<'r>) -> (Vec<&'r Cell>, String) {
    // If the hypervisor's poll has at most two limits, the limit is part of the way of waiting. More limits are a
    // sweep.
    match count_host_polls(&panel.cells) {
        ..=2 => panel.cells_swept_by(&["host-poll-us"]),
        _ => panel.unswept_cells(),
    }
}

impl<'p, 'r> Kind<'p, 'r> {
    fn gather(panels: &[&'p Panel<'r>]) -> Option<Self> {
        let first = panels[0];
        let several = panels.len() > 1;
        let mut groups: Vec<Group> = Vec::new();
        let mut legend: Vec<Entry> = Vec::new();
        let mut cells: Vec<&Cell> = Vec::new();
        let mut chosen = String::new();
        for (panel, colour) in panels.iter().zip(RUNS.iter().cycle()) {
            let of_panel;
            (of_panel, chosen) = shown_cells(panel);
            for cell in of_panel {
                let (class, name) = match several {
                    true => ((*colour).to_owned(), panel.run.label.clone()),
                    false => (path_class(cell), path_name(cell)),
                };
                let Some(bar) = cell_bar(panel, cell, &class) else {
                    continue;
                };
                let entry = (format!("fill {class}"), name, String::new());
                if !legend.contains(&entry) {
                    legend.push(entry);
                }
                let mut label = wait_and_properties(cell);
                if several {
                    let more = [label.1, path_name(cell)];
                    label.1 = more
                        .into_iter()
                        .filter(|text| !text.is_empty())
                        .collect::<Vec<_>>()
                        .join(", ");
                }
                match groups.iter_mut().find(|group| group.label == label) {
                    Some(group) => group.bars.push(bar),
                    None => groups.push(Group {
                        label,
                        bars: vec![bar],
                    }),
                }
                cells.push(cell);
            }
        }
        if groups.is_empty() {
            return None;
        }
        let title = if several {
            &first.subject
        } else {
            &first.title
        };
        let mut note = format!(
            "median, {}, {}",
            first.value_label(),
            Panel::sample_counts(cells.iter())
        );
        if cells.iter().all(|cell| cell.critical.is_some()) {
            note += "; in brackets the path from the waker's store to the woken task";
        }
        if !chosen.is_empty() {
            note = format!("{note}; {chosen}");
        }
        Some(Self {
            panel: first,
            title: title.clone(),
            note,
            legend,
            groups: merge_equal_groups(groups),
        })
    }

    /// Draws the chart. Charts of the same measure share an axis.
    fn draw_chart(&self, all: &[Self]) -> Item {
        let Self {
            panel,
            title,
            note,
            legend,
            groups,
        } = self;
        if let [Group { bars, label }] = groups.as_slice()
            && bars.iter().all(|bar| bar.text == bars[0].text)
        {
            let label = format!("{} {}", label.0, label.1);
            return Item::About(format!(
                "{title}, {}: {} ({note}).",
                label.trim(),
                bars[0].text
            ));
        }
        let about = format!("{title}: medians by way of waiting");
        let measure = panel.value_label();
        let alike = all
            .iter()
            .filter(|kind| kind.panel.value_label() == measure);
        let shared = Shared::of(alike.flat_map(|kind| &kind.groups));
        let chart = bars::draw_chart(shared, groups, panel.unit(), &about);
        Item::Figure(new_figure(title, note, legend, chart))
    }
}

fn cell_bar(panel: &Panel<'_>, cell: &Cell, class: &str) -> Option<Bar> {
    let stats = cell.stats?;
    let value = panel.shown_value(shown_median(cell)?);
    let path = cell
        .critical
        .as_ref()
        .map(|critical| panel.shown_value(critical.net.p50));
    let path = path.map_or(String::new(), |path| format!(" ({})", format_number(path)));
    Some(Bar {
        class: class.into(),
        value,
        text: format!("{}{path}", format_number(value)),
        hint: format!(
            "{}: median {value}{path}, min {}, n = {}",
            cell.title(),
            panel.shown_value(stats.min),
            stats.count
        ),
    })
}

/// Merges groups that have the same way of waiting and equal bars.
fn merge_equal_groups(groups: Vec<Group>) -> Vec<Group> {
    let bars = |group: &Group| -> Vec<(String, String)> {
        let bars = group.bars.iter();
        bars.map(|bar| (bar.class.clone(), bar.text.clone()))
            .collect()
    };
    let mut merged: Vec<(Group, usize)> = Vec::new();
    for group in groups {
        let same = |(one, _): &&mut (Group, usize)| {
            one.label.0 == group.label.0 && bars(one) == bars(&group)
        };
        match merged.iter_mut().find(same) {
            Some((_, alike)) => *alike += 1,
            None => merged.push((group, 0)),
        }
    }
    let named = merged.into_iter().map(|(mut group, alike)| {
        if alike > 0 {
            group.label.1 = format!("{} (and {alike} alike)", group.label.1)
                .trim()
                .to_owned();
        }
        group
    });
    named.collect()
}
