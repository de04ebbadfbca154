// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of bars.

use crate::axis::{Axis, AxisKind};
use crate::frame::draw_bottom_axis;
use crate::svg::{Anchor, Canvas, Drawing, WIDTH, text_width};

/// A group of bars that share one label.
#[derive(Debug)]
pub struct Group {
    /// The group's name, and the line below the name with the group's special properties.
    pub label: (String, String),
    /// The bars.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Debug)]
pub struct Bar {
    /// CSS classes of the bar's colour and pattern.
    pub class: String,
    /// The value that the bar's length shows.
    pub value: f64,
    /// Text at the end of the bar.
    pub text: String,
    /// Text of the tooltip.
    pub hint: String,
}

/// Minimum width for labels. Longer labels get more.
const LEFT: f64 = 108.0;
/// Maximum width for labels.
const MOST: f64 = 260.0;
const THICK: f64 = 9.0;
const STEP: f64 = 11.0;
const GAP: f64 = 8.0;
/// Width of the second line's letters, relative to the first line's.
const SMALL: f64 = 0.92;
/// Height of a label's line.
const LINE: f64 = 11.0;

impl Group {
    /// Returns the height of the group's bars, or the height of its label if that is larger.
    fn height(&self) -> f64 {
        let bars = self.bars.len() as f64 * STEP;
        bars.max((1 + self.property_lines().len()) as f64 * LINE)
    }

    /// Returns the group's special properties, wrapped into lines that fit.
    fn property_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for part in self.label.1.split(", ").filter(|part| !part.is_empty()) {
            match lines.last_mut() {
                Some(line) if text_width(&format!("{line}, {part}")) * SMALL <= LEFT => {
                    *line = format!("{line}, {part}")
                }
                Some(line) => {
                    line.push(',');
                    lines.push(part.into());
                }
                None => lines.push(part.into()),
            }
        }
        lines
    }
}

/// The common scale of charts that are next to each other: bars of equal length have equal values in all of them.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    axis: Axis,
    left: f64,
}

impl Shared {
    /// Fits the scale to the groups of all charts.
    pub fn of<'g>(groups: impl Iterator<Item = &'g Group> + Clone) -> Self {
        let values = groups.clone().flat_map(|group| &group.bars);
        let texts = values.clone().map(|bar| text_width(&bar.text));
        let values = values.map(|bar| bar.value);
        let right = WIDTH - texts.fold(24.0, f64::max) - 8.0;
        let labels = groups.map(|group| {
            let lines = group.property_lines();
            let widest = lines
                .iter()
                .map(|line| text_width(line) * SMALL)
                .fold(0.0, f64::max);
            widest.max(text_width(&group.label.0)) + 12.0
        });
        let left = labels.fold(LEFT, f64::max).min(MOST);
        let axis = Axis::from_zero(values, left, right);
        Self { axis, left }
    }
}

/// Returns the chart of `groups`. `unit` labels the axis, and `about` describes the chart for readers who can't see it.
pub fn draw_chart(shared: Shared, groups: &[Group], unit: &str, about: &str) -> Drawing {
    let Shared { axis, left } = shared;
    let bottom = 4.0 + groups.iter().map(|group| group.height() + GAP).sum::<f64>();
    let mut canvas = Canvas::new(bottom + 32.0);
    draw_bottom_axis(
        &mut canvas,
        &axis,
        (0.0, bottom),
        &format!("{unit}{}", axis.scale_note()),
    );
    let mut y = 4.0;
    for group in groups {
        let middle = y + group.height() / 2.0;
        draw_label(&mut canvas, (left - 6.0, middle), group);
        let bars = group.bars.len() as f64 * STEP;
        for (place, bar) in group.bars.iter().enumerate() {
            let top = middle - bars / 2.0 + place as f64 * STEP;
            draw_bar(&mut canvas, (&axis, left), top, bar);
        }
        y += group.height() + GAP;
    }
    let base = bars_origin(&axis, left);
    canvas.draw_line((base, 0.0), (base, bottom), "base");
    canvas.into_drawing(about)
}

/// Returns the position at which bars begin.
fn bars_origin(axis: &Axis, left: f64) -> f64 {
    match axis.kind {
        AxisKind::Linear => axis.position_of(0.0),
        AxisKind::Log => left,
    }
}

/// Draws the label of a group, with the group's special properties below.
fn draw_label(canvas: &mut Canvas, (x, middle): (f64, f64), group: &Group) {
    let properties = group.property_lines();
    let top = middle + 2.5 - properties.len() as f64 * LINE / 2.0;
    canvas.draw_text((x, top), Anchor::End, "name", &group.label.0);
    for (line, text) in (1..).zip(&properties) {
        canvas.draw_text((x, top + f64::from(line) * LINE), Anchor::End, "tick", text);
    }
}

/// Draws a bar. On a logarithmic scale, where the length of a bar would mislead, draws a dot at the end of a thin line.
fn draw_bar(canvas: &mut Canvas, (axis, left): (&Axis, f64), y: f64, bar: &Bar) {
    let end = axis.position_of(bar.value);
    let middle = y + THICK / 2.0;
    if axis.kind == AxisKind::Linear {
        let base = bars_origin(axis, left);
        canvas.draw_rect(
            (base.min(end), y),
            ((end - base).abs(), THICK),
            &format!("fill {}", bar.class),
            &bar.hint,
        );
    } else {
        canvas.draw_line((left, middle), (end, middle), "lead");
        canvas.draw_dot((end, middle), &format!("fill {}", bar.class), &bar.hint);
    }
    let (x, anchor) = match bar.value < 0.0 {
        true => (end - 5.0, Anchor::End),
        false => (end + 5.0, Anchor::Start),
    };
    canvas.draw_text((x, middle + 3.5), anchor, "value", &bar.text);
}
