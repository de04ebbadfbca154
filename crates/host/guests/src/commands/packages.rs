// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's packages for a guest, each set fetched once.

use std::path::PathBuf;

use anyhow::Result;
use providing::apt::Remedy;
use shell::failure::bad_input;
use shell::places;

const ARCHITECTURE: &str = "arm64";
/// Packages with the shell that scripts and shell commands need, and with the usual commands. Other packages do not
/// depend on these packages, because every Debian system has them.
const SHELL: [&str; 3] = ["dash", "coreutils", "grep"];
/// Remedy for packages that can't be fetched.
const REMEDY: Remedy = Remedy {
    missing: "a package of the guest",
    instead: "give the files by --rootfs",
};

/// Returns the folder with the unpacked `packages` and their dependencies; `None` if `packages` is empty.
///
/// # Errors
/// If Debian lacks a package, or if a package can't be fetched.
pub fn provide_packages(packages: &[String]) -> Result<Option<PathBuf>> {
    let mut names: Vec<&str> = packages.iter().map(String::as_str).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    if let Some(wrong) = names
        .iter()
        .find(|name| name.is_empty() || !name.chars().all(of_name))
    {
        bad_input!("--packages: `{wrong}` is not the name of a package of Debian");
    }
    names.extend(SHELL);
    names.sort_unstable();
    names.dedup();
    let folder = places::target()
        .join("tools/packages")
        .join(names.join(","));
    let here = || folder.is_dir().then(|| folder.clone());
    REMEDY
        .provide_once(&names.join(", "), here, |tools| {
            let apt = tools.apt(Some(ARCHITECTURE), &REMEDY)?;
            let install = [
                "-y",
                "--no-install-recommends",
                "--download-only",
                "install",
            ];
            let arguments: Vec<&str> = install.into_iter().chain(names.iter().copied()).collect();
            apt.run("downloading the packages", &arguments)?;
            apt.unpack(&folder)?;
            Ok(folder.clone())
        })
        .map(Some)
}
