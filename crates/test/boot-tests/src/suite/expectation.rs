// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requirements on the run of a test that boots; `case` shows how they are written.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail, ensure};
use critical::Cause;
use plan::Under;
use serde::Deserialize;

use super::cells::Range;
use explaining::explanation::Explained;
use running::session::Session;
use running::verdict;

/// Status of a run that is refused.
const BAD_INPUT: &str = "bad-input";

/// The requirements on a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    status: String,
    says: String,
    console: Vec<String>,
    times: BTreeMap<String, usize>,
    table: Vec<String>,
    table_lacks: Vec<String>,
    skipped: Option<usize>,
    functions: BTreeMap<String, Range>,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: verdict::OK.into(),
            says: String::new(),
            console: Vec::new(),
            times: BTreeMap::new(),
            table: Vec::new(),
            table_lacks: Vec::new(),
            skipped: None,
            functions: BTreeMap::new(),
        }
    }
}

impl Expect {
    /// Fails if no run can meet the requirements, because the expected status does not exist.
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

    /// Returns whether xtask should refuse the run's options.
    pub fn wants_bad_input(&self) -> bool {
        self.status == BAD_INPUT
    }

    pub fn wants_success(&self) -> bool {
        self.status == Self::default().status
    }

    /// Fails if an error is not the expected one.
    pub fn check_error(&self, error: &str) -> Result<()> {
        ensure!(
            error.contains(&self.says),
            "the error should contain `{}`, and is `{error}`",
            self.says
        );
        Ok(())
    }

    /// Returns whether the run has to record the instructions of its samples.
    pub fn needs_traces(&self) -> bool {
        !self.functions.is_empty()
    }

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
            self.check_error(why)?;
        }
        let mut rest = session.console.as_str();
        for part in &self.console {
            let found = rest.split_once(part.as_str());
            rest = found
                .ok_or_else(|| anyhow!("the console does not say `{part}` where it should"))?
                .1;
        }
        self.compare_times(&session.console)?;
        self.compare_table(session)?;
        self.compare_functions(session)?;
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

    /// Compares how often each text occurs in the console's log.
    fn compare_times(&self, console: &str) -> Result<()> {
        for (part, &expected) in &self.times {
            let found = console.matches(part.as_str()).count();
            ensure!(
                found == expected,
                "the console has `{part}` {found} times, expected {expected}"
            );
        }
        Ok(())
    }

    /// Compares how many instructions each function has on the first cell's path.
    fn compare_functions(&self, session: &Session) -> Result<()> {
        if !self.needs_traces() {
            return Ok(());
        }
        let explained = Explained::of(session, "")?;
        let cell = explained.cells.first();
        let cell = cell.ok_or_else(|| anyhow!("no cell is explained: {:?}", explained.notes))?;
        for (name, expected) in &self.functions {
            let found = cell.count_of(name);
            expected.check(found as f64, || {
                let longest: Vec<_> = cell.functions.iter().take(8).map(|one| &one.name).collect();
                format!(
                    "{}: {name} has {found} instructions; {longest:?} have most",
                    cell.name()
                )
            })?;
        }
        // The hypervisor counts exits independently of the instructions that the emulator reports.
        let measured = session.results.cells.iter().find(|one| one.stats.is_some());
        if let Some(one) = measured.filter(|one| one.under == Under::Rouse) {
            for cause in Cause::ALL.map(Cause::name) {
                let counted = one.per_sample(&one.exits, cause).round();
                let found = cell.events.exits.get(cause).copied().unwrap_or(0);
                ensure!(
                    found as f64 == counted,
                    "{}: its sample has {found} exits by {cause}, and the hypervisor counts {counted}",
                    cell.name()
                );
            }
        }
        Ok(())
    }

    /// Compares the output for a terminal.
    fn compare_table(&self, session: &Session) -> Result<()> {
        if self.table.is_empty() && self.table_lacks.is_empty() {
            return Ok(());
        }
        let table = page::table::lines(&session.results, None).join("\n");
        for (parts, wanted, says) in [
            (&self.table, true, "lacks"),
            (&self.table_lacks, false, "has"),
        ] {
            let wrong = parts.iter().find(|part| table.contains(*part) != wanted);
            if let Some(part) = wrong {
                bail!("the table {says} `{part}`:\n{table}");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_counted() {
        let expect: Expect = toml::from_str("times = { 'a b' = 2, 'c' = 0 }").unwrap();
        expect.compare_times("a b\nx a b\n").unwrap();
        for (console, wrong) in [
            ("a b\n", "`a b` 1 times, expected 2"),
            ("a b a b c", "`c` 1 times"),
        ] {
            let error = expect.compare_times(console).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
