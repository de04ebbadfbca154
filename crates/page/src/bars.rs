// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of bars.

use maud::Markup;

use crate::axis::{Axis, Kind};
use crate::frame::across;
use crate::svg::{Anchor, Canvas, WIDTH, number, width_of};

/// A group: the bars of one row of labels.
#[derive(Debug)]
pub struct Group {
    /// What they have in common.
    pub label: (String, String),
    /// The bars.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Debug)]
pub struct Bar {
    /// Class of its colour.
    pub class: &'static str,
    /// Its length.
    pub value: f64,
    /// What is shown when it is pointed at.
    pub hint: String,
}

const LEFT: f64 = 108.0;
const THICK: f64 = 9.0;
const STEP: f64 = 11.0;
const GAP: f64 = 8.0;
/// Height of a label of two lines.
const TWO_LINES: f64 = 22.0;

impl Group {
    /// The height of its bars, or of its label if that is higher.
    fn height(&self) -> f64 {
        let bars = self.bars.len() as f64 * STEP;
        match self.label.1.as_str() {
            "" => bars,
            _ => bars.max(TWO_LINES),
        }
    }
}

/// The chart; `unit` is written at its axis.
pub fn chart(groups: &[Group], unit: &str, about: &str) -> Markup {
    let values = groups.iter().flat_map(|group| &group.bars);
    let values = values.map(|bar| bar.value);
    let texts = values.clone().map(|value| width_of(&number(value)));
    let right = WIDTH - texts.fold(24.0, f64::max) - 8.0;
    let axis = Axis::from_zero(values, LEFT, right);
    let bottom = 4.0 + groups.iter().map(|group| group.height() + GAP).sum::<f64>();
    let mut canvas = Canvas::new(bottom + 32.0);
    across(
        &mut canvas,
        &axis,
        (0.0, bottom),
        &format!("{unit}{}", axis.note()),
    );
    let mut y = 4.0;
    for group in groups {
        let middle = y + group.height() / 2.0;
        label(&mut canvas, middle, &group.label);
        let bars = group.bars.len() as f64 * STEP;
        for (place, bar) in group.bars.iter().enumerate() {
            draw(
                &mut canvas,
                &axis,
                middle - bars / 2.0 + place as f64 * STEP,
                bar,
            );
        }
        y += group.height() + GAP;
    }
    canvas.line((LEFT, 0.0), (LEFT, bottom), "base");
    canvas.finish(about)
}

/// The label of a group: what it is, and what of it is special below.
fn label(canvas: &mut Canvas, middle: f64, (name, more): &(String, String)) {
    let x = LEFT - 6.0;
    if more.is_empty() {
        canvas.text((x, middle + 2.5), Anchor::End, "name", name);
    } else {
        canvas.text((x, middle - 2.5), Anchor::End, "name", name);
        canvas.text((x, middle + 8.5), Anchor::End, "tick", more);
    }
}

/// A bar, or where a length would mislead a dot at the end of a thin line.
fn draw(canvas: &mut Canvas, axis: &Axis, y: f64, bar: &Bar) {
    let end = axis.place(bar.value);
    let middle = y + THICK / 2.0;
    if axis.kind == Kind::Linear {
        canvas.rect(
            (LEFT, y),
            (end - LEFT, THICK),
            &format!("fill {}", bar.class),
            &bar.hint,
        );
    } else {
        canvas.line((LEFT, middle), (end, middle), "lead");
        canvas.dot((end, middle), &format!("fill {}", bar.class), &bar.hint);
    }
    canvas.text(
        (end + 5.0, middle + 3.5),
        Anchor::Start,
        "value",
        &number(bar.value),
    );
}
