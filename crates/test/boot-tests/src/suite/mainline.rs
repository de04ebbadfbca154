// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device trees of mainline Linux, as Debian packages them for arm64: all that have a GICv3 and PSCI
//! are read, and the others are refused with the reason that a second check of their bytes gives.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use doctor::machines::{Finding, of_tree, summary, trees};
use providing::apt::{self, Remedy};
use shell::failure::bad_input;
use shell::places;
use shell::terminal::say;

const REMEDY: Remedy = Remedy {
    missing: "a package of device trees",
    instead: "unpack linux-base-*-arm64 of Debian into target/tools/trees",
};
/// Packages that consist of device trees and a few other files, of each release.
const PACKAGES: &str = r"^linux-base-[0-9.]*\+deb[0-9]*-arm64$";
/// With fewer, the package is not the expected one.
const LEAST: usize = 1000;

pub fn run() -> Result<()> {
    let mut files = Vec::new();
    trees(&provide()?, &mut files)?;
    ensure!(files.len() >= LEAST, "only {} device trees", files.len());
    let mut findings = Vec::new();
    for file in files {
        let blob = fs::read(&file).with_context(|| file.display().to_string())?;
        let finding = of_tree(&file, &blob);
        agrees(&finding, &blob)?;
        findings.push(finding);
    }
    summary(&findings).iter().for_each(|line| say!("{line}"));
    Ok(())
}

/// Whether the strings in the blob confirm a finding, wherever they are.
fn agrees(finding: &Finding, blob: &[u8]) -> Result<()> {
    let has = |text: &str| {
        blob.windows(text.len())
            .any(|bytes| bytes == text.as_bytes())
    };
    let gic = has("arm,gic-v3\0");
    let psci = has("arm,psci-1.0\0") || has("arm,psci-0.2\0");
    let why = finding.why.as_deref().unwrap_or("");
    let named = match (gic, psci) {
        (true, true) => finding.ok,
        // Where a spin-table starts the CPUs, it is a note.
        (true, false) => why.starts_with("no PSCI") && finding.ok == has("spin-table\0"),
        (false, _) => {
            let older = ["arm,gic-400\0", "arm,cortex-a15-gic\0", "qcom,msm-qgic2\0"];
            let v2 = older.iter().any(|name| has(name));
            why.contains("the interrupt controller is") && why.contains("GICv2,") == v2
        }
    };
    let file = &finding.file;
    ensure!(
        named && (finding.ok == (gic && psci) || why.contains("spin-table")),
        "{file}: GICv3 {gic}, PSCI {psci}, and found was: {why}"
    );
    Ok(())
}

/// A folder with the newest that Debian has, fetched once.
fn provide() -> Result<PathBuf> {
    let folder = places::target().join("tools/trees");
    let here = || folder.is_dir().then(|| folder.clone());
    REMEDY.once("", here, |tools| {
        fetch(tools, &folder)?;
        Ok(folder.clone())
    })
}

fn fetch(tools: &apt::Tools, folder: &Path) -> Result<()> {
    let apt = tools.apt(Some("arm64"), &REMEDY)?;
    let mut names = apt.names(PACKAGES)?;
    names.sort_by_key(|name| version(name));
    let Some(name) = names.pop() else {
        bad_input!(
            "{} is in no suite of Debian that is known here; {}",
            REMEDY.missing,
            REMEDY.instead
        );
    };
    apt.run(&format!("downloading {name}"), &["download", &name])?;
    apt.unpack(folder)
}

/// The numbers in a package's name, in their order.
fn version(name: &str) -> Vec<u32> {
    let numbers = name.split(|character: char| !character.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_package_comes_last() {
        let of = |release| version(&format!("linux-base-{release}+deb13-arm64"));
        assert!(of("7.2.9") < of("7.2.11") && of("7.2.11") < of("7.3.4"));
        assert!(of("7.3.4") < of("10.0.1"));
    }
}
