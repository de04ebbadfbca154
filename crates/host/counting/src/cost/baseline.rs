// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares costs with a baseline: the lines to print, and the verdict.

use anyhow::{Result, bail};

use super::costs::Costs;
use super::gate::{self, Change};

/// Differences from a baseline.
pub struct Against<'b> {
    base: &'b Costs,
    /// Note that another compiler built the baseline's images, if one did.
    other: Option<String>,
    changes: Vec<Change>,
    /// Names of costs that are in the baseline, but were not counted.
    gone: Vec<String>,
}

impl<'b> Against<'b> {
    /// Compares `costs` with `base`.
    pub fn new(base: &'b Costs, costs: &Costs) -> Self {
        let (changes, gone) = gate::changes(base, costs);
        Self {
            base,
            other: gate::note_other_compiler(&base.label, &base.rustc, &costs.rustc),
            changes,
            gone,
        }
    }

    /// Describes the differences, one per line.
    pub fn describe_changes(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "against `{}` ({}):",
            self.base.label, self.base.rustc
        )];
        lines.extend(self.other.clone());
        if self.changes.is_empty() && self.gone.is_empty() {
            lines.push("the same".into());
        }
        lines.extend(self.changes.iter().map(Change::description));
        let gone = self.gone.iter();
        lines.extend(gone.map(|name| format!("{name}: no longer counted")));
        lines
    }

    /// Fails if a cost grew too much.
    pub fn fail_on_growth(self) -> Result<()> {
        let grown = self.changes.iter().filter(|change| change.grew_too_much());
        let grown: Vec<String> = grown.map(Change::description).collect();
        if !grown.is_empty() || !self.gone.is_empty() {
            let all: Vec<String> = grown
                .into_iter()
                .chain(self.gone)
                .chain(self.other)
                .collect();
            bail!("more than before: {}", all.join("; "));
        }
        Ok(())
    }
}
