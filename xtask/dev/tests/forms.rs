// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the forms of output as a shell sees them: documents alone on standard output, charts as files, the manual, and
//! mails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask-dev"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../crates/host/results/tests/goldens")
        .join(name)
}

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

const REPLAY: [&str; 5] = ["governors", "--generate", "bursty", "--count", "50"];

#[test]
fn standard_output_has_the_document_alone() {
    let parent = tempfile::tempdir().unwrap();
    let page = parent.path().join("page.html");
    let log = stored("paths.log");
    let report = |form: &str| {
        let mut command = xtask(&["report", "--format", form]);
        done(command.arg(&log).arg("--out").arg(&page))
    };
    for (form, begins, ends) in [
        ("json", "{", "}\n"),
        ("csv", "under,workload,", "\n"),
        ("md", "a board that is not named: 2 CPUs", "```\n"),
        ("mail", "a board that is not named: 2 CPUs", "\n"),
    ] {
        let output = report(form);
        let (out, beside) = (text(&output.stdout), text(&output.stderr));
        assert!(
            out.starts_with(begins) && out.ends_with(ends),
            "{form}: {out}"
        );
        assert!(
            !out.contains("report: ") && beside.contains("report: "),
            "{form}: {out}"
        );
    }
    let known: Value = serde_json::from_slice(&fs::read(stored("paths.json")).unwrap()).unwrap();
    let shown: Value = serde_json::from_slice(&report("json").stdout).unwrap();
    let stats = |results: &Value| -> Vec<Value> {
        let cells = results["cells"].as_array().unwrap().iter();
        cells.map(|cell| cell["stats"].clone()).collect()
    };
    assert_eq!(stats(&shown), stats(&known));
    // The output with the table also names the page's path.
    let output = report("table");
    assert!(text(&output.stdout).contains("report: ") && output.stderr.is_empty());
}

#[test]
fn caveats_of_a_spreadsheet_are_beside_it() {
    let mut command = xtask(&["report", "--format", "csv", "--out", "/dev/null"]);
    let output = done(command.arg(stored("paths.log")));
    let why = "* depends on what this machine does not model: monitor_wakes_wfe";
    assert!(text(&output.stderr).contains(why));
    assert!(!text(&output.stdout).contains(why));
}

#[test]
fn what_has_no_file_of_its_own_is_told_as_tables() {
    let log = stored("paths.log");
    let mut command = xtask(&["compare", "--format", "json"]);
    let output = done(command.args([&log, &log]));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["schema"], 1);
    let blocks = shown["blocks"].as_array().unwrap();
    let columns = blocks.iter().find_map(|block| block["columns"].as_array());
    let rows = columns.unwrap().iter();
    let rows: Vec<usize> = rows
        .map(|column| column["texts"].as_array().unwrap().len())
        .collect();
    assert!(
        rows[0] > 0 && rows.iter().all(|&count| count == rows[0]),
        "{rows:?}"
    );
    let command = shown["command"].as_str().unwrap();
    assert!(command.starts_with("cargo xtask compare "), "{command}");
    // If a form also exists as a file, the output equals the file.
    let output = done(xtask(&REPLAY).args(["--format", "json"]));
    let copied = done(xtask(&REPLAY).args(["--json", "-"]));
    assert_eq!(text(&output.stdout), text(&copied.stdout));
}

#[test]
fn standard_output_is_not_given_away_twice() {
    let output = xtask(&REPLAY)
        .args(["--format", "md", "--json", "-"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("standard output is that of another option"));
    assert!(output.stdout.is_empty());
}

#[test]
fn no_document_arrives_on_a_full_disk_and_a_reader_may_leave() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = xtask(&REPLAY)
        .args(["--format", "md"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let mut command = xtask(&REPLAY);
    let command = command
        .args(["--format", "md"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_chart_is_a_file_that_is_not_replaced() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("new/charts");
    let report = || {
        let mut command = xtask(&["report", "--out", "/dev/null"]);
        command
            .arg(stored("paths.log"))
            .arg("--svg")
            .arg(&folder)
            .output()
            .unwrap()
    };
    let output = report();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let entries = fs::read_dir(&folder).unwrap();
    let names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        names.contains(&"answer-pingpong.svg".to_owned()),
        "{names:?}"
    );
    assert!(names.iter().all(|name| said.contains(&**name)), "{said}");
    let kept = folder.join("answer-pingpong.svg");
    assert!(fs::read_to_string(&kept).unwrap().ends_with("</svg>\n"));
    // If one of the files exists, none of them is written.
    for name in &names {
        fs::remove_file(folder.join(name)).unwrap();
    }
    fs::write(&kept, "kept").unwrap();
    let output = report();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("answer-pingpong.svg"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
}

#[test]
fn the_manual_has_the_verbs_and_their_options() {
    let all = text(&done(&mut xtask(&["dev", "man"])).stdout);
    assert!(all.contains(".TH") && all.contains("governors"), "{all}");
    let run = text(&done(&mut xtask(&["dev", "man", "run"])).stdout);
    for part in [
        ".TH",
        "\\-\\-format",
        "\\-\\-wide",
        "EXIT STATUS",
        "EXAMPLES",
    ] {
        assert!(run.contains(part), "{part} in:\n{run}");
    }
    let output = xtask(&["dev", "man", "rum"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there is no verb `rum`; use run"));
}

/// The text around the mails in `crates/host/reporting/tests/goldens/mails.md`, and the command for each mail.
const MAILS: [(&str, &[&str]); 2] = [
    (
        "# Mails\n\nResults as they are sent to a mailing list: what `--format mail` writes, \
         whole and unchanged. They are made of files\nof this repository, so each can be made again with the command \
         that is its last line. A test compares them with what the program writes.\n\n## A run\n\nThe default table of \
         `virt`, as `cargo xtask run --board virt --format mail` writes it but for the last line:\n",
        &[
            "report",
            "results/virt.json",
            "--out",
            "/dev/null",
            "--format",
            "mail",
        ],
    ),
    (
        "\n## A comparison\n\nTwo runs on one machine, of logs that tests have. Three cells take more instructions, and one is new:\n",
        &[
            "compare",
            "crates/host/results/tests/goldens/passes.json",
            "crates/host/results/tests/goldens/stages.json",
            "--format",
            "mail",
        ],
    ),
];

#[test]
fn the_mails_are_those_that_would_be_sent() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut page = String::new();
    for (before, arguments) in MAILS {
        let sent = text(&done(xtask(arguments).current_dir(&root)).stdout);
        assert!(sent.is_ascii());
        let mut lines = sent.lines();
        assert!(lines.all(|line| line.len() <= 76), "{sent}");
        page.push_str(&format!("{before}\n```text\n{sent}```\n"));
    }
    results::goldens::golden(
        &root.join("crates/host/reporting/tests/goldens/mails.md"),
        &page,
    );
}
