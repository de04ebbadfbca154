// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lays out a table as lines of a terminal.

use std::borrow::Borrow;

pub use crate::Column;

/// The kind of a text in a table, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Title of a group of columns.
    Group,
    /// Title of a column.
    Title,
    /// A word or a number.
    Value,
}

/// Adds colours to a text without changing its width.
pub type Paint<'p> = &'p dyn Fn(Part, &str) -> String;

/// Adds no colours.
pub fn plain(_: Part, text: &str) -> String {
    text.to_owned()
}

/// Returns a table's number of rows.
pub fn row_count<C: Borrow<Column>>(columns: &[C]) -> usize {
    let rows = columns.iter().map(|column| column.borrow().texts().len());
    rows.max().unwrap_or(0)
}

/// Returns the lines of a table: the groups' titles (if there are any), the columns' titles, and the rows.
pub fn lines<C: Borrow<Column>>(columns: &[C]) -> Vec<String> {
    let columns: Vec<&Column> = columns.iter().map(C::borrow).collect();
    painted_lines(&columns, &plain)
}

/// Like [`lines`], with colours.
fn painted_lines(columns: &[&Column], paint: Paint<'_>) -> Vec<String> {
    let rows = row_count(columns);
    let mut lines = Vec::new();
    if columns.iter().any(|column| !column.group().is_empty()) {
        lines.push(group_line(columns, paint));
    }
    let widths = column_widths(columns);
    let line = |part: Part, text: &dyn Fn(&Column) -> &str| {
        let cells = columns.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(column, &width)| align_text(column, text(column), width, part, paint))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    lines.push(line(Part::Title, &|column| column.title()));
    for row in 0..rows {
        lines.push(line(Part::Value, &|column| {
            column.texts().get(row).map_or("", String::as_str)
        }));
    }
    lines
}

/// Texts that stand for a missing value.
pub const NOTHING: [&str; 4] = ["·", "-", "?", ""];

/// Like [`lines`], with `paint`, but at most `width` wide if a width is given. To fit, leaves out columns that are not
/// the answer: first those without a value, then those whose rows all have the same text, then numbers from the right.
/// A last line names the columns left out, with the common text of a column if there is one. If the other columns are
/// still too wide, breaks the texts of the widest column of words into several lines.
pub fn fitted_lines(
    mut columns: Vec<&Column>,
    width: Option<usize>,
    paint: Paint<'_>,
) -> Vec<String> {
    let Some(width) = width else {
        return painted_lines(&columns, paint);
    };
    let all = columns.clone();
    let mut left_out = Vec::new();
    while total_width(&column_widths(&columns)) > width {
        let Some(least) = least_needed_column(&columns) else {
            break;
        };
        left_out.push(columns.remove(least));
    }
    let mut lines = match break_widest(&columns, width) {
        Some(broken) => painted_lines(&broken.iter().collect::<Vec<_>>(), paint),
        None => painted_lines(&columns, paint),
    };
    let is_out = |column: &&&Column| left_out.iter().any(|out| std::ptr::eq(*out, **column));
    let (constants, dropped): (Vec<&&Column>, Vec<&&Column>) =
        all.iter().filter(is_out).partition(|column| {
            column
                .common_text()
                .is_some_and(|text| !NOTHING.contains(&text))
        });
    let constants = constants.into_iter();
    let constants: Vec<String> = constants
        .map(|column| {
            format!(
                "{} {}",
                full_name(column),
                column.common_text().unwrap_or_default()
            )
        })
        .collect();
    let names: Vec<String> = dropped
        .into_iter()
        .map(|column| full_name(column))
        .collect();
    let mut clauses = Vec::new();
    if !constants.is_empty() {
        clauses.push(format!("in all rows: {}", constants.join(", ")));
    }
    if !names.is_empty() {
        clauses.push(format!("left out: {}", names.join(", ")));
    }
    if !clauses.is_empty() {
        let note = format!("({}; --wide shows all columns)", clauses.join("; "));
        lines.extend(wrapped(&note, Some(width)));
    }
    lines
}

/// Minimum width of a column whose texts are broken into several lines.
const LEAST: usize = 16;

