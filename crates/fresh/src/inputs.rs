// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a build depends on.

use std::collections::BTreeSet;
use std::env;
use std::env::consts::DLL_EXTENSION;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of the workspace's folder that Cargo and rustup heed.
const SETTINGS: [&str; 4] = [
    "Cargo.lock",
    "Cargo.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
];
/// Files of settings in a folder, its parents, and Cargo's own (The Cargo Book, Configuration).
const CONFIG: [&str; 2] = ["config", "config.toml"];

/// The files that `programs` of the workspace `root` are made of; `None` if Cargo has not said.
pub fn of(root: &Path, programs: &[PathBuf]) -> Option<BTreeSet<PathBuf>> {
    let mut inputs = BTreeSet::new();
    for program in programs {
        let text = fs::read_to_string(said_of(program)).ok()?;
        let sources = sources(&text)?;
        inputs.extend(sources.iter().flat_map(|source| manifests(root, source)));
        inputs.extend(sources);
    }
    inputs.extend(SETTINGS.map(|name| root.join(name)));
    let folders = root.ancestors().map(|folder| folder.join(".cargo"));
    for folder in folders.chain(home()) {
        inputs.extend(CONFIG.map(|name| folder.join(name)));
    }
    inputs.extend(toolchain());
    Some(inputs)
}

/// Where Cargo says what a program is made of, beside it: the program may have a dot in its name, and in that of a library `.d`
/// takes the place of what makes it one.
fn said_of(program: &Path) -> PathBuf {
    match program.extension() {
        Some(suffix) if suffix == DLL_EXTENSION => program.with_extension("d"),
        _ => program.with_added_extension("d"),
    }
}

/// The sources in a file of dependencies, `PROGRAM: SOURCE SOURCE`, in which a blank of a path has a backslash before it.
fn sources(text: &str) -> Option<Vec<PathBuf>> {
    const BLANK: &str = "\0";
    let line = text.lines().next()?.replace("\\ ", BLANK);
    let (_, sources) = line.split_once(": ")?;
    let sources = sources.split_ascii_whitespace();
    let paths = sources.map(|source| PathBuf::from(source.replace(BLANK, " ")));
    // Relative to what is in a setting, `build.dep-info-basedir`.
    let paths: Vec<PathBuf> = paths.collect();
    paths.iter().all(|path| path.is_absolute()).then_some(paths)
}

/// The manifests above `source`, up to the workspace's.
fn manifests(root: &Path, source: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = source.ancestors().skip(1);
    let inside = folders.take_while(move |folder| folder.starts_with(root));
    inside
        .map(|folder| folder.join("Cargo.toml"))
        .filter(|manifest| manifest.is_file())
}

/// The Cargo that runs this program, so that both use the same toolchain.
#[must_use]
pub fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Cargo's folder, where the sources of dependencies are (The Cargo Book, Cargo Home).
#[must_use]
pub fn home() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(env::home_dir()?.join(".cargo")))
}

/// The compiler, beside the Cargo that runs this.
fn toolchain() -> Option<PathBuf> {
    let cargo = PathBuf::from(cargo());
    cargo.is_absolute().then(|| cargo.with_file_name("rustc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart() {
        let text = "/t/debug/x: /s/a.rs /s/with\\ blank.rs /s/b.ld\n\n/s/a.rs:\n";
        let expected = ["/s/a.rs", "/s/with blank.rs", "/s/b.ld"];
        assert_eq!(sources(text).unwrap(), expected.map(PathBuf::from));
        for none in ["", "/t/x\n", "/t/x: /s/a.rs b.rs\n"] {
            assert_eq!(sources(none), None, "{none}");
        }
    }
}
