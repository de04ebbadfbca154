// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests under Miri, which finds undefined behaviour: `cargo xtask test --miri`.
//!
//! It takes a thousand times as long as the test itself, so property tests run a
//! few cases each, and what goes through a whole domain goes through a part of it
//! (`cfg!(miri)` in the tests).

use std::process::Command;

use anyhow::{Context, Result, bail};

use shell::terminal::say;
use shell::{failure::bad_input, places};
use providing::toolchain;

/// Packages with code of ours that the host can run: all that are tested there
/// but xtask and results, which have no unsafe code; the first starts programs, the second
/// reads many files.
const PACKAGES: [&str; 16] = [
    "abi", "acpi", "config", "console", "cpuidle", "fuzz", "gic", "hist", "parts", "plan",
    "platform", "trap", "vgic", "wait", "watchdog", "wire",
];

/// Runs them, those whose name contains `filter`.
pub fn run(filter: &str) -> Result<()> {
    let Some(version) = toolchain::output("cargo", &["+nightly", "miri", "--version"]) else {
        bad_input!(
            "skipped: there is no Miri; get it by \
             rustup toolchain install nightly --profile minimal --component miri,rust-src"
        );
    };
    say!("{}", version.trim());
    // Not the Cargo that runs this program: `+nightly` is rustup's.
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(places::root())
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        // The corpora are read from files; addresses of devices are numbers.
        .env(
            "MIRIFLAGS",
            "-Zmiri-disable-isolation -Zmiri-permissive-provenance",
        )
        .env("PROPTEST_CASES", "2")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .args(["+nightly", "miri", "test", "--tests"])
        .arg("--target-dir")
        .arg(places::inside("target/miri"))
        .args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    if !filter.is_empty() {
        cargo.arg(filter);
    }
    if !cargo.status().with_context(toolchain::no_cargo)?.success() {
        bail!("tests failed under Miri; what it said is above");
    }
    Ok(())
}
