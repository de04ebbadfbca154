// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the basic shapes of the charts. The style sheet defines their colours.

use std::fmt::Write;

use maud::{Markup, PreEscaped, Render};

use crate::column::thousands;

/// Width of every chart in user units, which are pixels at the original size.
pub const WIDTH: f64 = 380.0;

/// Anchor of a text at its position.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// The text begins there.
    Start,
    /// The text's middle is there.
    Middle,
    /// The text ends there.
    End,
}

/// A drawing.
#[derive(Debug)]
pub struct Canvas {
    height: f64,
    body: String,
}

impl Canvas {
    /// Creates an empty canvas.
    pub fn new(height: f64) -> Self {
        Self {
            height,
            body: String::new(),
        }
    }

    /// Draws a filled rectangle; `hint` is its tooltip.
    pub fn draw_rect(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        class: &str,
        hint: &str,
    ) {
        let width = width.max(0.0);
        self.append_shape(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}">{}</rect>"#,
            tooltip(hint)
        ));
    }

    /// Draws a straight line.
    pub fn draw_line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.append_shape(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    /// Draws a dot.
    pub fn draw_dot(&mut self, (x, y): (f64, f64), class: &str, hint: &str) {
        self.append_shape(format_args!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3">{}</circle>"#,
            tooltip(hint)
        ));
    }

    /// Draws a line through points.
    pub fn draw_curve(&mut self, points: &[(f64, f64)], class: &str, hint: &str) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            // Writing to a string can't fail.
            let _ = write!(path, "{command}{x:.1} {y:.1}");
        }
        self.append_shape(format_args!(
            r#"<path class="{class}" d="{path}">{}</path>"#,
            tooltip(hint)
        ));
    }

    /// Draws a text. `y` is its baseline.
    pub fn draw_text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.append_shape(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escape_xml(text)
        ));
    }

    /// Returns the drawing; `about` is the text for readers who can't see it.
    pub fn into_drawing(self, about: &str) -> Drawing {
        Drawing {
            height: self.height,
            about: about.into(),
            body: self.body,
        }
    }

    fn append_shape(&mut self, shape: std::fmt::Arguments<'_>) {
        let _ = self.body.write_fmt(shape);
    }
}

/// A finished drawing, as wide as every chart.
#[derive(Debug)]
pub struct Drawing {
    /// Its height.
    pub height: f64,
    /// The text for readers who can't see it.
    pub about: String,
    /// Its shapes.
    pub body: String,
}

impl Render for Drawing {
    fn render(&self) -> Markup {
        PreEscaped(format!(
            r#"<svg viewBox="0 0 {WIDTH:.0} {:.0}" role="img" aria-label="{}">{}</svg>"#,
            self.height,
            escape_xml(&self.about),
            self.body
        ))
    }
}

fn tooltip(hint: &str) -> String {
    match hint {
        "" => String::new(),
        hint => format!("<title>{}</title>", escape_xml(hint)),
    }
}

/// Escapes a text that is not markup.
pub fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Estimates the width of a text at the charts' size.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 5.9
}

/// Formats a number for people: numbers of five digits or more have groups of three digits, and only numbers below 100
/// have decimals, if there are any.
pub fn format_number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || (value - value.round()).abs() < 0.005 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let grouped = thousands(whole.trim_start_matches('-').parse().unwrap_or(value.abs()));
    let sign = if value < 0.0 { "−" } else { "" };
    match fraction {
        "" => format!("{sign}{grouped}"),
        fraction => format!("{sign}{grouped}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        let shown = [0.0, 0.126, 12.34, 77.0, 1234.6, 12_345.0, -1_234_567.0].map(format_number);
        assert_eq!(
            shown,
            ["0", "0.13", "12.3", "77", "1,235", "12,345", "−1,234,567"]
        );
    }

    #[test]
    fn texts_can_not_be_markup() {
        let mut canvas = Canvas::new(10.0);
        canvas.draw_text((0.0, 0.0), Anchor::Start, "", "<script>&\"");
        canvas.draw_rect((0.0, 0.0), (-1.0, 1.0), "", "<b>");
        let text = canvas.into_drawing("a\"b").render().into_string();
        assert!(!text.contains("<script>") && !text.contains("<b>") && !text.contains("a\"b"));
        assert!(text.contains(r#"width="0.0""#));
    }
}
