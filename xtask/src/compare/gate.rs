// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much worse is too much.

use anyhow::Result;
use results::compare::{Comparison, Difference, Verdict};

use crate::failure::bad_input;

/// The most that a cell may be worse, in per cent.
#[derive(Clone, Copy, Debug)]
pub struct Gate(f64);

impl Gate {
    /// Reads `2%`, `2` or `0.5%`.
    pub fn parse(text: &str) -> Result<Self> {
        let number = text.strip_suffix('%').unwrap_or(text);
        match number.parse::<f64>() {
            Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(Self(percent)),
            _ => bad_input!("--fail-if-worse: `{text}` is no percentage; write 2% or 0.5%"),
        }
    }

    /// Why B does not pass; `None` if it does.
    pub fn judge(self, comparison: &Comparison<'_>) -> Option<String> {
        let worse = comparison
            .pairs
            .iter()
            .filter(|pair| pair.verdict() == Verdict::Worse);
        let percents = worse.filter_map(|pair| pair.total.as_ref().map(Difference::percent));
        let over: Vec<f64> = percents.filter(|percent| *percent > self.0).collect();
        let most = over.iter().copied().fold(0.0, f64::max);
        let cells = if over.len() == 1 {
            "1 cell is"
        } else {
            &format!("{} cells are", over.len())
        };
        let measured = comparison.count(Verdict::Unknown) < comparison.pairs.len();
        match (over.is_empty(), measured) {
            (false, _) => Some(format!(
                "{cells} worse by more than {} %, up to {most:.1} %",
                self.0
            )),
            // A gate that nothing went through is not passed.
            (true, false) => Some("no cell was measured on both sides".into()),
            (true, true) => None,
        }
    }
}
