// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacked bars.

use crate::axis::Axis;
use crate::frame::across;
use crate::svg::{Anchor, Canvas, Drawing, WIDTH, number, width_of};

/// A line of the chart.
#[derive(Debug)]
pub enum StackRow {
    /// Heading of the stacks below it.
    Heading(String),
    /// A bar.
    Stack(Stack),
}

/// A bar of parts.
#[derive(Debug)]
pub struct Stack {
    /// Name of the bar.
    pub label: String,
    /// Each part's class of colour, name and length.
    pub parts: Vec<(&'static str, String, f64)>,
    /// The whole, measured separately from the parts: drawn as a mark, with its number next to the parts' sum.
    pub whole: Option<f64>,
}

/// The least and the most room for labels.
const LEFT: [f64; 2] = [60.0, 190.0];
const THICK: f64 = 13.0;
const STEP: f64 = 16.0;

impl Stack {
    /// The sum of the parts.
    pub fn sum(&self) -> f64 {
        self.parts.iter().map(|part| part.2).sum()
    }

    /// Formats the stack's sum, and the whole if it differs.
    fn shown(&self) -> String {
        let sum = number(self.sum());
        let whole = self.whole.map(number).filter(|whole| *whole != sum);
        whole.map_or(sum.clone(), |whole| format!("{sum} / {whole}"))
    }

    fn end(&self) -> f64 {
        self.whole.unwrap_or(0.0).max(self.sum())
    }
}

/// Draws the chart, always linear: only a linear axis shows parts as lengths.
pub fn chart(rows: &[StackRow], unit: &str, about: &str) -> Drawing {
    let stacks = || {
        rows.iter().filter_map(|row| match row {
            StackRow::Stack(stack) => Some(stack),
            StackRow::Heading(_) => None,
        })
    };
    let longest = stacks().map(Stack::end).fold(0.0, f64::max);
    let texts = stacks().map(|stack| width_of(&stack.shown()));
    let right = WIDTH - texts.fold(24.0, f64::max) - 8.0;
    let labels = stacks().map(|stack| width_of(&stack.label) + 8.0);
    let left = labels.fold(LEFT[0], f64::max).min(LEFT[1]);
    let axis = Axis::from_zero(std::iter::once(longest), left, right);
    let bottom = 4.0 + rows.len() as f64 * STEP;
    let mut canvas = Canvas::new(bottom + 32.0);
    across(&mut canvas, &axis, (0.0, bottom), unit);
    canvas.line((left, 0.0), (left, bottom), "base");
    for (index, row) in rows.iter().enumerate() {
        let y = 4.0 + index as f64 * STEP;
        match row {
            StackRow::Heading(text) => {
                canvas.text((2.0, y + 11.0), Anchor::Start, "heading", text);
            }
            StackRow::Stack(stack) => draw(&mut canvas, (&axis, left), y, stack),
        }
    }
    canvas.finish(about)
}

fn draw(canvas: &mut Canvas, (axis, left): (&Axis, f64), y: f64, stack: &Stack) {
    let base_line = y + THICK - 3.0;
    canvas.text((left - 6.0, base_line), Anchor::End, "name", &stack.label);
    let mark = stack.whole.map(|whole| axis.place(whole));
    let mut sum = 0.0;
    for (class, name, value) in stack.parts.iter().filter(|part| part.2 > 0.0) {
        let (from, to) = (axis.place(sum), axis.place(sum + value));
        sum += value;
        let hint = format!("{name}: {}", number(*value));
        // A thin line of background separates adjacent parts without relying on colour.
        canvas.rect(
            (from, y),
            ((to - from - 0.7).max(0.7), THICK),
            &format!("fill {class}"),
            &hint,
        );
        let (from, to) = beside(mark, (from, to));
        if to - from > width_of(name) + 5.0 {
            let middle = (from + to) / 2.0;
            canvas.text(
                (middle, base_line),
                Anchor::Middle,
                &format!("within {class}"),
                name,
            );
        }
    }
    if let Some(x) = mark {
        canvas.line((x, y - 1.5), (x, y + THICK + 1.5), "whole");
    }
    canvas.text(
        (axis.place(stack.end()) + 5.0, base_line),
        Anchor::Start,
        "value",
        &stack.shown(),
    );
}

/// Returns the wider part of a bar's piece next to the mark, so that the mark crosses no name.
fn beside(mark: Option<f64>, (from, to): (f64, f64)) -> (f64, f64) {
    match mark.filter(|x| (from..to).contains(x)) {
        Some(x) if x - from > to - x => (from, x),
        Some(x) => (x, to),
        None => (from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_has_the_mark_through_it() {
        for whole in (0..=200).map(f64::from) {
            let stack = Stack {
                label: "polls, then WFI, WFI trapped".into(),
                parts: vec![
                    ("c-blue", "EL1".into(), 60.0),
                    ("c-red", "EL2".into(), 100.0),
                ],
                whole: Some(whole),
            };
            let text = chart(&[StackRow::Stack(stack)], "instructions", "").body;
            let number = |part: &str, key: &str| -> f64 {
                let (_, rest) = part.split_once(&format!("{key}=\"")).unwrap();
                rest.split('"').next().unwrap().parse().unwrap()
            };
            let mark = text.split("<line class=\"whole\"").nth(1).unwrap();
            let mark = number(mark, "x1");
            for name in text.split("<text class=\"within").skip(1) {
                assert!(
                    (number(name, " x") - mark).abs() > width_of("EL1") / 2.0,
                    "{text}"
                );
            }
            // The label begins within the drawing.
            let label = text.split("class=\"name\"").nth(1).unwrap();
            assert!(
                number(label, " x") > width_of("polls, then WFI, WFI trapped"),
                "{text}"
            );
        }
    }
}
