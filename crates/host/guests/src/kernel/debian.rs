// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's kernels, each version fetched once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use providing::apt::{self, Remedy};
use shell::failure::bad_input;
use shell::places;
use shell::terminal::note;

const ARCHITECTURE: &str = "arm64";
/// Prefixes of the names of packages that contain a kernel. A newer kernel is in its package with the first prefix, and
/// its other package is empty. An older kernel only has a package with the second prefix.
const NAMES: [&str; 2] = ["linux-binary-", "linux-image-"];
const SUITE: &str = r"\+deb13";
const FLAVOUR: &str = "-arm64";
/// Versions to prefer if several fit. The counts in documents come from these versions. Change a version in a commit
/// of its own.
const PINNED: [&str; 2] = ["7.3.4", "6.12.117"];
/// Remedy for a missing kernel.
pub const REMEDY: Remedy = Remedy {
    missing: "Debian's kernel",
    instead: "name an arm64 Image by --guest",
};

/// Returns the version in `--guest`, which may be partial or empty: `debian:6.12`, `debian`.
pub fn read_version(guest: &str) -> Option<&str> {
    match guest.strip_prefix("debian")? {
        "" => Some(""),
        more => more.strip_prefix(':'),
    }
}

/// Provides the kernel whose version begins with `version`: the [`PINNED`] one, or else the newest.
pub fn provide(version: &str, remedy: &Remedy) -> Result<PathBuf> {
    if !version.chars().all(|c| c.is_ascii_digit() || c == '.') {
        bad_input!("--guest debian:{version}: no version; use numbers, as in debian:6.12");
    }
    remedy.provide_once(
        version,
        || find_provided(version),
        |tools| fetch_kernel(tools, version, remedy),
    )
}

fn fetch_kernel(tools: &apt::Tools, version: &str, remedy: &Remedy) -> Result<PathBuf> {
    let instead = remedy.instead;
    let apt = tools.apt(Some(ARCHITECTURE), remedy)?;
    let mut names = Vec::new();
    for prefix in NAMES {
        let expression = format!("^{prefix}[0-9.]+{SUITE}{FLAVOUR}$");
        names.extend(apt.matching_names(&expression)?);
    }
    let Some(chosen) = pinned_or_newest(&names, version) else {
        let mut have: Vec<_> = names.iter().map(|name| version_numbers(name)).collect();
        have.sort_unstable();
        have.dedup();
        let have: Vec<_> = have.iter().map(|numbers| version_text(numbers)).collect();
        bad_input!(
            "--guest debian:{version}: Debian has no such kernel, it has {}; {instead}",
            have.join(", ")
        );
    };
    let is = version_text(&version_numbers(chosen));
    if let Some(pinned) = pinned_version(version).filter(|pinned| *pinned != is) {
        note!("  Debian no longer has Linux {pinned}: taking {is}");
    }
    let folder = kernels_folder().join(is);
    if let Some(kernel) = find_kernel(&folder) {
        return Ok(kernel);
    }
    apt.run("downloading the kernel", &["download", chosen])?;
    apt.unpack(&folder)?;
    remove_modules(&folder)?;
    find_kernel(&folder).with_context(|| format!("{chosen} has no kernel; {instead}"))
}

/// The folder of provided kernels.
fn kernels_folder() -> PathBuf {
    places::target().join("tools/kernels")
}

/// Returns the kernel that an earlier run has provided.
pub fn find_provided(version: &str) -> Option<PathBuf> {
    if let Some(pinned) = pinned_version(version) {
        return find_kernel(&kernels_folder().join(pinned));
    }
    let entries = fs::read_dir(kernels_folder()).ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: Vec<_> = names.filter(|name| !name.contains("partial")).collect();
    find_kernel(&kernels_folder().join(newest_name(&names, version)?))
}

/// Returns the pinned version that begins with `version`.
fn pinned_version(version: &str) -> Option<&'static str> {
    let wanted = version_numbers(version);
    PINNED
        .into_iter()
        .find(|pinned| version_numbers(pinned).starts_with(&wanted))
}

/// Of the `names` whose version begins with `version`, returns the pinned name, or else the newest.
fn pinned_or_newest<'n>(names: &'n [String], version: &str) -> Option<&'n str> {
    let exact = pinned_version(version).and_then(|pinned| newest_name(names, pinned));
    exact.or_else(|| newest_name(names, version))
}