/// Returns the columns at a total width of `width`. The texts of the widest column of words are broken into several
/// lines. `None` if the columns fit without that, or if the widest column would become too narrow.
fn break_widest(columns: &[&Column], width: usize) -> Option<Vec<Column>> {
    let over = total_width(&column_widths(columns))
        .checked_sub(width)
        .filter(|over| *over > 0)?;
    let words = (0..columns.len()).filter(|place| columns[*place].is_left());
    let widest = words.max_by_key(|place| column_width(columns[*place]))?;
    let room = column_width(columns[widest]).checked_sub(over);
    let room = room.filter(|room| *room >= LEAST)?;
    let parts = columns[widest].texts().iter().map(|text| {
        let mut parts = wrapped(text, Some(room - INDENT.len()));
        parts
            .iter_mut()
            .skip(1)
            .for_each(|part| part.insert_str(0, INDENT));
        parts
    });
    let parts: Vec<Vec<String>> = parts.collect();
    let texts = |place: usize| {
        let rows = parts.iter().enumerate().flat_map(move |(row, parts)| {
            let text = columns[place].texts().get(row).cloned();
            let mut lines = vec![String::new(); parts.len()];
            lines[0] = text.unwrap_or_default();
            lines
        });
        rows.collect::<Vec<String>>()
    };
    let columns = columns.iter().enumerate().map(|(place, column)| {
        column.with_texts(match place == widest {
            true => parts.concat(),
            false => texts(place),
        })
    });
    Some(columns.collect())
}

/// The beginning of a line that continues the line above.
const INDENT: &str = "    ";

/// Returns the index of the column that a reader needs least.
fn least_needed_column(columns: &[&Column]) -> Option<usize> {
    let numbers = |column: &&Column| !column.is_left() && !column.is_result();
    let is_empty = |column: &&Column| {
        let mut texts = column.texts().iter();
        numbers(column) && texts.all(|text| NOTHING.contains(&text.as_str()))
    };
    let is_constant = |column: &&Column| !column.is_result() && column.common_text().is_some();
    let empty = columns.iter().rposition(is_empty);
    let constant = || columns.iter().rposition(is_constant);
    empty
        .or_else(constant)
        .or_else(|| columns.iter().rposition(numbers))
}

/// Splits the line into parts of at most `width` characters, or more if a word is longer. Parts after the first are
/// indented, and indented further if the line itself is indented.
pub fn wrapped(line: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.filter(|width| line.chars().count() > *width) else {
        return vec![line.to_owned()];
    };
    let begin = line.len() - line.trim_start().len();
    let mut lines = vec![line[..begin].to_owned()];
    let indent = match begin {
        0 => String::new(),
        _ => format!("{}  ", &line[..begin]),
    };
    let mut empty = true;
    for word in line.split_whitespace() {
        let last = lines.last_mut().map_or(0, |last| last.chars().count());
        if !empty && last + 1 + word.chars().count() > width {
            lines.push(indent.clone());
            empty = true;
        }
        if let Some(last) = lines.last_mut() {
            if !empty {
                last.push(' ');
            }
            last.push_str(word);
        }
        empty = false;
    }
    lines
}

/// Returns the full name of a column, for places without the group's title above it.
pub fn full_name(column: &Column) -> String {
    match column.group() {
        "" => column.title().into(),
        group => format!("{group} {}", column.title()),
    }
}

fn column_width(column: &Column) -> usize {
    let texts = column.texts().iter().map(String::as_str);
    let widths = texts
        .chain([column.title()])
        .map(|text| text.chars().count());
    widths.max().unwrap_or(0)
}

fn align_text(column: &Column, text: &str, width: usize, part: Part, paint: Paint<'_>) -> String {
    let room = " ".repeat(width.saturating_sub(text.chars().count()));
    let text = match text {
        "" => String::new(),
        text => paint(part, text),
    };
    match column.is_left() {
        true => text + &room,
        false => room + &text,
    }
}

/// Returns the widths of the columns. The last column of a group is widened if the group's title needs it.
fn column_widths(columns: &[&Column]) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column_width(column)).collect();
    for members in group_ranges(columns) {
        let needed = columns[members.start].group().chars().count();
        let width = total_width(&widths[members.clone()]);
        widths[members.end - 1] += needed.saturating_sub(width);
    }
    widths
}

/// Returns the ranges of consecutive columns that have the same group.
fn group_ranges(columns: &[&Column]) -> Vec<std::ops::Range<usize>> {
    let runs = columns.chunk_by(|a, b| a.group() == b.group());
    let ranges = runs.scan(0, |start, run| {
        let range = *start..*start + run.len();
        *start = range.end;
        Some(range)
    });
    ranges.collect()
}

fn total_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
}

