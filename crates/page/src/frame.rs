// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is around a chart: its caption, its legend, its axes.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::svg::{Anchor, Canvas};

/// An entry of a legend: class of the mark, name, what more there is to say.
pub type Entry = (String, String, String);

/// A chart with its caption and legend.
pub fn figure(caption: &str, note: &str, legend: &[Entry], chart: Markup) -> Markup {
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

/// A section of charts; nothing if there are none.
pub fn section(id: &str, title: &str, about: &str, figures: &[Markup]) -> Markup {
    if figures.is_empty() {
        return html! {};
    }
    html! {
        section id=(id) {
            h2 { (title) }
            p.about { (about) }
            div.charts { @for figure in figures { (figure) } }
        }
    }
}

/// Lines and texts of a horizontal axis at `bottom`, up to `top`.
pub fn across(canvas: &mut Canvas, axis: &Axis, (top, bottom): (f64, f64), title: &str) {
    let mut right = f64::NEG_INFINITY;
    for (value, text) in axis.ticks() {
        let x = axis.place(value);
        canvas.line((x, top), (x, bottom), "grid");
        let half = super::svg::width_of(&text) / 2.0;
        // A long number at the end would leave the chart.
        let x = x.min(super::svg::WIDTH - 2.0 - half);
        if x - half > right + 4.0 {
            canvas.text((x, bottom + 13.0), Anchor::Middle, "tick", &text);
            right = x + half;
        }
    }
    let end = super::svg::WIDTH - 2.0;
    canvas.text((end, bottom + 27.0), Anchor::End, "tick", title);
}

/// Lines and texts of a vertical axis at `left`, up to `right`.
pub fn along(canvas: &mut Canvas, ticks: &[(f64, String)], (left, right): (f64, f64)) {
    for (y, text) in ticks {
        canvas.line((left, *y), (right, *y), "grid");
        canvas.text((left - 5.0, y + 3.5), Anchor::End, "tick", text);
    }
}
