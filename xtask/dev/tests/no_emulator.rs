// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that a command ends with status 2 if the emulator that it needs is missing, and that it names the missing tool
//! and the remedy.

use std::process::{Command, Stdio};

/// A path at which there is no emulator.
const NAMED: &str = "/nonexistent/qemu";

#[test]
fn nothing_fails_that_could_not_be_tried() {
    for line in [
        &["run", "--quick"][..],
        &["test", "first-light", "--target-only"],
        &["test", "runs-at-once", "--target-only"],
        &["cost"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask-dev"))
            .args(line)
            .env("ROUSE_QEMU", NAMED)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {complained}");
        for said in ["ROUSE_QEMU", NAMED, "unset it"] {
            assert!(complained.contains(said), "{line:?}: {complained}");
        }
    }
}

#[test]
fn a_name_is_refused_by_its_option() {
    let long = "x".repeat(300);
    for (name, said) in [
        ("a b", "letters"),
        ("--save=-x", "letters"),
        (&long, "too long"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask-dev"))
            .args([
                "run",
                if name.starts_with("--") {
                    name
                } else {
                    "--save"
                },
            ])
            .args((!name.starts_with("--")).then_some(name))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {complained}");
        assert!(
            complained.contains(said) && complained.contains("--save"),
            "{complained}"
        );
    }
}
