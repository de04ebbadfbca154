// SPDX-License-Identifier: MIT OR Apache-2.0
//! The medians as bars, grouped by way of waiting: a colour for each hypervisor, or for each run if there are several.

use results::Cell;

use crate::bars::{self, Bar, Group, Shared};
use crate::cells::{Panel, host_polls, path, path_class, waiting};
use crate::frame::{Entry, Item, figure};
use crate::scale::median;
use crate::svg::number;

/// Colours of runs.
const RUNS: [&str; 6] = [
    "c-blue", "c-orange", "c-green", "c-purple", "c-red", "c-grey",
];

/// Returns a chart for each workload and unit, with all runs that have them on one axis.
pub fn items(panels: &[Panel<'_>]) -> Vec<Item> {
    let mut kinds: Vec<Vec<&Panel<'_>>> = Vec::new();
    for panel in panels {
        let alike = |kind: &&mut Vec<&Panel<'_>>| {
            kind[0].subject == panel.subject && kind[0].measure() == panel.measure()
        };
        match kinds.iter_mut().find(alike) {
            Some(kind) => kind.push(panel),
            None => kinds.push(vec![panel]),
        }
    }
    let kinds: Vec<Kind<'_, '_>> = kinds.iter().filter_map(|panels| Kind::of(panels)).collect();
    kinds.iter().map(|kind| kind.item(&kinds)).collect()
}

/// A chart before its axis is known.
struct Kind<'p, 'r> {
    panel: &'p Panel<'r>,
    title: String,
    note: String,
    legend: Vec<Entry>,
    groups: Vec<Group>,
}

/// Returns the cells of a run that a chart of medians shows, and a note on the values chosen for other dimensions.
fn shown<'r>(panel: &Panel<'r>) -> (Vec<&'r Cell>, String) {
    // Up to two limits of the hypervisor's poll are parts of the way of waiting; more limits are a sweep.
    match host_polls(&panel.cells) {
        ..=2 => panel.plain_but(&["host-poll-us"]),
        _ => panel.plain(),
    }
}

impl<'p, 'r> Kind<'p, 'r> {
    fn of(panels: &[&'p Panel<'r>]) -> Option<Self> {
        let first = panels[0];
        let several = panels.len() > 1;
        let mut groups: Vec<Group> = Vec::new();
        let mut legend: Vec<Entry> = Vec::new();
        let mut cells: Vec<&Cell> = Vec::new();
        let mut chosen = String::new();
        for (panel, colour) in panels.iter().zip(RUNS.iter().cycle()) {
            let of_panel;
            (of_panel, chosen) = shown(panel);
            for cell in of_panel {
                let (class, name) = match several {
                    true => ((*colour).to_owned(), panel.run.label.clone()),
                    false => (path_class(cell), path(cell)),
                };
                let Some(bar) = bar(panel, cell, &class) else {
                    continue;
                };
                let entry = (format!("fill {class}"), name, String::new());
                if !legend.contains(&entry) {
                    legend.push(entry);
                }
                let mut label = waiting(cell);
                if several {
                    let more = [label.1, path(cell)];
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
            first.measure(),
            Panel::samples(cells.iter())
        );
        if cells.iter().all(|cell| cell.critical.is_some()) {
            note += "; in brackets from the store that wakes to the woken task";
        }
        if !chosen.is_empty() {
            note = format!("{note}; {chosen}");
        }
        Some(Self {
            panel: first,
            title: title.clone(),
            note,
            legend,
            groups: merged(groups),
        })
    }

    /// Draws the chart; charts of one measure share an axis.
    fn item(&self, all: &[Self]) -> Item {
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
        let measure = panel.measure();
        let alike = all.iter().filter(|kind| kind.panel.measure() == measure);
        let shared = Shared::of(alike.flat_map(|kind| &kind.groups));
        let chart = bars::chart_in(shared, groups, panel.unit(), &about);
        Item::Figure(figure(title, note, legend, chart))
    }
}

fn bar(panel: &Panel<'_>, cell: &Cell, class: &str) -> Option<Bar> {
    let stats = cell.stats?;
    let value = panel.value(median(cell)?);
    let path = cell
        .critical
        .as_ref()
        .map(|critical| panel.value(critical.net.p50));
    let path = path.map_or(String::new(), |path| format!(" ({})", number(path)));
    Some(Bar {
        class: class.into(),
        value,
        text: format!("{}{path}", number(value)),
        hint: format!(
            "{}: median {value}{path}, min {}, n = {}",
            cell.title(),
            panel.value(stats.min),
            stats.count
        ),
    })
}

/// Merges groups of one way of waiting that have equal bars.
fn merged(groups: Vec<Group>) -> Vec<Group> {
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
