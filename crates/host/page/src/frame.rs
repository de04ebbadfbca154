// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frame of a chart: its caption, its legend, its axes.

use maud::{Markup, Render, html};

use crate::axis::Axis;
use crate::svg::{Anchor, Canvas, Drawing};

/// An entry of a legend: CSS class of the mark, name, explanation.
pub type Entry = (String, String, String);

/// A chart with its caption and legend.
#[derive(Debug)]
pub struct Figure {
    /// Subject of the chart.
    pub caption: String,
    /// Notes that readers need in order to understand the chart.
    pub note: String,
    /// Meanings of the chart's colours and patterns.
    pub legend: Vec<Entry>,
    /// The chart.
    pub chart: Drawing,
}

/// Creates a figure.
pub fn new_figure(caption: &str, note: &str, legend: &[Entry], chart: Drawing) -> Figure {
    Figure {
        caption: caption.into(),
        note: note.into(),
        legend: legend.to_vec(),
        chart,
    }
}

impl Render for Figure {
    fn render(&self) -> Markup {
        let Self {
            caption,
            note,
            legend,
            chart,
        } = self;
        html! {
            figure {
                figcaption {
                    b { (caption) }
                    @if !note.is_empty() { " " span.muted { (note) } }
                }
                @if !legend.is_empty() {
                    ul.legend {
                        @for (class, name, more) in legend {
                            li {
                                svg class="key" viewBox="0 0 16 10" aria-hidden="true" {
                                    @if class.contains("line") {
                                        path class=(class) d="M0 5L16 5" {}
                                    } @else {
                                        rect class=(class) x="1" y="0" width="10" height="10" {}
                                    }
                                }
                                (name)
                                @if !more.is_empty() { " " span.muted { (more) } }
                            }
                        }
                    }
                }
                (chart)
            }
        }
    }
}

/// One item of a section: a chart, or a sentence between charts.
#[derive(Debug)]
pub enum Item {
    /// A chart.
    Figure(Figure),
    /// A sentence.
    About(String),
}

/// A section of charts.
#[derive(Debug)]
pub struct Section {
    /// The id of the section within the page.
    pub id: &'static str,
    title: &'static str,
    about: String,
    items: Vec<Item>,
}

impl Section {
    /// Removes the section's first chart and returns it.
    pub fn take_first_figure(&mut self) -> Option<Figure> {
        let is_figure = |item: &Item| matches!(item, Item::Figure(_));
        let place = self.items.iter().position(is_figure)?;
        match self.items.remove(place) {
            Item::Figure(figure) => Some(figure),
            Item::About(_) => None,
        }
    }

    /// Returns its charts.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.items.iter().filter_map(|item| match item {
            Item::Figure(figure) => Some(figure),
            Item::About(_) => None,
        })
    }
}

/// Creates a section of charts and sentences.
pub fn new_section(
    id: &'static str,
    title: &'static str,
    about: &str,
    items: Vec<Item>,
) -> Section {
    Section {
        id,
        title,
        about: about.into(),
        items,
    }
}

/// A section without items renders nothing.
impl Render for Section {
    fn render(&self) -> Markup {
        html! {
            @if !self.items.is_empty() {
                section id=(self.id) {
                    h2 { (self.title) }
                    p.about { (self.about) }
                    div.charts {
                        @for item in &self.items {
                            @match item {
                                Item::Figure(figure) => (figure),
                                Item::About(text) => p.about { (text) },
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Draws the ticks and texts of a horizontal axis at `bottom`, with lines up to `top`.
pub fn draw_bottom_axis(canvas: &mut Canvas, axis: &Axis, (top, bottom): (f64, f64), title: &str) {
    let mut right = f64::NEG_INFINITY;
    for (value, text) in axis.ticks() {
        let x = axis.position_of(value);
        canvas.draw_line((x, top), (x, bottom), "grid");
        let half = super::svg::text_width(&text) / 2.0;
        // A long number at the end of the axis would otherwise extend beyond the chart.
        let x = x.min(super::svg::WIDTH - 2.0 - half);
        if x - half > right + 4.0 {
            canvas.draw_text((x, bottom + 13.0), Anchor::Middle, "tick", &text);
            right = x + half;
        }
    }
    let end = super::svg::WIDTH - 2.0;
    canvas.draw_text((end, bottom + 27.0), Anchor::End, "tick", title);
}

/// Draws the ticks and texts of a vertical axis at `left`, with lines up to `right`.
pub fn draw_left_axis(canvas: &mut Canvas, ticks: &[(f64, String)], (left, right): (f64, f64)) {
    for (y, text) in ticks {
        canvas.draw_line((left, *y), (right, *y), "grid");
        canvas.draw_text((left - 5.0, y + 3.5), Anchor::End, "tick", text);
    }
}
