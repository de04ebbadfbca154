// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a test that boots expects of its run; `case` shows how it is written.

use anyhow::{Result, anyhow, bail, ensure};
use serde::Deserialize;

use crate::session::Session;
use crate::verdict;

/// Status of a run that is refused.
const BAD_INPUT: &str = "bad-input";

/// What must come of the run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    status: String,
    says: String,
    console: Vec<String>,
    table: Vec<String>,
    table_lacks: Vec<String>,
    skipped: Option<usize>,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: verdict::OK.into(),
            says: String::new(),
            console: Vec::new(),
            table: Vec::new(),
            table_lacks: Vec::new(),
            skipped: None,
        }
    }
}

impl Expect {
    /// Whether it can be met at all.
    pub fn check(&self) -> Result<()> {
        let known = verdict::WORDS.contains(&self.status.as_str()) || self.wants_bad_input();
        let words = verdict::WORDS.join(", ");
        ensure!(
            known,
            "expect.status: there is no `{}`; use {words}, {BAD_INPUT}",
            self.status
        );
        Ok(())
    }

    /// Whether the options should be refused.
    pub fn wants_bad_input(&self) -> bool {
        self.status == BAD_INPUT
    }

    /// Whether the run should succeed.
    pub fn wants_success(&self) -> bool {
        self.status == Self::default().status
    }

    /// Whether an error is the expected one.
    pub fn says(&self, error: &str) -> Result<()> {
        ensure!(
            error.contains(&self.says),
            "the error should say `{}` and says `{error}`",
            self.says
        );
        Ok(())
    }

    /// Compares a run.
    pub fn compare(&self, session: &Session) -> Result<()> {
        let failure = session.failure.as_ref();
        let status = failure.map_or(verdict::OK, |failure| failure.word);
        let why = failure.map_or("", |failure| &failure.why);
        ensure!(
            status == self.status,
            "status {status}, expected {} ({why})",
            self.status
        );
        if failure.is_some() {
            self.says(why)?;
        }
        let mut rest = session.console.as_str();
        for part in &self.console {
            let found = rest.split_once(part.as_str());
            rest = found
                .ok_or_else(|| anyhow!("the console does not say `{part}` where it should"))?
                .1;
        }
        self.compare_table(session)?;
        let skipped = session
            .results
            .cells
            .iter()
            .filter(|cell| cell.skipped.is_some())
            .count();
        if let Some(expected) = self.skipped {
            ensure!(
                skipped == expected,
                "{skipped} cells were skipped, expected {expected}"
            );
        }
        Ok(())
    }

    /// Compares what a terminal would be shown.
    fn compare_table(&self, session: &Session) -> Result<()> {
        if self.table.is_empty() && self.table_lacks.is_empty() {
            return Ok(());
        }
        let table = page::table::lines(&session.results, None).join("\n");
        for (parts, wanted, says) in [
            (&self.table, true, "does not say"),
            (&self.table_lacks, false, "says"),
        ] {
            let wrong = parts.iter().find(|part| table.contains(*part) != wanted);
            if let Some(part) = wrong {
                bail!("the table {says} `{part}`:\n{table}");
            }
        }
        Ok(())
    }
}
