// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacked bars.

use crate::axis::Axis;
use crate::frame::{Entry, Item, draw_bottom_axis, new_figure};
use crate::svg::{Anchor, Canvas, Drawing, WIDTH, format_number, text_width};

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
    /// The parts: the CSS class of the colour, the name and the length of each.
    pub parts: Vec<(&'static str, String, f64)>,
    /// The whole, which is measured separately from the parts. The whole is drawn as a mark, and its number is next to
    /// the sum of the parts.
    pub whole: Option<f64>,
}

/// The minimum and the maximum width for labels.
const LEFT: [f64; 2] = [60.0, 190.0];
const THICK: f64 = 13.0;
const STEP: f64 = 16.0;

impl Stack {
    /// The sum of the parts.
    pub fn sum(&self) -> f64 {
        self.parts.iter().map(|part| part.2).sum()
    }

    /// Formats the sum of the parts, and the whole if it differs from the sum.
    fn sum_text(&self) -> String {
        let sum = format_number(self.sum());
        let whole = self.whole.map(format_number).filter(|whole| *whole != sum);
        whole.map_or(sum.clone(), |whole| format!("{sum} / {whole}"))
    }

    fn number_end(&self) -> f64 {
        self.whole.unwrap_or(0.0).max(self.sum())
    }
}

/// A chart, or a sentence that replaces it.
#[derive(Debug)]
pub enum Chart {
    /// A sentence.
    About(String),
    /// Bars.
    Stacks(Stacks),
}

/// Bars below their headings, before their scale is known.
#[derive(Debug)]
pub struct Stacks {
    /// Subject of the chart.
    pub caption: String,
    /// Notes that the reader needs.
    pub note: String,
    /// Meanings of the colours.
    pub legend: Vec<Entry>,
    /// The lines, from the top.
    pub rows: Vec<StackRow>,
    /// Unit of the axis.
    pub unit: String,
    /// Description for readers who can't see the chart.
    pub about: String,
}

/// Draws the charts. Charts of the same unit share a scale, so equal lengths are equal values. A chart that has only
/// short bars is an exception: it has its own scale, and a note.
pub fn draw_charts(charts: Vec<Chart>) -> Vec<Item> {
    let all = charts.iter().filter_map(|chart| match chart {
        Chart::About(_) => None,
        Chart::Stacks(stacks) => Some(stacks),
    });
    let all: Vec<&Stacks> = all.collect();
    let items = charts.iter().map(|chart| match chart {
        Chart::About(text) => Item::About(text.clone()),
        Chart::Stacks(stacks) => stacks.draw_chart(&all),
    });
    items.collect()
}

impl Stacks {
    fn all_stacks(&self) -> impl Iterator<Item = &Stack> {
        self.rows.iter().filter_map(|row| match row {
            StackRow::Stack(stack) => Some(stack),
            StackRow::Heading(_) => None,
        })
    }

    fn longest_end(&self) -> f64 {
        self.all_stacks().map(Stack::number_end).fold(0.0, f64::max)
    }

    fn draw_chart(&self, all: &[&Self]) -> Item {
        /// The parts of a bar are too thin to be seen if the longest bar is this many times as long as the bar.
        const THIN: f64 = 10.0;
        let alike = |other: &&&Self| other.unit == self.unit;
        let most = all.iter().filter(alike).map(|other| other.longest_end());
        let most = most.fold(0.0, f64::max);
        let (sharing, note): (Vec<&Self>, _) = if self.longest_end() * THIN < most {
            (vec![self], format!("{}; a scale of its own", self.note))
        } else {
            let sharing = all.iter().filter(alike).copied();
            let sharing = sharing.filter(|other| other.longest_end() * THIN >= most);
            (sharing.collect(), self.note.clone())
        };
        let drawing = self.draw_stacks(Scale::fit_to_stacks(&sharing));
        Item::Figure(new_figure(&self.caption, &note, &self.legend, drawing))
    }

    fn draw_stacks(&self, scale: Scale) -> Drawing {
        let bottom = 4.0 + self.rows.len() as f64 * STEP;
        let mut canvas = Canvas::new(bottom + 32.0);
        draw_bottom_axis(&mut canvas, &scale.axis, (0.0, bottom), &self.unit);
        canvas.draw_line((scale.left, 0.0), (scale.left, bottom), "base");
        for (index, row) in self.rows.iter().enumerate() {
            let y = 4.0 + index as f64 * STEP;
            match row {
                StackRow::Heading(text) => {
                    canvas.draw_text((2.0, y + 11.0), Anchor::Start, "heading", text);
                }
                StackRow::Stack(stack) => draw_stack(&mut canvas, scale, y, stack),
            }
        }
        canvas.into_drawing(&self.about)
    }
}

/// The position at which bars begin, and the factor from values to lengths.
#[derive(Clone, Copy, Debug)]
struct Scale {
    axis: Axis,
    left: f64,
}

