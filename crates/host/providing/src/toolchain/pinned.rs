// SPDX-License-Identifier: MIT OR Apache-2.0
//! The toolchain that `rust-toolchain.toml` names. The pinned toolchain builds everything that is measured, whatever
//! toolchain built this program, since counts depend on the compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::output;
use shell::places;
use shell::terminal::{note, step};

const FILE: &str = include_str!("../../../../../rust-toolchain.toml");

/// A list that rustup keeps in each of its toolchains.
const OF_RUSTUP: &str = "lib/rustlib/multirust-channel-manifest.toml";

/// Returns the toolchain's version, as `rust-toolchain.toml` names it.
pub fn version() -> &'static str {
    let named = FILE
        .lines()
        .find_map(|line| line.strip_prefix("channel = \""));
    named
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or("stable")
}

/// Returns the toolchain's folder, and installs the toolchain if it is missing. Returns `None` without rustup; a
/// distribution's compiler is then used.
pub fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    // A toolchain may be a link to another one, and the compiler reports the link's target.
    let find = || find_or_install().map(|folder| folder.canonicalize().unwrap_or(folder));
    FOLDER.get_or_init(find).as_deref()
}

fn find_or_install() -> Option<PathBuf> {
    // Cargo passes its own path to the programs that it starts, and rustup the name of the toolchain, which may be a
    // link to another one. They make slow queries of rustup unnecessary.
    let running = env::var_os("CARGO").and_then(|cargo| folder_of_program(Path::new(&cargo)));
    let named = || {
        let toolchains = Path::new(&env::var_os("RUSTUP_HOME")?).join("toolchains");
        let folder = toolchains.join(env::var_os("RUSTUP_TOOLCHAIN")?);
        folder.join(OF_RUSTUP).is_file().then_some(folder)
    };
    let mut known = running.into_iter().chain(named());
    if let Some(known) = known.find(|folder| is_of(folder, version())) {
        return Some(known);
    }
    output("rustup", &["--version"])?;
    find_installed().or_else(|| {
        step!("installing Rust {}, which images are built by", version());
        let install = ["toolchain", "install", version(), "--profile", "minimal"];
        let status = Command::new("rustup")
            .args(install)
            .current_dir(places::root())
            .status();
        let found = status
            .is_ok_and(|status| status.success())
            .then(find_installed)
            .flatten();
        if found.is_none() {
            note!(
                "Rust {} can't be installed; the installed Rust builds the images, and counts may differ",
                version()
            );
        }
        found
    })
}

fn find_installed() -> Option<PathBuf> {
    let cargo = output("rustup", &["which", "--toolchain", version(), "cargo"])?;
    folder_of_program(Path::new(cargo.trim()))
}

/// Returns the folder of the rustup toolchain that contains a program.
fn folder_of_program(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?.parent()?;
    folder.join(OF_RUSTUP).is_file().then(|| folder.to_owned())
}

/// Whether a toolchain's folder, VERSION-TRIPLE, has this `version`.
fn is_of(folder: &Path, version: &str) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    let rest = name.and_then(|name| name.strip_prefix(version));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_named_with_three_numbers() {
        let numbers: Vec<_> = version().split('.').map(str::parse::<u32>).collect();
        assert!(numbers.len() == 3 && numbers.iter().all(Result::is_ok));
    }

    #[test]
    fn a_folder_of_another_version_is_not_taken() {
        let folder = |name: &str| PathBuf::from("/r/toolchains").join(name);
        assert!(is_of(&folder("1.95.0-x86_64-unknown-linux-gnu"), "1.95.0"));
        assert!(is_of(&folder("1.95.0"), "1.95.0"));
        for other in ["stable-x86_64-unknown-linux-gnu", "1.95.01-x", "nightly"] {
            assert!(!is_of(&folder(other), "1.95.0"), "{other}");
        }
    }

    #[test]
    fn its_compiler_says_that_it_is_that_version() {
        let rustc = folder().unwrap().join("bin/rustc");
        let said = output(rustc, &["--version"]).unwrap();
        assert!(said.starts_with(&format!("rustc {} ", version())), "{said}");
    }
}
