// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches the sources for host tests with a text in their names; Cargo would have to compile all tests for that.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::ON_TARGET;
use shell::places;

/// Returns whether the name of a host test may contain `filter`. Never returns false if a name does contain it; returns
/// true for a few filters that no name contains.
pub fn any_has(filter: &str) -> Result<bool> {
    if filter.is_empty() {
        return Ok(true);
    }
    let mut folders = ["crates", "linux", "rouse-kvm", "vmm", "xtask"]
        .map(places::inside)
        .to_vec();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| places::shown(&folder))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                let name = path.file_name().unwrap_or_default();
                let skipped = name == "target" || ON_TARGET.iter().any(|package| name == *package);
                folders.extend((!skipped).then_some(path));
            } else if path.extension().is_some_and(|end| end == "rs") && file_has(&path, filter)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn file_has(path: &PathBuf, filter: &str) -> Result<bool> {
    let text = fs::read_to_string(path).with_context(|| places::shown(path))?;
    Ok(matches(path, &text, filter))
}

/// Returns whether a test in this file may have `filter` in its name, which consists of the function's name and the
/// names of the enclosing modules. The name of an example in a comment begins with the name of its file.
fn matches(path: &Path, text: &str, filter: &str) -> bool {
    let path = path.strip_prefix(places::root()).unwrap_or(path);
    if path.to_string_lossy().contains(filter) {
        return true;
    }
    if !["#[test]", "proptest!", "loom::model"]
        .iter()
        .any(|mark| text.contains(mark))
    {
        return false;
    }
    let modules = path.with_extension("");
    let modules = modules
        .iter()
        .map(|part| part.to_string_lossy().into_owned());
    let mut names: Vec<String> = modules.collect();
    for keyword in ["fn ", "mod "] {
        let after = text.split(keyword).skip(1);
        names.extend(after.map(|after| {
            let end = after.find(|c: char| c != '_' && !c.is_alphanumeric());
            after[..end.unwrap_or(after.len())].to_owned()
        }));
    }
    filter
        .split("::")
        .all(|part| names.iter().any(|name| name.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_functions_modules_and_files() {
        let path = places::inside("crates/abc/src/deep/lists.rs");
        let text = "mod tests { #[test] fn links_hold() {} fn help() {} }";
        for (filter, found) in [
            ("links_hold", true),
            ("nks_h", true),
            ("tests::links", true),
            ("deep::lists::tests", true),
            ("abc/src", true),
            ("links_break", false),
            ("other::links_hold", false),
        ] {
            assert_eq!(matches(&path, text, filter), found, "{filter}");
        }
        assert!(!matches(&path, "fn links_hold() {}", "links_hold"));
    }

    #[test]
    fn this_tree_has_what_it_has() {
        assert!(any_has("").unwrap());
        assert!(any_has("this_tree_has_what_it_has").unwrap());
        // The text is in two parts, because this file is among those searched.
        assert!(!any_has(&["there_is_", "none_like_that"].concat()).unwrap());
    }
}
