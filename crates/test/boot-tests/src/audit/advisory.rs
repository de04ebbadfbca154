// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advisories in RustSec's format: Markdown files, `crates/NAME/ID.md`, that
//! begin with a block of TOML.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use semver::{Version, VersionReq};
use serde::Deserialize;

use shell::failure::bad_input;
use shell::places;

#[derive(Debug)]
pub struct Advisory {
    pub id: String,
    /// The affected crate.
    package: String,
    /// The kind of an advisory that only informs; `None` for a vulnerability.
    pub informational: Option<String>,
    /// Unaffected versions of the crate.
    good: Vec<VersionReq>,
}

/// The block of TOML at the start of an advisory's file.
#[derive(Deserialize)]
struct Front {
    advisory: About,
    #[serde(default)]
    versions: Versions,
}

#[derive(Deserialize)]
struct About {
    id: String,
    package: String,
    informational: Option<String>,
    withdrawn: Option<toml::Value>,
}

#[derive(Default, Deserialize)]
struct Versions {
    #[serde(default)]
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

impl Advisory {
    /// Returns whether the advisory affects `version` of crate `package`.
    pub fn concerns(&self, package: &str, version: &Version) -> bool {
        self.package == package && !self.good.iter().any(|good| good.matches(version))
    }

    /// Reads an advisory; `None` if it was withdrawn.
    fn parse(text: &str) -> Result<Option<Self>> {
        let block = text
            .split("```toml")
            .nth(1)
            .and_then(|rest| rest.split("```").next());
        let front: Front = toml::from_str(block.ok_or_else(|| anyhow!("no block of TOML"))?)?;
        let Versions {
            mut patched,
            unaffected,
        } = front.versions;
        patched.extend(unaffected);
        Ok(front.advisory.withdrawn.is_none().then_some(Self {
            id: front.advisory.id,
            package: front.advisory.package,
            informational: front.advisory.informational,
            good: patched,
        }))
    }
}

/// Reads every advisory about a crate from the database in `folder`.
pub fn read(folder: &Path) -> Result<Vec<Advisory>> {
    let crates = folder.join("crates");
    if !crates.is_dir() {
        bad_input!(
            "{} has no folder crates; name a copy of RustSec's advisory-db",
            places::shown(folder)
        );
    }
    let mut found = Vec::new();
    for package in fs::read_dir(crates)? {
        for file in fs::read_dir(package?.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path)?;
                found.extend(Advisory::parse(&text).with_context(|| places::shown(&path))?);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2020-0001\"\npackage = \"a\"\ndate = \"2020-01-01\"\n\
        [versions]\npatched = [\">= 1.2.3\"]\nunaffected = [\"< 0.9\"]\n```\n# It breaks\n";

    #[test]
    fn versions_decide() {
        let advisory = Advisory::parse(TEXT).unwrap().unwrap();
        let concerns = |name, version: &str| advisory.concerns(name, &version.parse().unwrap());
        assert!(concerns("a", "1.2.2") && concerns("a", "0.9.0"));
        assert!(!concerns("a", "1.2.3") && !concerns("a", "0.8.9") && !concerns("b", "1.0.0"));
    }

    #[test]
    fn a_withdrawn_one_is_none_and_a_damaged_one_an_error() {
        let withdrawn = TEXT.replace("[versions]", "withdrawn = \"2021-01-01\"\n[versions]");
        assert!(Advisory::parse(&withdrawn).unwrap().is_none());
        assert!(Advisory::parse("# no block").is_err());
    }

    #[test]
    fn a_database_is_a_folder_of_crates() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            read(folder.path())
                .unwrap_err()
                .to_string()
                .contains("advisory-db")
        );
        let of = folder.path().join("crates/a");
        fs::create_dir_all(&of).unwrap();
        fs::write(of.join("RUSTSEC-2020-0001.md"), TEXT).unwrap();
        assert_eq!(read(folder.path()).unwrap().len(), 1);
    }
}
