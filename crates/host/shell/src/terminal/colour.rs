// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colours of a table on a terminal. There are few colours, and no fact is shown by colour alone.

use anstyle::{AnsiColor, Style};
use page::grid::{Paint, Part, plain};

const BETTER: Style = AnsiColor::Green.on_default();
const WORSE: Style = AnsiColor::Red.on_default().bold();
/// Style of a value with a star, which needs the note next to the table.
const MARKED: Style = AnsiColor::Yellow.on_default();
const FAINT: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// Returns the function that adds colours, if the terminal has them.
pub fn painter(has_colours: bool) -> Paint<'static> {
    match has_colours {
        true => &paint_part,
        false => &plain,
    }
}

fn paint_part(part: Part, text: &str) -> String {
    match style(part, text) {
        Some(style) => format!("{style}{text}{style:#}"),
        None => text.to_owned(),
    }
}

fn style(part: Part, text: &str) -> Option<Style> {
    match part {
        Part::Title => Some(BOLD),
        Part::Group => Some(FAINT),
        Part::Value if text.starts_with("better") => Some(BETTER),
        Part::Value if text.starts_with("worse") => Some(WORSE),
        Part::Value if text.ends_with(page::columns::MARK) => Some(MARKED),
        Part::Value if ["·", "-", "?"].contains(&text) => Some(FAINT),
        Part::Value => None,
    }
}