impl Scale {
    /// Fits the scale to all bars, their labels and their numbers. The scale is linear, because the lengths of parts
    /// can be compared only on a linear scale.
    fn fit_to_stacks(charts: &[&Stacks]) -> Self {
        let stacks = || charts.iter().flat_map(|chart| chart.all_stacks());
        let longest = stacks().map(Stack::number_end).fold(0.0, f64::max);
        let texts = stacks().map(|stack| text_width(&stack.sum_text()));
        let right = WIDTH - texts.fold(24.0, f64::max) - 8.0;
        let labels = stacks().map(|stack| text_width(&stack.label) + 8.0);
        let left = labels.fold(LEFT[0], f64::max).min(LEFT[1]);
        let axis = Axis::from_zero(std::iter::once(longest), left, right);
        Self { axis, left }
    }
}

fn draw_stack(canvas: &mut Canvas, Scale { axis, left }: Scale, y: f64, stack: &Stack) {
    let base_line = y + THICK - 3.0;
    canvas.draw_text((left - 6.0, base_line), Anchor::End, "name", &stack.label);
    let mark = stack.whole.map(|whole| axis.position_of(whole));
    let mut sum = 0.0;
    for (class, name, value) in stack.parts.iter().filter(|part| part.2 > 0.0) {
        let (from, to) = (axis.position_of(sum), axis.position_of(sum + value));
        sum += value;
        let hint = format!("{name}: {}", format_number(*value));
        // A thin line in the background's colour separates adjacent parts, so that readers need not rely on colours.
        canvas.draw_rect(
            (from, y),
            ((to - from - 0.7).max(0.7), THICK),
            &format!("fill {class}"),
            &hint,
        );
        let (from, to) = wider_side(mark, (from, to));
        if to - from > text_width(name) + 5.0 {
            let middle = (from + to) / 2.0;
            canvas.draw_text(
                (middle, base_line),
                Anchor::Middle,
                &format!("within {class}"),
                name,
            );
        }
    }
    if let Some(x) = mark {
        canvas.draw_line((x, y - 1.5), (x, y + THICK + 1.5), "whole");
    }
    canvas.draw_text(
        (axis.position_of(stack.number_end()) + 5.0, base_line),
        Anchor::Start,
        "value",
        &stack.sum_text(),
    );
}

/// Returns the wider of the two pieces into which the mark divides a part of a bar, so that the mark does not cross the
/// part's name.
fn wider_side(mark: Option<f64>, (from, to): (f64, f64)) -> (f64, f64) {
    match mark.filter(|x| (from..to).contains(x)) {
        Some(x) if x - from > to - x => (from, x),
        Some(x) => (x, to),
        None => (from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(rows: Vec<StackRow>) -> Stacks {
        Stacks {
            caption: String::new(),
            note: "n = 1".into(),
            legend: Vec::new(),
            rows,
            unit: "instructions".into(),
            about: String::new(),
        }
    }

    /// Returns a chart of one bar. The arguments are the bar's length and the number of letters in its label.
    fn bar(length: f64, letters: usize) -> Stacks {
        chart(vec![StackRow::Stack(Stack {
            label: "w".repeat(letters),
            parts: vec![("c-blue", "EL1".into(), length)],
            whole: None,
        })])
    }

    #[test]
    fn equal_lengths_are_equal_values_in_all_charts_whose_bars_can_be_seen() {
        let charts = [bar(1000.0, 3), bar(500.0, 20), bar(99.0, 3)];
        let items = draw_charts(charts.into_iter().map(Chart::Stacks).collect());
        let figures = items.iter().map(|item| match item {
            Item::Figure(figure) => figure,
            Item::About(text) => panic!("{text}"),
        });
        let width = |body: &str| -> f64 {
            let (_, bar) = body.split_once("class=\"fill c-blue\"").unwrap();
            let (_, width) = bar.split_once("width=\"").unwrap();
            width.split('"').next().unwrap().parse().unwrap()
        };
        let shown: Vec<(f64, &str)> = figures
            .map(|figure| (width(&figure.chart.body), figure.note.as_str()))
            .collect();
        assert!((shown[0].0 - 2.0 * shown[1].0).abs() < 2.0, "{shown:?}");
        assert_eq!(shown[1].1, "n = 1");
        assert!(shown[2].0 > shown[1].0, "{shown:?}");
        assert_eq!(shown[2].1, "n = 1; a scale of its own");
    }

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
            let chart = chart(vec![StackRow::Stack(stack)]);
            let text = chart.draw_stacks(Scale::fit_to_stacks(&[&chart])).body;
            let number = |part: &str, key: &str| -> f64 {
                let (_, rest) = part.split_once(&format!("{key}=\"")).unwrap();
                rest.split('"').next().unwrap().parse().unwrap()
            };
            let mark = text.split("<line class=\"whole\"").nth(1).unwrap();
            let mark = number(mark, "x1");
            for name in text.split("<text class=\"within").skip(1) {
                assert!(
                    (number(name, " x") - mark).abs() > text_width("EL1") / 2.0,
                    "{text}"
                );
            }
            // The label begins inside the drawing.
            let label = text.split("class=\"name\"").nth(1).unwrap();
            assert!(
                number(label, " x") > text_width("polls, then WFI, WFI trapped"),
                "{text}"
            );
        }
    }
}
