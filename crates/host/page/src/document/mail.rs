// SPDX-License-Identifier: MIT OR Apache-2.0
//! A document as the plain text of a mail: in ASCII, and with no line wider than [`WIDTH`].
//!
//! A table that is too wide is split into several tables, and each repeats the words that identify the rows. Before
//! that, words that are equal in all rows move to a line above the table. This line also lists the columns of numbers
//! that have no value.

use std::collections::BTreeSet;

use super::{Block, Document};
use crate::Column;
use crate::grid::{self, NOTHING};

/// Maximum number of characters in a line.
pub const WIDTH: usize = 76;
/// Maximum width of the words that identify a row. If they are wider, the rows are numbered, and a list has the words.
const WORDS: usize = 44;

impl Document {
    /// Returns a mail. `command` has the words of the command that made the document, each in ASCII and quoted for a
    /// shell.
    #[must_use]
    pub fn mail(&self, command: &[String]) -> String {
        let mut lines = Vec::new();
        for block in self.clean_for_people().blocks() {
            match block {
                Block::Line(line) => lines.extend(wrap_line(&to_ascii(line))),
                Block::Table(columns) => lines.extend(table_lines(columns)),
            }
        }
        lines.push(String::new());
        lines.extend(command_lines(command));
        lines.join("\n") + "\n"
    }
}

/// Wraps `line` at [`WIDTH`], and indents the continuation lines. Splits a word only if the word is longer than a line.
fn wrap_line(line: &str) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let mut lines = Vec::new();
    let mut now = " ".repeat(indent);
    let mut is_empty = true;
    for word in line.split_whitespace() {
        let mut word = word;
        if !is_empty && now.len() + 1 + word.len() > WIDTH {
            lines.push(now);
            now = " ".repeat(indent + 2);
            is_empty = true;
        }
        while now.len() + word.len() > WIDTH {
            let (begin, rest) = word.split_at(WIDTH - now.len());
            lines.push(now + begin);
            now = " ".repeat(indent + 2);
            word = rest;
        }
        if !is_empty {
            now.push(' ');
        }
        now += word;
        is_empty = false;
    }
    lines.push(now);
    // An empty line has no trailing blanks.
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

/// Returns the lines of the command, continued where a line is full. A longer word stays whole, because a line break
/// would change a quoted word.
fn command_lines(words: &[String]) -> Vec<String> {
    const ON: &str = " \\";
    let mut lines = Vec::new();
    let mut now = "$".to_owned();
    for word in words {
        if now.len() + 1 + word.len() + ON.len() > WIDTH && now.len() > 1 {
            lines.push(now + ON);
            now = " ".to_owned();
        }
        now += " ";
        now += word;
    }
    lines.push(now);
    lines
}

/// Replaces the characters that mail programs may show in different ways.
fn to_ascii(text: &str) -> String {
    let mut ascii = String::new();
    for c in text.chars() {
        match c {
            '·' => ascii.push('.'),
            '─' | '–' | '−' => ascii.push('-'),
            '±' => ascii += "+-",
            '≤' => ascii += "<=",
            'µ' => ascii.push('u'),
            '×' => ascii.push('x'),
            c if c.is_ascii() => ascii.push(c),
            _ => ascii.push('?'),
        }
    }
    ascii
}

/// Converts a column to the form that mails use.
fn column_for_mail(column: &Column) -> Column {
    let texts = column.texts().iter().map(|text| to_ascii(text)).collect();
    match column.is_left() {
        true => Column::words(&to_ascii(column.title()), texts),
        false => Column::numbers(&to_ascii(column.group()), &to_ascii(column.title()), texts),
    }
}

fn table_lines(columns: &[Column]) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut words, mut numbers) = (Vec::new(), Vec::new());
    let (mut same, mut empty) = (Vec::new(), Vec::new());
    let several = grid::row_count(columns) > 1;
    for column in columns {
        let texts = column.texts();
        match column.is_left() {
            true if several && texts.iter().all(|text| *text == texts[0]) => {
                same.push(format!("{} {}", grid::full_name(column), texts[0]));
            }
            true => words.push(column_for_mail(column)),
            false if texts.iter().all(|text| NOTHING.contains(&text.as_str())) => {
                empty.push(grid::full_name(column));
            }
            false => numbers.push(column_for_mail(column)),
        }
    }
    if !same.is_empty() {
        let line = format!("All rows: {}.", same.join(", "));
        lines.extend(wrap_line(&to_ascii(&line)));
    }
    if !empty.is_empty() {
        let line = format!("No row has: {}.", empty.join(", "));
        lines.extend(wrap_line(&to_ascii(&line)));
    }
    move_distinguishing_columns(&mut words, &mut numbers, grid::row_count(columns));
    if table_width(&words) > WORDS {
        lines.extend(number_rows(&mut words));
    }
    lines.push(String::new());
    for (number, part) in split_columns(&words, &numbers).iter().enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        let columns: Vec<&Column> = words.iter().chain(part.iter().copied()).collect();
        // The rules above groups of columns are not ASCII.
        lines.extend(grid::lines(&columns).iter().map(|line| to_ascii(line)));
    }
    lines
}

