// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts of medians over a limit or a pause that has several values.

use plan::{DIMENSIONS, Info, Show, Wait};
use results::Cell;

use crate::cells::{Panel, count_host_polls, distinct_values, path_name, wait_class, wait_text};
use crate::curves::{self, Line, value_range};
use crate::frame::{self, Item, Section};
use crate::knee;
use crate::scale::shown_median;
use crate::svg::format_number;

/// The dimension whose chart also shows the cost without any polling.
const LIMIT: &str = "poll-limit-us";
/// A dimension with a line for each of its values, except in the chart over this dimension itself.
const GAP: &str = "gap-us";
/// Maximum number of lines of a chart.
const MOST: usize = 12;
/// Line patterns for the values of [`GAP`].
const PATTERNS: [&str; 4] = ["", " dash", " dots", " dash-dots"];
/// Smallest number of values for which a line is drawn. Fewer values are listed as numbers.
const POINTS: usize = 3;

/// Returns the section with charts over each dimension that has more than one value.
pub fn section(panels: &[Panel<'_>]) -> Section {
    let mut items = Vec::new();
    for info in &DIMENSIONS {
        let Show::Sweep { chart: name, .. } = info.show else {
            continue;
        };
        for panel in panels {
            // If the hypervisor's poll has at most two limits, the charts of medians already show them.
            if info.key == "host-poll-us" && count_host_polls(&panel.cells) <= 2 {
                continue;
            }
            let (cells, chosen) = panel.cells_swept_by(&[info.key, GAP]);
            items.extend(Sweep::with_cells(panel, info, name, cells, chosen).path_items());
        }
    }
    frame::new_section(
        "sweeps",
        "Sweeps",
        "Medians over a limit or a pause, everything else being equal.",
        items,
    )
}

/// The cells of a workload, for charts over one dimension.
struct Sweep<'p, 'r> {
    panel: &'p Panel<'r>,
    info: &'static Info,
    name: &'static str,
    cells: Vec<&'r Cell>,
    /// Note that names the values chosen for other dimensions.
    chosen: String,
    /// Values of the dimension.
    values: Vec<u64>,
    /// The dimension (other than the swept one) that has a line for each of its values, and the values themselves;
    /// `None` if there is no such dimension.
    apart: Option<(&'static Info, Vec<u64>)>,
    /// Whether all cells wait in the same way.
    alike: bool,
}

impl<'p, 'r> Sweep<'p, 'r> {
    fn with_cells(
        panel: &'p Panel<'r>,
        info: &'static Info,
        name: &'static str,
        cells: Vec<&'r Cell>,
        chosen: String,
    ) -> Self {
        let applying: Vec<&Cell> = cells
            .iter()
            .copied()
            .filter(|cell| info.applies(&cell.what))
            .collect();
        let gap = Info::find(GAP).filter(|gap| gap.key != info.key);
        Self {
            panel,
            info,
            name,
            chosen,
            values: distinct_values(&applying, info),
            apart: gap
                .map(|gap| (gap, distinct_values(&cells, gap)))
                .filter(|(_, values)| values.len() > 1),
            alike: applying
                .iter()
                .all(|cell| wait_text(cell) == wait_text(applying[0])),
            cells,
        }
    }

    /// Returns a chart or a sentence for each path. The charts share an axis.
    fn path_items(&self) -> Vec<Item> {
        if self.values.len() < 2 {
            return Vec::new();
        }
        let mut paths: Vec<String> = Vec::new();
        for cell in &self.cells {
            if !paths.contains(&path_name(cell)) {
                paths.push(path_name(cell));
            }
        }
        let all: Vec<(String, Vec<Line>)> = paths
            .into_iter()
            .map(|of| (of.clone(), self.wait_lines(&of)))
            .collect();
        let points = all
            .iter()
            .flat_map(|(_, lines)| lines)
            .flat_map(|line| &line.points);
        let range = value_range(points.map(|point| point.1));
        let mut made: Vec<_> = all.iter().filter(|(_, lines)| !lines.is_empty()).collect();
        // The steepest curve comes first.
        made.sort_by(|one, other| highest_ratio(&other.1).total_cmp(&highest_ratio(&one.1)));
        let made = made.into_iter();
        made.map(|(of, lines)| self.path_item(of, lines, range))
            .collect()
    }

    /// Returns the lines of the path `of`: one for each way of waiting.
    fn wait_lines(&self, of: &str) -> Vec<Line> {
        let here = self
            .cells
            .iter()
            .copied()
            .filter(|cell| path_name(cell) == of);
        let mut lines: Vec<Line> = Vec::new();
        for cell in here.clone().filter(|cell| self.info.applies(&cell.what)) {
            let Some(new) = self.one_point_line(cell) else {
                continue;
            };
            match lines.iter_mut().find(|line| line.name == new.name) {
                Some(line) => line.points.extend(new.points),
                None => lines.push(new),
            }
        }
        lines.retain(|line| line.points.len() > 1);
        for line in &mut lines {
            line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        if self.info.key == LIMIT && !lines.is_empty() {
            // The cells that do not poll show the cost without any polling.
            let asleep = here.filter(|cell| cell.what.wait == Wait::Wfi);
            lines.extend(asleep.filter_map(|cell| {
                let mut line = self.one_point_line(cell)?;
                let value = line.points[0].1;
                line.points = self.values.iter().map(|at| (*at as f64, value)).collect();
                Some(line)
            }));
        }
        lines.truncate(MOST);
        lines
    }

    /// Returns a line with only the point of this cell.
    fn one_point_line(&self, cell: &Cell) -> Option<Line> {
        let (mut name, mut class) = (wait_text(cell), wait_class(cell));
        if let Some((info, values)) = &self.apart {
            let value = format!(
                "{} {} µs",
                info.key.trim_end_matches("-us"),
                info.text(&cell.what)
            );
            name = match self.alike {
                true => value,
                false => format!("{name}, {value}"),
            };
            let number = values
                .iter()
                .position(|value| *value == info.rank(&cell.what));
            let pattern = PATTERNS[number.unwrap_or(0) % PATTERNS.len()];
            let colour = class.split(' ').take(2).collect::<Vec<_>>().join(" ");
            class = format!("{colour}{pattern}");
        }
        Some(Line {
            class,
            name,
            points: vec![(
                self.info.rank(&cell.what) as f64,
                self.panel.shown_value(shown_median(cell)?),
            )],
        })
    }

    fn path_item(&self, of: &str, lines: &[Line], range: [f64; 2]) -> Item {
        let title = format!("{}: {}, {of}", self.name, self.panel.title);
        let bends = lines
            .iter()
            .any(|line| line.points.len() >= POINTS && !line.is_flat());
        if !bends {
            let told: Vec<String> = lines.iter().map(line_text).collect();
            return Item::About(format!(
                "{title}, median {}: {}.",
                self.panel.value_label(),
                told.join("; ")
            ));
        }
        let mut note = format!(
            "median, {}, {}",
            self.panel.value_label(),
            Panel::sample_counts(self.cells.iter())
        );
        if !self.chosen.is_empty() {
            note = format!("{note}; {}", self.chosen);
        }
        let knees: Vec<String> = lines.iter().filter_map(knee_text).collect();
        if !knees.is_empty() {
            note = format!("{note}; knee: {}", knees.join(", "));
        }
        let along = format!("{}, µs", self.name.to_lowercase());
        let unit = self.panel.unit();
        Item::Figure(curves::draw_named_lines(&title, &note, lines, |lines| {
            curves::draw_sweep(lines, range, &along, unit, &title)
        }))
    }
}

/// Returns the highest ratio of the largest to the smallest value within a line.
fn highest_ratio(lines: &[Line]) -> f64 {
    let ratios = lines.iter().map(|line| {
        let [low, high] = value_range(line.points.iter().map(|point| point.1));
        high / low.max(f64::MIN_POSITIVE)
    });
    ratios.fold(0.0, f64::max)
}

/// Lists the values of a line as text.
fn line_text(line: &Line) -> String {
    let [first, .., last] = line.points.as_slice() else {
        return String::new();
    };
    match line.is_flat() {
        true => {
            let [low, high] =
                value_range(line.points.iter().map(|point| point.1)).map(format_number);
            let values = if low == high {
                low
            } else {
                format!("{low} to {high}")
            };
            format!("{} {values} from {} to {} µs", line.name, first.0, last.0)
        }
        false => {
            let points = line.points.iter();
            let points = points.map(|(at, value)| format!("{} at {at} µs", format_number(*value)));
            format!("{} {}", line.name, points.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Describes where a line bends, if it does.
fn knee_text(line: &Line) -> Option<String> {
    let at = knee::find_knee(&line.points)?;
    Some(format!("{} at {at} µs", line.name))
}
