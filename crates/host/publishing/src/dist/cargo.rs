// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the crates that are linked into a program, from Cargo's output.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::products::Packages;
use providing::toolchain;
use shell::failure::bad_input;

/// Name and version of a crate.
pub type Key = (String, String);

/// A crate, as Cargo describes it.
#[derive(Debug, Deserialize)]
pub struct Crate {
    name: String,
    version: String,
    /// An SPDX expression, possibly in an older form.
    pub license: Option<String>,
    /// The crate's registry; `None` for our own crates.
    pub source: Option<String>,
    /// The crate's Cargo.toml, which is next to its other files.
    pub manifest_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Crate>,
}

/// Returns all crates of Cargo.lock for the targets of the products.
pub fn locked_crates() -> Result<BTreeMap<Key, Crate>> {
    let arguments = [
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform",
        toolchain::TARGET,
        "--filter-platform",
        toolchain::LINUX,
    ];
    let said = cargo_output(&arguments)?;
    let metadata: Metadata = serde_json::from_str(&said).context("cargo metadata")?;
    let crates = metadata.packages.into_iter();
    Ok(crates
        .map(|one| ((one.name.clone(), one.version.clone()), one))
        .collect())
}

/// Returns the crates whose code is in the binaries of `packages`. Leaves out crates that only procedural macros and
/// build scripts use, since these run on the host.
pub fn linked_crates(packages: Packages) -> Result<BTreeSet<Key>> {
    let mut linked = BTreeSet::new();
    for (package, target) in packages {
        let said = cargo_output(&[
            "tree",
            "--locked",
            "--package",
            package,
            "--target",
            target,
            "--edges=normal,no-proc-macro",
            "--prefix=none",
            "--no-dedupe",
            "--format={p}",
        ])?;
        linked.extend(said.lines().filter_map(parse_key));
    }
    Ok(linked)
}

/// Parses `name v1.2.3`. For our own crates, the crate's folder follows the version.
fn parse_key(line: &str) -> Option<Key> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    Some((name.into(), version.into()))
}

fn cargo_output(arguments: &[&str]) -> Result<String> {
    match toolchain::answer(toolchain::cargo().args(arguments)) {
        Some(said) => Ok(said),
        None => bad_input!(
            "dist: `cargo {}` fails; Cargo.lock is not current, or a dependency was not fetched yet; cargo fetch does both",
            arguments.join(" ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_named_with_their_version() {
        assert_eq!(
            parse_key("spin v0.12.3"),
            Some(("spin".into(), "0.12.3".into()))
        );
        assert_eq!(
            parse_key("abi v0.1.0 (/a folder/abi)"),
            Some(("abi".into(), "0.1.0".into()))
        );
        assert_eq!(parse_key(""), None);
    }

    #[test]
    fn what_only_runs_here_is_not_linked() {
        let linked = linked_crates(&[("hypervisor", toolchain::TARGET)]).unwrap();
        let has = |name: &str| linked.iter().any(|(linked, _)| linked == name);
        assert!(has("hypervisor") && has("arm-psci") && has("ucs2"));
        // `syn` and `uefi-macros` are only for the macros of `uefi`, and `clap` is only for the host.
        assert!(!has("syn") && !has("uefi-macros") && !has("clap"));
        let known = locked_crates().unwrap();
        assert!(linked.iter().all(|key| known.contains_key(key)));
    }
}
