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

/// Likewise for programs of Linux.
pub fn of_linux() -> String {
    setting(toolchain::LINUX, sources())
}

/// Returns Cargo's setting of further flags for `target`.
fn setting(target: &str, flags: Vec<String>) -> String {
    format!("target.{target}.rustflags={}", toml::Value::from(flags))
}

/// Returns the compiler's flags that give source files, whose names are in messages of panics, names that do not
/// depend on their place: the same source makes the same image on every machine. Those of dependencies are
/// in Cargo's folder. Those of Rust's own libraries are `/rustc/COMMIT` where the component
/// rust-src is not installed, and else their paths, also in inlined code.
fn sources() -> Vec<String> {
    let flag = |from: PathBuf, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![flag(toolchain::home(), "/cargo")];
    if let (Some(sysroot), Some(commit)) = (toolchain::sysroot(), toolchain::rustc_commit()) {
        let from = sysroot.join("lib/rustlib/src/rust");
        flags.push(flag(from, &format!("/rustc/{commit}")));
    }
    flags
}
