// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hashes everything on which the result of a build depends: the sources, Cargo's configuration, the compiler, the
//! environment, and the arguments. `Cargo.lock` names the dependencies from a registry, which do not change.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use providing::toolchain;
use shell::digest::xxh3_hex;

use crate::Build;
use crate::contents::Contents;

/// Variables that a shell sets for each command or folder.
const OF_SHELL: [&str; 4] = ["_", "OLDPWD", "PWD", "SHLVL"];

/// Returns the hash of the inputs of `build`. Returns `None` if they are not all known.
pub fn hash(root: &Path, contents: &Contents, build: &Build) -> Option<String> {
    let mut inputs = format!("{}\n{}\n", contents.digest(), toolchain::identity()?);
    inputs += &configuration(root)?;
    let mut variables: Vec<_> = env::vars_os().collect();
    variables.sort();
    for (name, value) in variables {
        if !OF_SHELL.iter().any(|of_shell| name == *of_shell) {
            inputs += &format!("{name:?}={value:?}\n");
        }
    }
    inputs += &format!("{:?}\n{:?}", build.directory, build.arguments);
    Some(xxh3_hex(inputs.as_bytes()))
}

/// Returns the text of Cargo's configuration from the workspace, each parent folder and Cargo's own folder (The Cargo
/// Book, Configuration). Returns `None` if the configuration may include further files, or may name another compiler.
fn configuration(root: &Path) -> Option<String> {
    let parents = root.ancestors().map(|parent| parent.join(".cargo"));
    let folders = parents.chain([toolchain::home()]);
    let files =
        folders.flat_map(|folder: PathBuf| ["config", "config.toml"].map(|name| folder.join(name)));
    let texts: Vec<_> = files
        .filter_map(|file| Some((fs::read_to_string(&file).ok()?, file)))
        .collect();
    let refers = |(text, _): &(String, _)| text.contains("include") || text.contains("rustc");
    (!texts.iter().any(refers)).then(|| format!("{texts:?}\n"))
}
