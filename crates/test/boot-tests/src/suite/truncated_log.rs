// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results that `report` reads from a truncated log.

use anyhow::{Context, Result, ensure};
use results::Results;
use results::capture;
use serde::Deserialize;
use wire::Record;

/// A log that ends after some of the passes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// The number of passes that the log keeps.
    after: u64,
    /// The number of bytes of the next pass that the log also keeps, so that the log ends within a block.
    #[serde(default)]
    into_next: usize,
}

impl Cut {
    /// Reads the log up to the cut, and compares the results with the whole log's results.
    pub fn compare(&self, console: &str, whole: &Results) -> Result<()> {
        let end = self.end(console).context("cut: the log has no such pass")?;
        let results = capture::results(&console[..end]).context("cut: no record is whole")?;
        let measured = |cell: &&results::Cell| cell.stats.is_some();
        for cell in whole.cells.iter().filter(measured) {
            let title = cell.title();
            let mut left = results.cells.iter().filter(measured);
            let left = left.find(|left| left.key() == cell.key());
            let left =
                left.with_context(|| format!("cut after pass {}: {title} is lost", self.after))?;
            let ended = left.ended.is_some();
            ensure!(
                ended || left.passes == self.after,
                "cut after pass {}: {title} has {} passes",
                self.after,
                left.passes
            );
            let [samples, all] = [left, cell].map(|cell| cell.stats.map_or(0, |stats| stats.count));
            ensure!(
                samples > 0 && if ended { samples == all } else { samples < all },
                "cut after pass {}: {title} has {samples} samples of {all}",
                self.after
            );
        }
        ensure!(
            results.incomplete,
            "cut: the results should say that they are incomplete"
        );
        ensure!(
            results.damaged.is_empty(),
            "cut: {} should not be damaged",
            results.damaged.join(", ")
        );
        Ok(())
    }

    /// Returns the offset of the cut: before the record `order` of the next pass, or `into_next` bytes later.
    fn end(&self, console: &str) -> Option<usize> {
        let mut at = 0;
        for line in console.split_inclusive('\n') {
            let next = Record::parse(line).is_ok_and(|record| {
                record.kind == "order" && record.number("pass") == Some(self.after)
            });
            if next {
                let end = (at + self.into_next).min(console.len());
                return (0..=end).rev().find(|&end| console.is_char_boundary(end));
            }
            at += line.len();
        }
        None
    }
}
