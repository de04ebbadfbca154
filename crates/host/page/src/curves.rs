// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts of lines: distributions, sweeps, trends over runs.

use crate::axis::Axis;
use crate::frame::{Entry, Figure, draw_bottom_axis, draw_left_axis, new_figure};
use crate::svg::{Anchor, Canvas, Drawing, WIDTH, format_number, text_width};

/// A line, with its points sorted by their first coordinate.
#[derive(Debug)]
pub struct Line {
    /// Classes of its colour and pattern.
    pub class: String,
    /// Text at the line's end, or in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

impl Line {
    /// Whether the line's values are so close together that the line is flat on an axis from zero.
    pub fn is_flat(&self) -> bool {
        let values = || self.points.iter().map(|point| point.1);
        let (low, high) = (
            values().fold(f64::MAX, f64::min),
            values().fold(f64::MIN, f64::max),
        );
        high - low <= high.abs() * FLAT
    }
}

/// Returns the smallest and the largest of `values`.
pub fn value_range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::MAX, 0.0], |[low, high], value| {
        [low.min(value), high.max(value)]
    })
}

/// A line is flat if its values differ by at most this share of the largest one.
const FLAT: f64 = 0.05;

/// Maximum width of the names at the lines' ends.
const NAMES: f64 = 150.0;
const LEFT: f64 = 40.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 208.0;
/// Percentiles to label. Each additional digit 9 takes the same length of the axis.
const PERCENTILES: [(f64, &str); 7] = [
    (0.0, "0"),
    (0.5, "50"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
];

/// Returns the figure in which `draw` draws the lines. If the names do not fit at the lines' ends, the lines get
/// numbers, and a legend lists the numbers with the names.
pub fn draw_named_lines(
    title: &str,
    note: &str,
    lines: &[Line],
    draw: impl Fn(&[Line]) -> Drawing,
) -> Figure {
    if lines.iter().all(|line| text_width(&line.name) <= NAMES) {
        return new_figure(title, note, &[], draw(lines));
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
    let legend: Vec<Entry> = legend.collect();
    new_figure(title, note, &legend, draw(&numbered))
}

/// Returns a chart of distributions: the second coordinate is the share of the samples at or below a value. The axis of
/// values covers all of `values`.
pub fn draw_distributions(
    lines: &[Line],
    values: impl Iterator<Item = f64> + Clone,
    unit: &str,
    about: &str,
) -> Drawing {
    let axis = Axis::around_values(values, LEFT, WIDTH - 10.0);
    // The last point of each line is the share 1, which has no finite number of nines. The last point is drawn one nine
    // above the highest other point.
    let nines = lines.iter().map(top_height).fold(1.0, f64::max);
    let place = |part: f64| BOTTOM - (share_height(part).min(nines) / nines) * (BOTTOM - TOP);
    let mut canvas = Canvas::new(BOTTOM + 32.0);
    draw_bottom_axis(
        &mut canvas,
        &axis,
        (TOP, BOTTOM),
        &format!("{unit}{}", axis.scale_note()),
    );
    let ticks = PERCENTILES
        .iter()
        .filter(|(part, _)| share_height(*part) <= nines);
    let ticks: Vec<(f64, String)> = ticks
        .map(|(part, text)| (place(*part), (*text).to_owned()))
        .collect();
    draw_left_axis(&mut canvas, &ticks, (LEFT, WIDTH - 10.0));
    canvas.draw_text(
        (2.0, TOP - 8.0),
        Anchor::Start,
        "tick",
        "% of samples at or below",
    );
    for line in lines {
        canvas.draw_curve(&step_points(line, &axis, &place), &line.class, &line.name);
    }
    canvas.into_drawing(about)
}

/// Returns the height on the axis at which a share of the samples is drawn: the number of nines in the share.
fn share_height(part: f64) -> f64 {
    -(1.0 - part).max(1e-12).log10()
}

/// Returns the height of a line's second to last point, plus a margin.
fn top_height(line: &Line) -> f64 {
    let below = line
        .points
        .iter()
        .map(|point| point.1)
        .filter(|&part| part < 1.0);
    below.map(share_height).fold(1.0, f64::max) + 0.3
}

/// Returns the points of the line as a step function, because nothing is known between two values.
fn step_points(line: &Line, axis: &Axis, place: &impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut level = BOTTOM;
    for &(value, part) in &line.points {
        let (x, y) = (axis.position_of(value), place(part));
        points.extend([(x, level), (x, y)]);
        level = y;
    }
    points
}

/// Returns a chart of lines over a swept quantity, each named at its end. `range` has the smallest and the largest
/// value of the quantity.
pub fn draw_sweep(
    lines: &[Line],
    range: [f64; 2],
    along_title: &str,
    unit: &str,
    about: &str,
) -> Drawing {
    let names = lines
        .iter()
        .map(|line| text_width(&line.name))
        .fold(0.0, f64::max);
    let right = WIDTH - names.min(NAMES) - 20.0;
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let x = Axis::around_values(points().map(|point| point.0), LEFT + 4.0, right - 4.0);
    let y = Axis::from_zero(points().map(|point| point.1).chain(range), BOTTOM, TOP);
    let mut canvas = Canvas::new(BOTTOM + 32.0);
    let title = format!("{along_title}{}", x.scale_note());
    draw_bottom_axis(&mut canvas, &x, (TOP, BOTTOM), &title);
    let ticks: Vec<(f64, String)> = y
        .ticks()
        .into_iter()
        .map(|(value, text)| (y.position_of(value), text))
        .collect();
    draw_left_axis(&mut canvas, &ticks, (LEFT, right));
    canvas.draw_text(
        (2.0, TOP - 8.0),
        Anchor::Start,
        "tick",
        &format!("{unit}{}", y.scale_note()),
    );
    for line in lines {
        let places: Vec<(f64, f64)> = line
            .points
            .iter()
            .map(|point| (x.position_of(point.0), y.position_of(point.1)))
            .collect();
        canvas.draw_curve(&places, &line.class, &line.name);
        let fill = line.class.replace("line", "fill");
        for (place, point) in places.iter().zip(&line.points) {
            let hint = format!(
                "{}: {} at {}",
                line.name,
                format_number(point.1),
                format_number(point.0)
            );
            canvas.draw_dot(*place, &fill, &hint);
        }
    }
    write_names(&mut canvas, lines, right, &y);
    canvas.into_drawing(about)
}

/// Writes each line's name at its end, or as near to it as the other names allow.
fn write_names(canvas: &mut Canvas, lines: &[Line], right: f64, axis: &Axis) {
    let mut ends: Vec<(f64, &Line)> = lines
        .iter()
        .filter_map(|line| Some((axis.position_of(line.points.last()?.1), line)))
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let spread = spread_positions(&ends.iter().map(|end| end.0).collect::<Vec<_>>(), 11.0);
    for ((_, line), y) in ends.iter().zip(spread) {
        canvas.draw_line((right + 3.0, y), (right + 14.0, y), &line.class);
        canvas.draw_text((right + 17.0, y + 3.5), Anchor::Start, "name", &line.name);
    }
}

/// Moves ascending positions down so that they are at least `least` apart.
fn spread_positions(places: &[f64], least: f64) -> Vec<f64> {
    let mut spread: Vec<f64> = Vec::new();
    for &place in places {
        let free = spread.last().map_or(f64::NEG_INFINITY, |last| last + least);
        spread.push(place.max(free));
    }
    // If the last positions are below the bottom of the chart, they move up again.
    let mut free = BOTTOM;
    for place in spread.iter_mut().rev() {
        *place = place.min(free);
        free = *place - least;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lie_on_each_other() {
        let places = spread_positions(&[50.0, 51.0, 204.0, 207.0], 11.0);
        assert_eq!(places, [50.0, 61.0, 197.0, 208.0]);
    }

    #[test]
    fn nothing_can_be_drawn() {
        let empty = Line {
            class: "line s1".into(),
            name: "x".into(),
            points: Vec::new(),
        };
        let text = draw_distributions(&[empty], std::iter::empty(), "ns", "").body;
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
