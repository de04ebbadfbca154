// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that can only end as they did before. A model check tries every order of one program's steps, and one browser
//! examines a page: as long as no byte of the programs and of their inputs changes, the outcome does not. When they
//! have passed, the sums of all that are recorded; while these agree they are not run again.
//!
//! This is for tests without chance, clock or CPUs that run side by side, and whose inputs are all known.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use shell::digest;
use shell::places;

/// Inputs of tests: contents by name.
pub type Given = BTreeMap<String, Vec<u8>>;

/// Tests, as they are now.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed {
    /// The file with the sums.
    file: PathBuf,
    sums: String,
}

impl Passed {
    /// The tests `name`, with their programs.
    pub fn new(name: &str, programs: &[PathBuf], mut given: Given) -> Result<Self> {
        for path in programs {
            let bytes = fs::read(path).with_context(|| places::shown(path))?;
            given.insert(places::shown(path), bytes);
        }
        let lines = given.iter();
        let lines = lines.map(|(name, bytes)| format!("{}  {name}\n", digest::sum(bytes)));
        Ok(Self {
            file: places::target()
                .join("tests")
                .join(format!("{name}.passed")),
            sums: lines.collect(),
        })
    }

    /// Whether tests with these sums have passed.
    pub fn stands(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|text| text == self.sums)
    }

    /// Forgets that the tests have passed.
    pub fn forget(&self) -> Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| places::shown(&self.file))
            }
            _ => Ok(()),
        }
    }

    /// Records that the tests have passed.
    pub fn keep(&self) -> Result<()> {
        fs::write(&self.file, &self.sums).with_context(|| places::shown(&self.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_passed_stands_until_a_byte_of_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let now = |bytes: &str, page: &str| {
            fs::write(&program, bytes).unwrap();
            let given = Given::from([("page".to_owned(), page.as_bytes().to_vec())]);
            let passed = Passed::new("t", std::slice::from_ref(&program), given).unwrap();
            Passed {
                file: folder.path().join("t.passed"),
                ..passed
            }
        };
        let first = now("program", "page");
        assert!(!first.stands());
        first.keep().unwrap();
        assert!(first.stands());
        assert!(now("program", "page").stands());
        assert!(!now("prograM", "page").stands());
        assert!(!now("program", "pagE").stands());
        // A run that did not pass forgets the pass.
        first.forget().unwrap();
        first.forget().unwrap();
        assert!(!first.stands());
    }

    #[test]
    fn one_that_is_not_there_is_told() {
        let none = PathBuf::from("/nowhere/program");
        let why = Passed::new("t", &[none], Given::new()).unwrap_err();
        assert!(format!("{why:#}").contains("/nowhere/program"), "{why:#}");
    }
}
