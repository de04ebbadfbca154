// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compiler's flags, in Cargo's form.

use std::path::PathBuf;

use plan::Atomics;

use providing::toolchain;

/// Returns Cargo's setting of the compiler's flags for these atomic instructions.
pub fn flags_of_images(atomics: Atomics) -> String {
    let mut flags = source_name_flags();
    flags.extend(match atomics {
        Atomics::Llsc => None,
        Atomics::Lse => Some("-Ctarget-feature=+lse".into()),
    });
    cargo_setting(toolchain::TARGET, flags)
}

/// Returns the same setting for programs that run on Linux.
pub fn flags_of_linux() -> String {
    cargo_setting(toolchain::LINUX, source_name_flags())
}

/// Returns Cargo's setting of further flags for `target`.
fn cargo_setting(target: &str, flags: Vec<String>) -> String {
    format!("target.{target}.rustflags={}", toml::Value::from(flags))
}

/// Returns the compiler's flags that make the names of source files, which panic messages contain, independent of
/// their place. Equal sources then make equal images on every machine. Dependencies are in Cargo's folder. Rust's own
/// libraries have names below `/rustc/COMMIT` where the component rust-src is not installed. Where it is installed,
/// the names are the paths of their files, even in inlined code.
fn source_name_flags() -> Vec<String> {
    let flag = |from: PathBuf, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![flag(toolchain::home(), "/cargo")];
    if let (Some(sysroot), Some(commit)) = (toolchain::sysroot(), toolchain::rustc_commit()) {
        let from = sysroot.join("lib/rustlib/src/rust");
        flags.push(flag(from, &format!("/rustc/{commit}")));
    }
    flags
}
