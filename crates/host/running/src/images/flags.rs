// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compiler's flags, in Cargo's form.

use std::path::PathBuf;

use plan::Atomics;

use providing::toolchain;

/// Returns Cargo's setting for the compiler flags of images with `atomics`.
pub fn flags_of_images(atomics: Atomics) -> String {
    let mut flags = source_name_flags();
    flags.extend(match atomics {
        Atomics::Llsc => None,
        Atomics::Lse => Some("-Ctarget-feature=+lse".into()),
    });
    cargo_setting(toolchain::TARGET, flags)
}

/// Returns Cargo's setting for the compiler flags of programs that run on Linux.
pub fn flags_of_linux() -> String {
    cargo_setting(toolchain::LINUX, source_name_flags())
}

/// Returns the Cargo setting that adds the compiler flags `flags` for `target`.
fn cargo_setting(target: &str, flags: Vec<String>) -> String {
    format!("target.{target}.rustflags={}", toml::Value::from(flags))
}

/// Returns compiler flags that make source file names, which panic messages contain, independent of the location of the
/// sources. Equal sources then produce equal images on every machine. Dependencies are in Cargo's folder. The names of
/// Rust's own libraries begin with `/rustc/COMMIT` if the component rust-src is not installed. If it is installed,
/// their names are the paths of their files, even in inlined code.
fn source_name_flags() -> Vec<String> {
    let flag = |from: PathBuf, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![flag(toolchain::home(), "/cargo")];
    if let (Some(sysroot), Some(commit)) = (toolchain::sysroot(), toolchain::rustc_commit()) {
        let from = sysroot.join("lib/rustlib/src/rust");
        flags.push(flag(from, &format!("/rustc/{commit}")));
    }
    flags
}
