// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device trees of mainline Linux, as Debian packages them for arm64.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::apt::{self, Remedy};
use shell::failure::bad_input;
use shell::places;

const REMEDY: Remedy = Remedy {
    missing: "a package of device trees",
    instead: "unpack linux-base-*-arm64 of Debian into target/tools/trees",
};
/// Regular expression for the packages, of all releases, that consist of device trees and a few other files.
const PACKAGES: &str = r"^linux-base-[0-9.]*\+deb[0-9]*-arm64$";
/// The folder in a package that contains one folder of device trees for each kernel release.
const MODULES: &str = "usr/lib/modules";

/// Returns the folder with the newest trees that Debian has, and fetches them once.
///
/// # Errors
/// The package can't be fetched. The message names the remedy.
pub fn provide() -> Result<PathBuf> {
    let folder = places::target().join("tools/trees");
    let here = || folder.is_dir().then(|| folder.clone());
    REMEDY.provide_once("", here, |tools| {
        fetch_trees(tools, &folder)?;
        Ok(folder.clone())
    })
}

fn fetch_trees(tools: &apt::Tools, folder: &Path) -> Result<()> {
    let apt = tools.apt(Some("arm64"), &REMEDY)?;
    let mut names = apt.matching_names(PACKAGES)?;
    names.sort_by_key(|name| version_numbers(name));
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

/// Returns the path of Linux's tree `name`, such as `broadcom/bcm2711-rpi-4-b.dtb`.
///
/// # Errors
/// The errors of [`provide`], and an error if the package has no such tree.
pub fn provide_one(name: &str) -> Result<PathBuf> {
    let folder = provide()?;
    let releases =
        fs::read_dir(folder.join(MODULES)).with_context(|| folder.display().to_string())?;
    let mut trees = releases
        .flatten()
        .map(|release| release.path().join("dtb").join(name));
    let Some(tree) = trees.find(|tree| tree.is_file()) else {
        bad_input!(
            "{}: Debian's device trees have no {name}; name another",
            folder.display()
        );
    };
    Ok(tree)
}

/// Returns the numbers in a package's name, in their order.
fn version_numbers(name: &str) -> Vec<u32> {
    let numbers = name.split(|character: char| !character.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_package_comes_last() {
        let of = |release| version_numbers(&format!("linux-base-{release}+deb13-arm64"));
        assert!(of("7.2.9") < of("7.2.11") && of("7.2.11") < of("7.3.4"));
        assert!(of("7.3.4") < of("10.0.1"));
    }
}
