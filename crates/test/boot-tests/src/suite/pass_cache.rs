// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records passes of tests that can only pass again if nothing changes. A model check tries every order of one
//! program's steps, and the page checks use one browser. If no byte of these programs and their inputs changes, the
//! outcome does not change. When such tests pass, the checksums of all these files are recorded. As long as the
//! checksums agree, the tests are not run again.
//!
//! Passes are recorded only for tests whose inputs are all known, and whose outcome does not depend on chance, on a
//! clock, or on CPUs that run in parallel.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use shell::digest;
use shell::places;

/// Inputs of tests: their contents by name.
pub type Given = BTreeMap<String, Vec<u8>>;

/// The current checksums of tests, and the file that has the checksums of their last pass.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed {
    /// The file with the checksums of the last pass.
    file: PathBuf,
    sums: String,
}

impl Passed {
    /// Computes the checksums of the tests `name`, from their programs and their other inputs.
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

    /// Returns whether tests with the checksums in `self` have passed.
    pub fn is_recorded(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|text| text == self.sums)
    }

    /// Deletes the record that the tests have passed.
    pub fn forget(&self) -> Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| places::shown(&self.file))
            }
            _ => Ok(()),
        }
    }

    /// Records that the tests have passed.
    pub fn record(&self) -> Result<()> {
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
        assert!(!first.is_recorded());
        first.record().unwrap();
        assert!(first.is_recorded());
        assert!(now("program", "page").is_recorded());
        assert!(!now("prograM", "page").is_recorded());
        assert!(!now("program", "pagE").is_recorded());
        // A run that fails must delete the record of an earlier pass.
        first.forget().unwrap();
        first.forget().unwrap();
        assert!(!first.is_recorded());
    }

    #[test]
    fn one_that_is_not_there_is_told() {
        let none = PathBuf::from("/nowhere/program");
        let why = Passed::new("t", &[none], Given::new()).unwrap_err();
        assert!(format!("{why:#}").contains("/nowhere/program"), "{why:#}");
    }
}