/// Finds the kernel in an unpacked package.
fn find_kernel(folder: &Path) -> Option<PathBuf> {
    let below = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let boot = below(folder.join("boot")).map(|entry| entry.path());
    let boot = boot.filter(|path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("vmlinu")
    });
    let modules = below(folder.join("usr/lib/modules")).map(|entry| entry.path().join("vmlinuz"));
    boot.chain(modules).find(|kernel| kernel.is_file())
}

/// Removes the modules, which are ten times as large as the kernel.
fn remove_modules(folder: &Path) -> Result<()> {
    let modules = fs::read_dir(folder.join("usr/lib/modules"));
    for entry in modules.into_iter().flatten().flatten() {
        let modules = entry.path().join("kernel");
        if modules.exists() {
            fs::remove_dir_all(&modules).with_context(|| modules.display().to_string())?;
        }
    }
    Ok(())
}

/// Returns the name with the highest version that begins with `version`.
fn newest_name<'n>(names: &'n [String], version: &str) -> Option<&'n str> {
    let wanted = version_numbers(version);
    let fitting = names
        .iter()
        .filter(|name| version_numbers(name).starts_with(&wanted));
    let newest = fitting.max_by_key(|name| (version_numbers(name), name.starts_with(NAMES[0])));
    newest.map(String::as_str)
}

/// Returns the numbers of a version, or of the version in a package's name. These numbers sort like versions.
fn version_numbers(name: &str) -> Vec<u32> {
    let version = NAMES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let version = version.unwrap_or(name);
    let version = version.split(['+', '-']).next().unwrap_or_default();
    version
        .split('.')
        .filter_map(|number| number.parse().ok())
        .collect()
}

fn version_text(numbers: &[u32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    numbers.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_named_as_far_as_one_likes() {
        let named = ["debian", "debian:6.12", "debianx", "./debian", "Image"].map(read_version);
        assert_eq!(named, [Some(""), Some("6.12"), None, None, None]);
    }

    #[test]
    fn the_newest_that_fits_is_taken() {
        let names = [
            "linux-image-6.12.94+deb13-arm64",
            "linux-image-6.12.107+deb13-arm64",
            "linux-binary-7.3.4+deb13-arm64",
            "linux-binary-7.10.1+deb13-arm64",
            "linux-image-7.10.1+deb13-arm64",
            "linux-binary-6.1.1+deb13-arm64",
        ]
        .map(str::to_owned);
        let of = |version| newest_name(&names, version).map(version_numbers);
        assert_eq!(newest_name(&names, ""), Some(names[3].as_str()));
        assert_eq!(of("6.12").unwrap(), [6, 12, 107]);
        assert_eq!(of("7.3").unwrap(), [7, 3, 4]);
        assert_eq!(of("6.1").unwrap(), [6, 1, 1]);
        assert_eq!(of("5"), None);
    }

    #[test]
    fn a_pinned_version_comes_before_a_newer_one() {
        let [seven, six] = PINNED.map(|version| format!("linux-binary-{version}+deb13-arm64"));
        let newer = [
            "linux-binary-9.1.2+deb13-arm64".to_owned(),
            "linux-image-6.12.999+deb13-arm64".to_owned(),
        ];
        let all = [&newer[..], &[seven.clone(), six.clone()]].concat();
        assert_eq!(pinned_or_newest(&all, ""), Some(&*seven));
        assert_eq!(pinned_or_newest(&all, "6.12"), Some(&*six));
        assert_eq!(pinned_or_newest(&all, "9"), Some(&*newer[0]));
        assert_eq!(pinned_or_newest(&newer, ""), Some(&*newer[0]));
        assert_eq!(pinned_or_newest(&newer, "6"), Some(&*newer[1]));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        let refused = provide("7;rm", &REMEDY).unwrap_err().to_string();
        assert!(refused.contains("debian:6.12"));
    }

    #[test]
    fn a_kernel_is_found_where_packages_have_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        assert_eq!(find_kernel(folder), None);
        let modules = folder.join("usr/lib/modules/7.3.4");
        fs::create_dir_all(modules.join("kernel/drivers")).unwrap();
        fs::write(modules.join("vmlinuz"), "a").unwrap();
        remove_modules(folder).unwrap();
        assert!(!modules.join("kernel").exists());
        assert_eq!(find_kernel(folder), Some(modules.join("vmlinuz")));
        fs::create_dir(folder.join("boot")).unwrap();
        fs::write(folder.join("boot/config-6.12"), "c").unwrap();
        fs::write(folder.join("boot/vmlinuz-6.12"), "b").unwrap();
        assert_eq!(find_kernel(folder), Some(folder.join("boot/vmlinuz-6.12")));
    }
}
