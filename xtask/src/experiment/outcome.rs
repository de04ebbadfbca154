// SPDX-License-Identifier: MIT OR Apache-2.0
//! What comes of an experiment.

use serde::Serialize;

use crate::grid::{self, Column};

/// Tables, and what the source claims.
#[derive(Serialize)]
pub struct Outcome {
    pub tables: Vec<Table>,
    /// Charts, which the page has and the terminal has not.
    pub charts: Vec<Chart>,
    pub claims: Vec<Claim>,
    /// What has to be known to read it.
    pub notes: Vec<String>,
}

/// A table in the shape of the source's.
#[derive(Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Titles of its columns, after that of the rows.
    pub columns: Vec<String>,
    /// Its rows: a name, and a text for each column.
    pub rows: Vec<(String, Vec<String>)>,
}

/// Lines over a quantity.
#[derive(Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The quantity, with its unit.
    pub along: &'static str,
    /// The unit of the lines' values.
    pub unit: String,
    pub lines: Vec<Curve>,
}

/// A line of a chart.
#[derive(Serialize)]
pub struct Curve {
    /// What it is of.
    pub name: String,
    /// Classes of its colour and pattern in the style sheet.
    #[serde(skip)]
    pub class: &'static str,
    /// Where it goes through, in the order of the quantity.
    pub points: Vec<(f64, f64)>,
}

/// Something that the source says, and what our numbers say of it.
#[derive(Serialize)]
pub struct Claim {
    /// What the source says.
    pub text: String,
    /// Whether our numbers agree, as computed from them; `null` where the machine
    /// does not model what the claim is about, so that they say nothing of it.
    pub agrees: Option<bool>,
    /// Our numbers.
    pub ours: String,
    /// Why it is otherwise here, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Claim {
    /// A claim that holds here if `agrees`; `ours` are the numbers that say so.
    pub fn new(text: impl Into<String>, agrees: bool, ours: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            agrees: Some(agrees),
            ours: ours.into(),
            why: None,
        }
    }

    /// Says why, should our numbers not agree.
    pub fn else_because(self, why: &'static str) -> Self {
        let why = (self.agrees == Some(false)).then(|| why.into());
        Self { why, ..self }
    }

    /// Takes the judgement back if the machine lacks anything that it takes: names
    /// of probes.
    pub fn unless_missing(self, probes: &[String]) -> Self {
        if probes.is_empty() {
            return self;
        }
        let why = format!("this machine does not model {}", probes.join(", "));
        Self {
            agrees: None,
            why: Some(why),
            ..self
        }
    }

    /// The judgement in words.
    pub const fn verdict(&self) -> &'static str {
        match self.agrees {
            Some(true) => "agrees",
            Some(false) => "DIFFERS",
            None => "not modelled",
        }
    }

    /// The first value is below the second.
    pub fn below(text: impl Into<String>, one: (&str, f64), other: (&str, f64)) -> Self {
        let ours = format!("{} {:.2}, {} {:.2}", one.0, one.1, other.0, other.1);
        Self::new(text, one.1 < other.1, ours)
    }

    /// It in a line.
    pub fn line(&self) -> String {
        let why = self.why.as_ref().map(|why| format!("; {why}"));
        let why = why.unwrap_or_default();
        format!(
            "  {}: {} (ours: {}{why})",
            self.verdict(),
            self.text,
            self.ours
        )
    }
}

impl Table {
    /// A table without rows.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|&column| column.into()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, name: &str, texts: Vec<String>) {
        debug_assert_eq!(texts.len(), self.columns.len());
        self.rows.push((name.into(), texts));
    }

    fn lines(&self) -> Vec<String> {
        let names = self.rows.iter().map(|(name, _)| name.clone()).collect();
        let column = |(n, title): (usize, &String)| {
            let texts = self.rows.iter().map(|(_, texts)| texts[n].clone());
            Column::numbers("", title, texts.collect())
        };
        let columns: Vec<Column> = std::iter::once(Column::words("", names))
            .chain(self.columns.iter().enumerate().map(column))
            .collect();
        let mut lines = vec![String::new(), self.title.clone()];
        lines.extend(grid::lines(&columns));
        lines
    }
}

impl Outcome {
    /// What is shown on the terminal.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.tables.iter().flat_map(Table::lines).collect();
        lines.push(String::new());
        lines.extend(self.claims.iter().map(Claim::line));
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines
    }
}

/// A change in per cent, with its sign.
pub fn change(before: f64, after: f64) -> String {
    format!("{:+.0} %", 100.0 * (after / before - 1.0))
}

/// A number without decimals.
pub fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// A number with two decimals.
pub fn two(value: f64) -> String {
    format!("{value:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_does_not_hold_says_why() {
        let claim = Claim::below("a costs less than b", ("a", 2.0), ("b", 1.0));
        let claim = claim.else_because("a is emulated");
        assert_eq!(
            claim.line(),
            "  DIFFERS: a costs less than b (ours: a 2.00, b 1.00; a is emulated)"
        );
        let claim = Claim::below("a costs less than b", ("a", 1.0), ("b", 2.0));
        assert!(claim.else_because("x").line().contains("agrees: a costs"));
    }

    #[test]
    fn a_claim_about_what_is_not_modelled_is_not_judged() {
        for agrees in [true, false] {
            let claim = Claim::new("WFE waits", agrees, "0 us").unless_missing(&[]);
            assert_eq!(claim.agrees, Some(agrees));
            let claim = claim.unless_missing(&["wfe_halts".into()]);
            assert_eq!(claim.agrees, None);
            assert_eq!(
                claim.line(),
                "  not modelled: WFE waits (ours: 0 us; this machine does not model wfe_halts)"
            );
        }
    }

    #[test]
    fn a_table_has_its_rows_in_columns() {
        let mut table = Table::new("seconds", &["before", "after"]);
        table.row("pipe", vec!["30".into(), "15".into()]);
        let text = table.lines().join("\n");
        assert!(text.contains("before  after") && text.contains("pipe      30     15"));
        assert_eq!(change(30.0, 15.0), "-50 %");
    }
}
