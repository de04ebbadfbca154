// SPDX-License-Identifier: MIT OR Apache-2.0
//! `SHA256SUMS`, in the form of `sha256sum --check`: 64 hexadecimal digits, two spaces, and the path.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Files;
use anyhow::{Context, Result, ensure};
use shell::digest::sum;

/// The name of the file with the hashes.
pub const FILE: &str = "SHA256SUMS";

/// Returns the text of the file with the hashes of `files`.
pub(super) fn sums_text(files: &Files) -> String {
    let lines = files.iter();
    let lines = lines.map(|(name, file)| format!("{}  {name}\n", sum(&file.bytes)));
    lines.collect()
}

/// Checks that every file in the folder has a listed hash, and that the hash is right.
pub fn check(folder: &Path) -> Result<()> {
    let path = folder.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut named = BTreeSet::from([FILE.to_owned()]);
    for line in text.lines() {
        let (wanted, name) = line.split_once("  ").context("a line has sum and path")?;
        let file = fs::read(folder.join(name)).with_context(|| name.to_owned())?;
        ensure!(sum(&file) == wanted, "{name} does not match its hash");
        named.insert(name.to_owned());
    }
    let there = files_below(folder, folder)?;
    ensure!(
        there == named,
        "files are there and without a sum: {:?}",
        there.difference(&named)
    );
    Ok(())
}

/// Returns the files below `at`, by their paths relative to `folder`.
pub fn files_below(folder: &Path, at: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(at).with_context(|| at.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_below(folder, &path)?);
        } else {
            let name = path.strip_prefix(folder)?.to_string_lossy();
            found.insert(name.into_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::*;

    /// "abc" is the first example in FIPS 180-4.
    #[test]
    fn sums_are_those_of_the_standard_in_the_form_of_sha256sum() {
        let files = ["b", "a/c"].map(|name| (name.to_owned(), File::from_text("abc".into())));
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            sums_text(&files.into_iter().collect()),
            format!("{sum}  a/c\n{sum}  b\n")
        );
    }
}