/// Returns the groups' titles, each centred in a rule over its columns.
fn group_line(columns: &[&Column], paint: Paint<'_>) -> String {
    let widths = column_widths(columns);
    let titles = group_ranges(columns).into_iter().map(|members| {
        let (group, width) = (
            columns[members.start].group(),
            total_width(&widths[members]),
        );
        if group.is_empty() {
            " ".repeat(width)
        } else {
            paint(Part::Group, &format!("{group:─^width$}"))
        }
    });
    let titles: Vec<String> = titles.collect();
    titles.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn columns_line_up() {
        let columns = [
            Column::words("wait", texts(&["wfi", "poll-wfi"])),
            Column::numbers("", "p50", texts(&["7", "1234"])),
        ];
        assert_eq!(
            lines(&columns),
            ["wait       p50", "wfi          7", "poll-wfi  1234"]
        );
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_named() {
        let columns = || {
            vec![
                Column::words("wait", texts(&["wfi", "poll-wfi"])),
                Column::numbers("", "p50", texts(&["7", "1234"])),
                Column::numbers("exits", "wfi", texts(&["·", "-"])),
                Column::numbers("exits", "irq", texts(&["2", "2"])),
                Column::numbers("IPIs/op", "sent", texts(&["2", "2"])),
            ]
        };
        let all = lines(&columns());
        let width = all.iter().map(|line| line.chars().count()).max().unwrap();
        let fitted = |width| fitted_lines(columns().iter().collect(), width, &plain);
        assert_eq!(fitted(None), all);
        assert_eq!(fitted(Some(width)), all);
        let fewer = fitted(Some(width - 1));
        let note = fewer[4..].join(" ");
        assert_eq!(note, "(left out: exits wfi; --wide shows all columns)");
        assert_eq!(fewer[1], "wait       p50    irq     sent");
        for line in &fewer {
            assert!(line.chars().count() < width, "{line}");
        }
        let few = fitted(Some(14));
        assert_eq!(few[0], "wait       p50");
        let end = "(in all rows: exits irq 2, IPIs/op sent 2; left out: exits wfi; --wide shows all columns)";
        assert_eq!(few[3..].join(" "), end);
        // The words of a column that distinguishes rows stay in the table.
        assert_eq!(fitted(Some(3))[..3], ["wait", "wfi", "poll-wfi"]);
    }

    #[test]
    fn the_answer_stays_and_constants_go_first() {
        let columns = [
            Column::words("trap", texts(&["none", "none"])),
            Column::words("wait", texts(&["wfi", "poll-wfi"])),
            Column::numbers("", "p90", texts(&["8", "1234"])),
            Column::numbers("", "%", texts(&["7", "7"])).result(),
        ];
        let fitted = |width| fitted_lines(columns.iter().collect(), Some(width), &plain);
        let end = |what: &str| format!("({what}; --wide shows all columns)");
        assert_eq!(fitted(20)[0], "wait       p90  %");
        assert_eq!(fitted(20)[3..].join(" "), end("in all rows: trap none"));
        assert_eq!(fitted(1)[0], "wait      %");
        let both = end("in all rows: trap none; left out: p90");
        assert_eq!(fitted(1)[3..].join(" "), both);
    }

    #[test]
    fn words_that_are_too_wide_go_on_below() {
        let columns = [
            Column::words("cell", texts(&["polls, then WFI, trapped", "WFI", "spins"])),
            Column::numbers("", "A", texts(&["1", "2", "3"])).result(),
        ];
        let shown = fitted_lines(columns.iter().collect(), Some(26), &plain);
        assert_eq!(
            shown,
            [
                "cell              A",
                "polls, then WFI,  1",
                "    trapped",
                "WFI               2",
                "spins             3",
            ]
        );
        let wide = fitted_lines(columns.iter().collect(), Some(40), &plain);
        assert_eq!(wide.len(), 4);
    }

    #[test]
    fn colours_move_nothing() {
        let columns = [
            Column::words("wait", texts(&["wfi", "poll-wfi"])),
            Column::numbers("exits", "irq", texts(&["7", "1234"])),
        ];
        let paint = |_: Part, text: &str| format!("<{text}>");
        let painted = fitted_lines(columns.iter().collect(), None, &paint);
        assert_eq!(painted[2], "<wfi>           <7>");
        let stripped = painted.iter().map(|line| line.replace(['<', '>'], ""));
        assert!(stripped.eq(lines(&columns)));
    }

    #[test]
    fn a_group_stands_over_its_columns() {
        let columns = [
            Column::words("wait", texts(&["wfi"])),
            Column::numbers("exits", "a", texts(&["1"])),
            Column::numbers("exits", "b", texts(&["2"])),
            Column::numbers("more", "c", texts(&["3"])),
        ];
        assert_eq!(
            lines(&columns),
            [
                "      exits  more",
                "wait  a   b     c",
                "wfi   1   2     3"
            ]
        );
    }
}
