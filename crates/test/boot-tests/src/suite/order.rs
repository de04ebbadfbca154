// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requirements that some cells cost less than, or as much as, other cells.

use anyhow::{Result, ensure};
use results::{Cell, Results};
use serde::Deserialize;

use super::cells::{Select, selected};

/// Two selections of cells. Each cell in the first selection is compared with each cell in the
/// second.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Order {
    /// Every cell in `less` has a smaller median than every cell in `than`.
    Less { less: Select, than: Select },
    /// Every cell in `same` has the same median as every cell in `as`.
    Same { same: Select, r#as: Select },
}

impl Order {
    pub fn compare(&self, results: &Results) -> Result<()> {
        let (first, second, word) = match self {
            Self::Less { less, than } => (less, than, "less than"),
            Self::Same { same, r#as } => (same, r#as, "the same as"),
        };
        let second = selected(results, second)?;
        for cell in selected(results, first)? {
            for other in &second {
                let [p50, further] = [median(cell), median(other)];
                let holds = match self {
                    Self::Less { .. } => p50 < further,
                    Self::Same { .. } => p50 == further,
                };
                ensure!(
                    holds,
                    "{}: p50 {p50}, expected {word} that of {}, {further}",
                    cell.title(),
                    other.title()
                );
            }
        }
        Ok(())
    }
}

fn median(cell: &Cell) -> u64 {
    cell.stats.map_or(0, |stats| stats.p50)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::samples::results;

    /// Compares two cells, selected by their waits, whose medians are 30 and `other`.
    fn compare(text: &str, other: u64) -> Result<()> {
        let mut results = results();
        results.cells.retain(|cell| cell.stats.is_some());
        let mut second = results.cells[0].clone();
        second.what.wait = plan::Wait::Busy;
        if let Some(stats) = &mut second.stats {
            stats.p50 = other;
        }
        results.cells.truncate(1);
        results.cells.push(second);
        toml::from_str::<Order>(text).unwrap().compare(&results)
    }

    #[test]
    fn medians_are_compared() {
        let less = "less = { wait = 'wfi' }\nthan = { wait = 'busy' }";
        let same = "same = { wait = 'wfi' }\nas = { wait = 'busy' }";
        compare(less, 31).unwrap();
        compare(same, 30).unwrap();
        let error = compare(less, 30).unwrap_err().to_string();
        assert!(error.contains("p50 30, expected less than"), "{error}");
        let error = compare(same, 31).unwrap_err().to_string();
        assert!(error.contains("p50 30, expected the same as"), "{error}");
    }

    #[test]
    fn cells_that_are_not_there_are_no_order() {
        let none = "less = { wait = 'spin' }\nthan = { wait = 'busy' }";
        assert!(compare(none, 31).is_err());
        let none = "same = { wait = 'wfi' }\nas = { wait = 'spin' }";
        assert!(compare(none, 30).is_err());
    }
}
