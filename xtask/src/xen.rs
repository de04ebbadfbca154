// SPDX-License-Identifier: MIT OR Apache-2.0
//! Xen, whose first domain is the guest.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use platform::image::Image;

use crate::apt::{self, Remedy};
use crate::failure::bad_input;
use crate::places;
use crate::terminal::note;

/// Debian's package of the hypervisor alone, and the file in it.
const PACKAGE: &str = "xen-hypervisor-4.20-arm64";
const FILE: &str = "boot/xen-4.20-arm64";
const ARCHITECTURE: &str = "arm64";
/// What is missing without one, and what to do instead.
const REMEDY: Remedy = Remedy {
    missing: "Xen",
    instead: "name an arm64 Image of Xen by --xen",
};

/// The Xen that was `named`; else Debian's, which is provided once.
pub fn ensure(named: Option<&Path>) -> Result<PathBuf> {
    let Some(named) = named else {
        return provided();
    };
    let shown = named.display();
    let image = match fs::read(named) {
        Ok(image) => image,
        Err(error) => bad_input!("--xen: {shown} can't be read ({error}); name an Image of Xen"),
    };
    match Image::parse(&image) {
        Ok(_) => Ok(named.to_owned()),
        Err(why) => bad_input!("--xen: {shown} {why}"),
    }
}

/// Debian's: fetched, checked and unpacked, unless an earlier run has done so.
fn provided() -> Result<PathBuf> {
    let prefix = places::target().join("tools/xen");
    let file = prefix.join(FILE);
    if file.is_file() {
        return Ok(file);
    }
    let Remedy { missing, instead } = REMEDY;
    if !apt::usable() {
        bad_input!("{missing} is missing, and only Debian's apt can fetch it; {instead}");
    }
    note!("{missing} is missing: providing it below target/tools (once)");
    let tools = apt::Tools::lock()?;
    // Another run may have provided it while this one waited.
    if file.is_file() {
        return Ok(file);
    }
    let apt = tools.apt(Some(ARCHITECTURE), &REMEDY)?;
    apt.run("downloading Xen", &["download", PACKAGE])?;
    apt.unpack(&prefix)?;
    let there = file.is_file().then_some(file);
    there.with_context(|| format!("{PACKAGE} has no {FILE}; {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_xen_is_refused_by_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("xen");
        let refused = |path: &Path| ensure(Some(path)).unwrap_err().to_string();
        assert!(refused(&path).contains("can't be read"));
        fs::write(&path, [0; 100]).unwrap();
        assert!(refused(&path).starts_with("--xen: "));
        assert!(refused(&path).contains("is not an arm64 Image"));
    }
}
