// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compiler's flags, in Cargo's form.

use std::path::PathBuf;

use plan::Atomics;

use providing::toolchain;

/// Returns Cargo's setting of the compiler's flags for these atomic instructions.
pub fn of_images(atomics: Atomics) -> String {
    let mut flags = sources();
    flags.extend(match atomics {
        Atomics::Llsc => None,
        Atomics::Lse => Some("-Ctarget-feature=+lse".into()),
    });
    setting(toolchain::TARGET, flags)
}

/// Returns the same setting for programs that run on Linux.
pub fn of_linux() -> String {
    setting(toolchain::LINUX, sources())
}

/// Returns Cargo's setting of further flags for `target`.
fn setting(target: &str, flags: Vec<String>) -> String {
    format!("target.{target}.rustflags={}", toml::Value::from(flags))
}

/// Returns the compiler's flags that make the names of source files, which panic messages contain, independent of
/// their place. Equal sources then make equal images on every machine. Dependencies are in Cargo's folder. Rust's own
/// libraries have names below `/rustc/COMMIT` where the component rust-src is not installed. Where it is installed,
/// the names are the paths of their files, even in inlined code.
fn sources() -> Vec<String> {
    let flag = |from: PathBuf, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![flag(toolchain::home(), "/cargo")];
    if let (Some(sysroot), Some(commit)) = (toolchain::sysroot(), toolchain::rustc_commit()) {
        let from = sysroot.join("lib/rustlib/src/rust");
        flags.push(flag(from, &format!("/rustc/{commit}")));
    }
    flags
}
