// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that must have equal results, although they boot in different ways.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, ensure};
use results::{Cell, Results};
use serde::Deserialize;

use super::options::Options;

/// A further run, to compare with the test's own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Same {
    /// Options that replace the options of the test.
    run: Options,
    /// The largest difference between medians, in per cent.
    percent: f64,
}

impl Same {
    /// Returns the test's options, replaced or extended by the options of the further run.
    pub fn options(&self, test: &Options) -> Options {
        let mut options = test.clone();
        options.extend(self.run.clone());
        options
    }

    /// Compares the test's results with the further run's results.
    pub fn compare(&self, test: &Results, further: &Results) -> Result<()> {
        let mut others = medians(further);
        for (key, (title, median)) in medians(test) {
            let missing = || anyhow!("{title}: the further run did not measure it");
            let (_, other) = others.remove(&key).ok_or_else(missing)?;
            let apart = (other - median).abs() * 100.0 / median.max(1.0);
            ensure!(
                apart <= self.percent,
                "{title}: p50 {median} and {other} in the further run, {apart:.1} % apart, expected {} % at most",
                self.percent
            );
        }
        ensure!(
            others.is_empty(),
            "the further run measured {} cells more",
            others.len()
        );
        Ok(())
    }
}

/// Returns the title and the median of each measured cell, by the cell's key.
fn medians(results: &Results) -> BTreeMap<Vec<String>, (String, f64)> {
    let median = |cell: &Cell| {
        let stats = cell.stats?;
        Some((cell.key(), (cell.title(), stats.p50 as f64)))
    };
    results.cells.iter().filter_map(median).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::samples::results;

    fn compare(percent: f64, change: fn(&mut Results)) -> Result<()> {
        let mut further = results();
        change(&mut further);
        let run = Options::new();
        Same { run, percent }.compare(&results(), &further)
    }

    fn slower(results: &mut Results) {
        let stats = results
            .cells
            .iter_mut()
            .find_map(|cell| cell.stats.as_mut());
        stats.unwrap().p50 += 3;
    }

    #[test]
    fn medians_may_differ_by_so_much() {
        compare(0.0, |_| {}).unwrap();
        // The medians are 30 and 33.
        compare(10.0, slower).unwrap();
        let error = compare(9.0, slower).unwrap_err().to_string();
        assert!(error.contains("10.0 % apart"), "{error}");
    }

    #[test]
    fn cells_are_the_same_ones() {
        let fewer = |results: &mut Results| results.cells.clear();
        assert!(compare(1.0, fewer).is_err());
        let run = Options::new();
        let same = Same { run, percent: 1.0 };
        let mut none = results();
        fewer(&mut none);
        assert!(same.compare(&none, &results()).is_err());
    }
}
