// SPDX-License-Identifier: MIT OR Apache-2.0
//! Xen, whose first domain is the guest.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use guests::kernel::image_check;
use providing::apt::Remedy;
use shell::failure::bad_input;
use shell::places;

/// Debian's package of Xen, and the file in it.
const PACKAGE: &str = "xen-hypervisor-4.20-arm64";
const PINNED: &str = "4.20.4+63-g7abfd2bce2-0+deb13u1";
const FILE: &str = "boot/xen-4.20-arm64";
const ARCHITECTURE: &str = "arm64";
/// Remedy for a missing hypervisor.
const REMEDY: Remedy = Remedy {
    missing: "Xen",
    instead: "name an arm64 Image of Xen by --xen",
};

/// Prefixes of Xen's console lines that give its version and its scheduler.
const VERSION: &str = "Xen version ";
const SCHEDULER: &str = "Using scheduler: ";
/// The option that names a scheduler; if the name is unknown, Xen silently uses a different scheduler.
const SCHED: &str = "sched=";

/// A Xen that can be started.
#[derive(Debug)]
pub struct Xen {
    pub image: PathBuf,
    /// Xen's version and scheduler, from its console.
    pub told: String,
}

impl Xen {
    /// Returns the `named` Xen, or else Debian's. `started` boots Xen once with Xen's options, and returns Xen's lines
    /// up to the one for which [`Self::is_last`] is true. This extra boot is needed because Xen's console is not
    /// available while a guest runs.
    pub fn ensure(
        named: Option<&Path>,
        options: Option<&str>,
        started: impl FnOnce(&Path) -> Result<Vec<String>>,
    ) -> Result<Self> {
        let image = find_image(named)?;
        let lines = started(&image)?;
        let options = options.iter().flat_map(|text| text.split_whitespace());
        let asked = options
            .filter_map(|word| word.strip_prefix(SCHED))
            .next_back();
        let told = parse(&lines, asked)?;
        Ok(Self { image, told })
    }

    /// Whether the lines after `line` are irrelevant.
    pub fn is_last(line: &str) -> bool {
        line.contains(SCHEDULER) || line.contains("Panic on")
    }
}

/// Returns the version and the scheduler from Xen's lines. `asked` is the requested scheduler.
fn parse(lines: &[String], asked: Option<&str>) -> Result<String> {
    let after = |words: &str| lines.iter().find_map(|line| line.split_once(words));
    let inner = |text: &str| -> Option<String> {
        Some(text.split_once('(')?.1.trim_end_matches(')').into())
    };
    let scheduler = after(SCHEDULER).and_then(|(_, name)| inner(name.trim_end()));
    let Some(((_, version), scheduler)) = after(VERSION).zip(scheduler) else {
        bad_input!(
            "--under: Xen does not start on this machine; name a CPU that has EL2 by --cpu, or \
             another Xen by --xen"
        );
    };
    if let Some(asked) = asked.filter(|asked| *asked != scheduler) {
        bad_input!(
            "--xen-args: this Xen has no scheduler `{asked}`, and takes {scheduler}; leave `sched=` out"
        );
    }
    // The version is followed by the builder, the compiler and the package, which are cut off.
    let version = version
        .splitn(3, " (")
        .take(2)
        .collect::<Vec<_>>()
        .join(" (");
    Ok(format!("Xen {version}, scheduler {scheduler}"))
}

/// Returns the `named` Xen, or else Debian's, which is provided once.
fn find_image(named: Option<&Path>) -> Result<PathBuf> {
    let Some(named) = named else {
        return provide();
    };
    let shown = named.display();
    let image = match fs::read(named) {
        Ok(image) => image,
        Err(error) => bad_input!("--xen: {shown} can't be read ({error}); name an Image of Xen"),
    };
    match image_check::check_image(&image) {
        Ok(()) => Ok(named.to_owned()),
        Err(why) => bad_input!("--xen: {shown} {why}"),
    }
}

fn install_folder() -> PathBuf {
    places::target().join("tools/xen")
}

/// Returns the Xen that an earlier run has provided.
pub fn find_provided() -> Option<PathBuf> {
    Some(install_folder().join(FILE)).filter(|file| file.is_file())
}

/// Provides Debian's Xen: fetches, checks and unpacks it, unless an earlier run has done so.
fn provide() -> Result<PathBuf> {
    REMEDY.provide_once("", find_provided, |tools| {
        let apt = tools.apt(Some(ARCHITECTURE), &REMEDY)?;
        let package = apt.find_pinned(PACKAGE, PINNED)?;
        apt.run("downloading Xen", &["download", &package])?;
        apt.unpack(&install_folder())?;
        find_provided().with_context(|| format!("{PACKAGE} has no {FILE}; {}", REMEDY.instead))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_xen_is_refused_by_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("xen");
        let refused = |path: &Path| find_image(Some(path)).unwrap_err().to_string();
        assert!(refused(&path).contains("can't be read"));
        fs::write(&path, [0; 100]).unwrap();
        assert!(refused(&path).starts_with("--xen: "));
        assert!(refused(&path).contains("is not an arm64 Image"));
    }

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    #[test]
    fn its_console_tells_version_and_scheduler() {
        let banner =
            "(XEN) Xen version 4.20.4-pre (Debian 4.20.3+127-g1) (a@b.org) (gcc 14) debug=n";
        let uses = "(XEN) Using scheduler: SMP Credit Scheduler rev2 (credit2)";
        let said = format!("{banner}\n(XEN) GICv3\n{uses}");
        assert_eq!(
            parse(&lines(&said), None).unwrap(),
            "Xen 4.20.4-pre (Debian 4.20.3+127-g1), scheduler credit2"
        );
        assert!(parse(&lines(&said), Some("credit2")).is_ok());
        let error = parse(&lines(&said), Some("null")).unwrap_err().to_string();
        assert!(
            error.contains("no scheduler `null`, and takes credit2"),
            "{error}"
        );
        let error = parse(&lines("- Xen must be entered in NS EL2 mode -"), None).unwrap_err();
        assert!(error.to_string().contains("--cpu"), "{error}");
    }
}
