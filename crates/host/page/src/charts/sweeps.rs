// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts over a limit or a pause with several values.

use plan::{DIMENSIONS, Info, Show, Wait};
use results::Cell;

use crate::cells::{Panel, distinct, path, wait_class, waiting_text};
use crate::curves::{self, Line};
use crate::frame::{self, Figure, Section, figure};
use crate::knee;

/// The limit for which the cost without any polling is shown.
const LIMIT: &str = "poll-limit-us";
/// A dimension with a chart for each of its values, where it is not swept itself.
const GAP: &str = "gap-us";
/// Lines that one chart can show.
const MOST: usize = 12;
/// Charts for each workload and swept dimension.
const CHARTS: usize = 12;

/// Returns the section: charts of each dimension with more than one value.
pub fn section(panels: &[Panel<'_>]) -> Section {
    let mut figures = Vec::new();
    for info in &DIMENSIONS {
        let Show::Sweep { chart: name, .. } = info.show else {
            continue;
        };
        for panel in panels {
            let (cells, chosen) = panel.plain_but(&[info.key, GAP]);
            let groups = groups(&cells, Info::find(GAP).filter(|gap| gap.key != info.key));
            let charts = groups.into_iter().filter_map(|(title, cells)| {
                let title = format!("{name}: {}, {title}", panel.title);
                chart(panel, info, (&title, &chosen), &cells)
            });
            figures.extend(charts.take(CHARTS));
        }
    }
    frame::section(
        "sweeps",
        "Sweeps",
        "Medians over a limit or a pause, everything else being equal.",
        figures,
    )
}

/// Returns the cells of one path each, and of one value of `apart`, with their title.
fn groups<'r>(cells: &[&'r Cell], apart: Option<&Info>) -> Vec<(String, Vec<&'r Cell>)> {
    let several = apart.filter(|info| distinct(cells, info).len() > 1);
    let mut groups: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in cells {
        let title = match several {
            Some(info) => format!("{}, {} {}", path(cell), info.key, info.text(&cell.what)),
            None => path(cell),
        };
        match groups.iter_mut().find(|group| group.0 == title) {
            Some(group) => group.1.push(cell),
            None => groups.push((title, vec![cell])),
        }
    }
    groups
}

fn chart(
    panel: &Panel<'_>,
    info: &Info,
    (title, chosen): (&str, &str),
    cells: &[&Cell],
) -> Option<Figure> {
    let applying: Vec<&Cell> = cells
        .iter()
        .copied()
        .filter(|cell| info.applies(&cell.what))
        .collect();
    let swept = distinct(&applying, info);
    let (Some(&first), Some(&last)) = (swept.first(), swept.last()) else {
        return None;
    };
    if first == last {
        return None;
    }
    let mut lines = lines(panel, info, &applying);
    let knees: Vec<String> = lines.iter().filter_map(knee_of).collect();
    if info.key == LIMIT {
        // Cost without any polling.
        let unlimited = cells.iter().filter(|cell| cell.what.wait == Wait::Wfi);
        for mut line in unlimited.flat_map(|cell| beginning(panel, info, cell)) {
            let value = line.points[0].1;
            line.points = vec![(first as f64, value), (last as f64, value)];
            lines.push(line);
        }
    }
    lines.retain(|line| line.points.len() > 1);
    lines.truncate(MOST);
    let mut note = format!(
        "p50, {}, {}",
        panel.lead_measure(),
        Panel::samples(cells.iter())
    );
    if !chosen.is_empty() {
        note = format!("{note}; {chosen}");
    }
    if !knees.is_empty() {
        note = format!("{note}; knee: {}", knees.join(", "));
    }
    let chart = curves::sweep(&lines, &format!("{}, µs", info.key), panel.unit(), title);
    Some(figure(title, &note, &[], chart))
}

/// Describes where a line bends, if it does.
fn knee_of(line: &Line) -> Option<String> {
    let at = knee::knee(&line.points)?;
    Some(format!("{} at {at} µs", line.name))
}

/// Returns a line for each way of waiting.
fn lines(panel: &Panel<'_>, info: &Info, cells: &[&Cell]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for new in cells.iter().filter_map(|cell| beginning(panel, info, cell)) {
        match lines.iter_mut().find(|line| line.name == new.name) {
            Some(line) => line.points.extend(new.points),
            None => lines.push(new),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

/// Returns the line that begins with a cell.
fn beginning(panel: &Panel<'_>, info: &Info, cell: &Cell) -> Option<Line> {
    Some(Line {
        class: wait_class(cell),
        name: waiting_text(cell),
        points: vec![(
            info.rank(&cell.what) as f64,
            panel.value(panel.lead().median(cell)?),
        )],
    })
}
