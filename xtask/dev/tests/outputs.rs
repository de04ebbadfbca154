// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the destinations of output as a shell sees them, with verbs that boot nothing and with whole commands.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask-dev"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const REPLAY: [&str; 5] = ["governors", "--generate", "bursty", "--count", "50"];

fn replay(more: &[&str]) -> Output {
    xtask(&REPLAY).args(more).output().unwrap()
}

#[test]
fn standard_output_has_the_file_that_was_asked_for_and_nothing_else() {
    for name in ["-", "/dev/stdout"] {
        let output = replay(&["--json", name]);
        assert!(output.status.success());
        let text = text(&output.stdout);
        assert!(text.starts_with('{') && text.ends_with("}\n"), "{text}");
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        assert!(String::from_utf8_lossy(&output.stderr).contains("oracle"));
    }
    let output = replay(&["--json", "-", "--save", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("taken by another option"));
    assert!(!Path::new("-").exists());
}

#[test]
fn standard_output_that_is_a_file_is_not_replaced_under_it() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("all");
    let out = File::create(&path).unwrap();
    let mut command = xtask(&REPLAY);
    command.arg("--json").arg(&path).stdout(out);
    assert!(command.output().unwrap().status.success());
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        serde_json::from_str::<serde_json::Value>(&text).is_ok(),
        "{text}"
    );
}

#[test]
fn what_can_not_be_printed_is_no_success() {
    for arguments in [
        &["doctor", "--boards"][..],
        &["--help"],
        &["run", "--help"],
        &["--version"],
        &["governors", "--generate", "bursty", "--count", "50"],
        &[
            "governors",
            "--generate",
            "bursty",
            "--count",
            "50",
            "--json",
            "-",
        ],
    ] {
        let output = xtask(arguments).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains("No space left"), "{arguments:?}: {said}");
    }
    // The program does not panic even if error messages can't be printed.
    let output = xtask(&["doctor", "--boards"])
        .stdout(full())
        .stderr(full())
        .output();
    assert_eq!(output.unwrap().status.code(), Some(1));
}

#[test]
fn a_reader_that_left_is_not_complained_about() {
    for arguments in [&["doctor", "--boards"][..], &["--help"]] {
        let mut child = xtask(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn a_report_may_go_anywhere() {
    let parent = tempfile::tempdir().unwrap();
    let input = parent.path().join("results.json");
    fs::write(&input, include_str!("results.json")).unwrap();
    let report = |out: &str| {
        let mut command = xtask(&["report"]);
        command.arg(&input).args(["--out", out]).output().unwrap()
    };
    let output = report("-");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("<!DOCTYPE html>"));
    assert!(text(&output.stderr).contains("report: standard output"));
    assert!(report("/dev/null").status.success());
    assert_eq!(report("/dev/full").status.code(), Some(1));
}

#[test]
fn what_is_refused_is_refused_before_anything_is_built() {
    for (arguments, remedy) in [
        (
            &["run", "--dtb", "Cargo.toml"][..],
            "not a flattened device tree",
        ),
        (
            &["run", "--iterations", "1e20"],
            "the nearest is 1000000000",
        ),
        (&["run", "--json", "."], "is a folder"),
        (&["run", "--out", "-"], "name one"),
        (
            &["image", "--board", "virt-uefi", "--out", "."],
            "is a folder",
        ),
        (
            &["test", "no-such-test-as-this"],
            "has `no-such-test-as-this` in its name",
        ),
        (
            &["test", "--host-only", "first-light"],
            "no test of the host",
        ),
    ] {
        let output = xtask(arguments).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(remedy), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
