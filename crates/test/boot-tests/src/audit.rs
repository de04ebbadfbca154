// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the dependencies: `cargo xtask dev audit`.
//!
//! The check reads only committed files and Cargo's downloads, and needs no network. `xtask/audit.toml` lists the
//! exceptions, with reasons. Advisories are checked if a copy of RustSec's database is given.

mod advisory;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use semver::Version;
use serde::Deserialize;

use advisory::Advisory;
use providing::toolchain;
use shell::terminal::say;
use shell::{failure::bad_input, places};

/// Options of `dev audit`.
#[derive(Args, Debug)]
pub struct AuditArgs {
    /// Folder of advisories in RustSec's format
    #[arg(long, value_name = "DIR")]
    pub advisory_db: Option<PathBuf>,
}

/// The content of `xtask/audit.toml`: the name of each exception, and its reason.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    licences: BTreeMap<String, String>,
    exceptions: BTreeMap<String, String>,
    duplicates: BTreeMap<String, String>,
}

/// A dependency, as Cargo describes it.
#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: Version,
    license: Option<String>,
    /// Where Cargo gets the package from; `None` for the workspace's own packages.
    source: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Checks the dependencies. Fails if a check finds a fault.
pub fn run(args: &AuditArgs) -> Result<()> {
    let path = places::inside("xtask/audit.toml");
    let text = fs::read_to_string(&path).with_context(|| places::shown(&path))?;
    let allowed: Allowed = toml::from_str(&text).with_context(|| places::shown(&path))?;
    let packages = dependencies()?;
    say!("{} dependencies, as Cargo.lock has them", packages.len());
    let mut findings = licences(&packages, &allowed);
    findings.extend(duplicates(&packages, &allowed));
    findings.extend(unused_entries(&packages, &allowed));
    match &args.advisory_db {
        Some(folder) => findings.extend(advisories_of(&packages, &advisory::read(folder)?)),
        None => say!(
            "advisories: skipped: no database given; clone RustSec's advisory-db and name it by --advisory-db"
        ),
    }
    // Only the registry has the current index, which lists the yanked versions.
    say!("yanked versions: skipped: the registry would have to be asked");
    for finding in &findings {
        say!("{finding}");
    }
    if !findings.is_empty() {
        bail!(
            "{} findings; change the dependency, or allow it in xtask/audit.toml with a reason",
            findings.len()
        );
    }
    Ok(())
}

/// Returns the dependencies that are built for this host and for the targets. Fails if Cargo.lock is not up to date.
fn dependencies() -> Result<Vec<Package>> {
    let host = toolchain::output("rustc", &["--print", "host-tuple"]).unwrap_or_default();
    let metadata = |lock: &[&str]| {
        let mut arguments = vec!["metadata", "--format-version=1", "--offline"];
        arguments.extend([
            "--filter-platform",
            toolchain::TARGET,
            "--filter-platform",
            toolchain::LINUX,
            "--filter-platform",
            host.trim(),
        ]);
        arguments.extend(lock);
        toolchain::answer(toolchain::cargo().args(arguments))
    };
    let Some(text) = metadata(&["--locked"]) else {
        bad_input!(
            "audit: Cargo.lock is not current, or a dependency was not fetched yet; cargo fetch does both"
        );
    };
    let metadata: Metadata = serde_json::from_str(&text).context("cargo metadata")?;
    let theirs = metadata
        .packages
        .into_iter()
        .filter(|package| package.source.is_some());
    Ok(theirs.collect())
}

fn licences(packages: &[Package], allowed: &Allowed) -> Vec<String> {
    let refused = packages.iter().filter_map(|package| {
        let licence = package.license.as_deref().unwrap_or("none that it names");
        let fine = allowed.exceptions.contains_key(&package.name)
            || may_use(licence, allowed).unwrap_or(false);
        (!fine).then(|| format!("{} {}: licence {licence}", package.name, package.version))
    });
    refused.collect()
}