/// Moves to `words` the first columns of `numbers` that distinguish rows with the same words, because every part of a
/// split table has to identify its rows. A column of limits is an example.
fn move_distinguishing_columns(words: &mut Vec<Column>, numbers: &mut Vec<Column>, rows: usize) {
    let mut apart = count_distinct_rows(words).max(1);
    let mut place = 0;
    while place < numbers.len() && apart < rows {
        words.push(numbers.remove(place));
        let with = count_distinct_rows(words);
        if with > apart {
            apart = with;
        } else {
            numbers.insert(place, words.pop().expect("it was just added"));
            place += 1;
        }
    }
}

/// Returns the number of different rows.
fn count_distinct_rows(columns: &[Column]) -> usize {
    let rows = (0..grid::row_count(columns)).map(|row| {
        let texts = columns.iter().map(|column| column.texts().get(row));
        texts.collect::<Vec<_>>()
    });
    rows.collect::<BTreeSet<_>>().len()
}

/// Replaces the `words` of each row by a number, and returns the list of words by number.
fn number_rows(words: &mut Vec<Column>) -> Vec<String> {
    let rows = grid::row_count(words);
    let mut lines = vec!["Rows:".to_owned()];
    for row in 0..rows {
        let told = words.iter().filter_map(|column| {
            let text = column.texts().get(row).filter(|text| !text.is_empty())?;
            Some(format!("{} {text}", grid::full_name(column)))
        });
        let told: Vec<String> = told.collect();
        lines.extend(wrap_line(&format!("  {}: {}", row + 1, told.join(", "))));
    }
    let numbers = (1..=rows).map(|row| row.to_string()).collect();
    *words = vec![Column::numbers("", "row", numbers)];
    lines
}

/// Divides the columns of numbers into parts, each narrow enough to fit in a line together with `words`. Returns at
/// least one part.
fn split_columns<'c>(words: &'c [Column], numbers: &'c [Column]) -> Vec<Vec<&'c Column>> {
    let mut parts: Vec<Vec<&Column>> = vec![Vec::new()];
    for column in numbers {
        let last = parts.last().map_or(&[][..], Vec::as_slice);
        let with = words.iter().chain(last.iter().copied()).chain([column]);
        let wide = grid::lines(&with.collect::<Vec<_>>());
        let fits = wide.iter().all(|line| line.chars().count() <= WIDTH);
        if !fits && !last.is_empty() {
            parts.push(Vec::new());
        }
        parts.last_mut().expect("there is one").push(column);
    }
    parts
}

fn table_width(columns: &[Column]) -> usize {
    let lines = grid::lines(&columns.iter().collect::<Vec<_>>());
    lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_part_says_what_its_rows_are_about() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let mut columns = vec![
            Column::words("wait", texts(&["wfi", "wfi"])),
            Column::numbers("us", "limit", texts(&["7", "7"])),
            Column::numbers("us", "host", texts(&["-", "50"])),
        ];
        let wide = "1".repeat(40);
        for title in ["a", "b"] {
            columns.push(Column::numbers("", title, texts(&[&wide, &wide])));
        }
        let mut document = Document::default();
        document.table(columns);
        let mail = document.mail(&["x".into()]);
        assert_eq!(mail.matches("host").count(), 2, "{mail}");
        assert_eq!(mail.matches("limit").count(), 1, "{mail}");
        assert_eq!(mail.matches(&wide).count(), 4, "{mail}");
        assert!(mail.contains("All rows: wait wfi."), "{mail}");
    }

    #[test]
    fn a_long_word_is_the_only_one_that_is_cut() {
        let long = "x".repeat(200);
        let lines = wrap_line(&format!("  a {long} b"));
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), format!("a{long}b"));
        assert_eq!(wrap_line(""), [""]);
    }

    /// Generates a column of words, or of numbers in a group.
    fn column(rows: usize) -> impl Strategy<Value = Column> {
        let texts = proptest::collection::vec("[0-9a-z.*·-]{1,14}", rows);
        (any::<bool>(), "[a-z/%]{0,10}", "[a-z ]{1,12}", texts).prop_map(
            |(left, group, title, texts)| match left {
                true => Column::words(&title, texts),
                false => Column::numbers(&group, &title, texts),
            },
        )
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_nothing_is_lost(
            columns in (1usize..6).prop_flat_map(|rows| proptest::collection::vec(column(rows), 1..16)),
            lines in proptest::collection::vec("[a-z*µ ]{0,200}", 0..4),
        ) {
            let mut document = Document::default();
            document.extend(lines.iter().cloned());
            let all: Vec<String> = columns.iter().flat_map(|column| column.texts().to_vec()).collect();
            document.table(columns);
            let mail = document.mail(&["cargo", "xtask", "run", "--board", "virt"].map(String::from));
            for line in mail.lines() {
                prop_assert!(line.len() <= WIDTH, "{line}");
            }
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let told: Vec<String> = words(&mail.replace([',', ':'], " "));
            for text in all.iter().filter(|text| !NOTHING.contains(&text.as_str())) {
                let text = to_ascii(text);
                prop_assert!(
                    told.iter().any(|word| *word == text || word.trim_end_matches('.') == text.trim_end_matches('.')),
                    "{text} in\n{mail}"
                );
            }
            for line in &lines {
                for word in words(&to_ascii(line)).iter().filter(|word| word.len() < WIDTH - 8) {
                    prop_assert!(mail.split_whitespace().any(|told| told == word), "{word} in\n{mail}");
                }
            }
        }
    }
}
