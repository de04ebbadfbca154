// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Rust toolchain: what it is called and what it needs.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::terminal::note;
use crate::{failure::bad_input, places};

/// What both images are built for.
pub const TARGET: &str = "aarch64-unknown-none-softfloat";

/// The Cargo that runs this program, so that both use the same toolchain.
pub fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Standard output of a program in the workspace's root; `None` if it can't be
/// started or fails.
pub fn output(program: impl Into<OsString>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program.into())
        .args(arguments)
        .current_dir(places::root())
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

/// Whether the target's library is there; `None` if rustup can't tell.
pub fn has_target() -> Option<bool> {
    let installed = output("rustup", &["target", "list", "--installed"])?;
    Some(installed.lines().any(|line| line.trim() == TARGET))
}

/// Installs the target's library if it is missing.
pub fn ensure_target() -> Result<()> {
    match has_target() {
        Some(true) => Ok(()),
        // A distribution's Rust has no rustup. If the target is missing there,
        // the compiler's message names it.
        None => Ok(()),
        Some(false) => {
            note!("installing the Rust target {TARGET}");
            let add = Command::new("rustup")
                .args(["target", "add", TARGET])
                .current_dir(places::root())
                .status();
            match add {
                Ok(status) if status.success() => Ok(()),
                Ok(_) => bad_input!(
                    "rustup target add {TARGET} failed, what it said is above; run it by hand where there is network"
                ),
                Err(error) => {
                    bad_input!("rustup can't be started ({error}); see https://rustup.rs")
                }
            }
        }
    }
}

/// The triple of the machine that this runs on, as rustc names it.
pub fn host() -> Option<String> {
    let version = output("rustc", &["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
}

/// First line of `rustc --version`.
pub fn rustc_version() -> Option<String> {
    let version = output("rustc", &["--version"])?;
    Some(version.lines().next()?.to_owned())
}
