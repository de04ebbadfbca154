// SPDX-License-Identifier: MIT OR Apache-2.0
//! A column of a table, before it is formatted for a page or a terminal.

use foreign::Quoted;

/// A column: the title of its group, its own title, and its texts.
#[derive(Debug)]
pub struct Column {
    group: String,
    title: String,
    left: bool,
    is_result: bool,
    texts: Vec<String>,
}

impl Column {
    /// Creates a column of words.
    pub fn words(title: &str, texts: Vec<String>) -> Self {
        Self {
            group: String::new(),
            title: title.into(),
            left: true,
            is_result: false,
            texts,
        }
    }

    /// Creates a column of numbers.
    pub fn numbers(group: &str, title: &str, texts: Vec<String>) -> Self {
        Self {
            group: group.into(),
            title: title.into(),
            left: false,
            is_result: false,
            texts,
        }
    }

    /// Marks the column as the answer, which every table shows, however narrow the terminal is.
    #[must_use]
    pub fn result(self) -> Self {
        Self {
            is_result: true,
            ..self
        }
    }

    /// Returns a column of words that joins the texts of `columns` row by row, separated by `between`. Leaves out texts
    /// without a value.
    pub fn join_columns(title: &str, columns: &[Self], between: &str) -> Self {
        let rows = columns.first().map_or(0, |column| column.texts.len());
        let text = |row: usize| {
            let has_value = |column: &&Self| !NO_VALUE.contains(&column.texts[row].as_str());
            let texts = columns.iter().filter(has_value).map(|column| {
                let text = &column.texts[row];
                // A number is meaningless without the title of its column.
                match text.starts_with(|first: char| first.is_ascii_digit()) {
                    true => format!("{} {text}", column.title),
                    false => text.clone(),
                }
            });
            texts.collect::<Vec<_>>().join(between)
        };
        Self::words(title, (0..rows).map(text).collect())
    }

    /// Returns the column with only the rows in `rows`, in the order of `rows`.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        Self {
            group: self.group.clone(),
            title: self.title.clone(),
            left: self.left,
            is_result: self.is_result,
            texts: rows.iter().map(|row| self.texts[*row].clone()).collect(),
        }
    }

    /// Returns the column in a form that is safe to print: without control characters that a terminal would interpret,
    /// and with the length of each text limited.
    pub(crate) fn clean_for_people(&self) -> Self {
        let shown = |text: &String| Quoted::new(text).to_string();
        Self {
            group: shown(&self.group),
            title: shown(&self.title),
            left: self.left,
            is_result: self.is_result,
            texts: self.texts.iter().map(shown).collect(),
        }
    }

    /// Title of the column's group; empty if it has none.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The column's own title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether the column has words, which are aligned left.
    pub fn is_left(&self) -> bool {
        self.left
    }

    /// Whether the column is the answer.
    pub fn is_result(&self) -> bool {
        self.is_result
    }

    /// Returns the common text of all rows, if there are several rows and all have the same text.
    pub fn common_text(&self) -> Option<&str> {
        let (first, others) = self.texts.split_first()?;
        let same = !others.is_empty() && others.iter().all(|text| text == first);
        same.then_some(first.as_str())
    }

    /// The column's texts, from the top.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns a column with new texts and this column's titles.
    pub(crate) fn with_texts(&self, texts: Vec<String>) -> Self {
        Self {
            group: self.group.clone(),
            title: self.title.clone(),
            texts,
            ..*self
        }
    }
}

/// Texts for a dimension that does not apply.
const NO_VALUE: [&str; 3] = ["", "-", "0"];

/// Text for a percentile that has too few samples.
pub const TOO_FEW: &str = "-";

/// Text for a count if nothing can be counted.
pub const NONE: &str = "-";

/// Text for an unknown count.
pub const UNKNOWN: &str = "?";

/// Formats a count per operation in short form: a whole number has no decimals, and zero is a dot.
pub fn format_rate(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    match value {
        0.0 => "·".into(),
        _ if rounded == 0.0 => "<0.01".into(),
        _ if rounded.fract() == 0.0 => thousands(rounded),
        _ => format!("{rounded:.2}"),
    }
}

/// Formats a whole number with commas between thousands.
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value.round() < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_people() {
        let shown = [0.0, 79.0, 1110.0, 36928.0, -5.0, 1_234_567.4].map(thousands);
        assert_eq!(shown, ["0", "79", "1,110", "36,928", "-5", "1,234,567"]);
    }

    #[test]
    fn rates_are_short() {
        let shown = [0.0, 0.001, 1.0, 2.004, 1.5, 12.0].map(format_rate);
        assert_eq!(shown, ["·", "<0.01", "1", "2", "1.50", "12"]);
    }
}