/// Returns whether the allowed licences satisfy a licence expression (SPDX, or with the older `/`).
fn may_use(licence: &str, allowed: &Allowed) -> Result<bool> {
    let expression = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX);
    let expression = expression.map_err(|error| anyhow!("{error}"))?;
    Ok(expression.evaluate(|one| {
        let name = one.license.id().map(|id| id.name);
        name.is_some_and(|name| allowed.licences.contains_key(name))
    }))
}

fn duplicates(packages: &[Package], allowed: &Allowed) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&Version>> = BTreeMap::new();
    for package in packages {
        versions
            .entry(&package.name)
            .or_default()
            .insert(&package.version);
    }
    versions.retain(|name, versions| versions.len() > 1 && !allowed.duplicates.contains_key(*name));
    let shown = versions.iter().map(|(name, versions)| {
        let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
        format!("{name}: in versions {}", versions.join(" and "))
    });
    shown.collect()
}

/// Lists packages that `xtask/audit.toml` allows although the workspace does not depend on them.
fn unused_entries(packages: &[Package], allowed: &Allowed) -> Vec<String> {
    let names = allowed.exceptions.keys().chain(allowed.duplicates.keys());
    let gone = names.filter(|name| !packages.iter().any(|package| package.name == **name));
    gone.map(|name| format!("{name}: allowed in xtask/audit.toml, and no dependency"))
        .collect()
}

fn advisories_of(packages: &[Package], advisories: &[Advisory]) -> Vec<String> {
    say!("{} advisories", advisories.len());
    let mut findings = Vec::new();
    for package in packages {
        for advisory in advisories
            .iter()
            .filter(|advisory| advisory.concerns(&package.name, &package.version))
        {
            let text = format!("{} {}: {}", package.name, package.version, advisory.id);
            match &advisory.informational {
                Some(kind) => say!("for information: {text} ({kind})"),
                None => findings.push(text),
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, license: &str) -> Package {
        Package {
            name: name.into(),
            version: version.parse().unwrap(),
            license: (!license.is_empty()).then(|| license.into()),
            source: Some("registry".into()),
        }
    }

    fn allowed() -> Allowed {
        let text = "[licences]\nMIT = 'x'\n'Apache-2.0' = 'x'\n[exceptions]\nodd = 'x'\n[duplicates]\ntwice = 'x'";
        toml::from_str(text).unwrap()
    }

    #[test]
    fn one_offered_licence_is_enough_and_all_demanded_ones_are_needed() {
        let fine = [
            "MIT",
            "MIT/GPL-2.0",
            "LGPL-2.1-or-later OR Apache-2.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ];
        for licence in fine {
            assert!(
                licences(&[package("a", "1.0.0", licence)], &allowed()).is_empty(),
                "{licence}"
            );
        }
        for licence in [
            "GPL-3.0",
            "",
            "MIT AND GPL-2.0-only",
            "(MIT OR Zlib) AND MPL-2.0",
            "my own",
        ] {
            assert_eq!(
                licences(&[package("a", "1.0.0", licence)], &allowed()).len(),
                1,
                "{licence}"
            );
        }
        assert!(licences(&[package("odd", "1.0.0", "GPL-3.0")], &allowed()).is_empty());
    }

    #[test]
    fn a_second_version_is_found_unless_it_is_allowed() {
        let packages = [
            "a 1.0.0",
            "a 2.0.0",
            "twice 1.0.0",
            "twice 2.0.0",
            "odd 1.0.0",
        ];
        let packages = packages.map(|one| one.split_once(' ').unwrap());
        let packages = packages.map(|(name, version)| package(name, version, "MIT"));
        assert_eq!(
            duplicates(&packages, &allowed()),
            ["a: in versions 1.0.0 and 2.0.0"]
        );
        assert!(unused_entries(&packages, &allowed()).is_empty());
        assert_eq!(unused_entries(&packages[..2], &allowed()).len(), 2);
    }

    #[test]
    fn the_committed_file_can_be_read() {
        let text = fs::read_to_string(places::inside("xtask/audit.toml")).unwrap();
        let allowed: Allowed = toml::from_str(&text).unwrap();
        let reasons = [allowed.licences, allowed.exceptions, allowed.duplicates];
        assert!(
            reasons
                .iter()
                .flat_map(BTreeMap::values)
                .all(|reason| !reason.is_empty())
        );
    }
}
