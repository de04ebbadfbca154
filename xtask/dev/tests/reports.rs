// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests which files and messages `cargo xtask report` makes from which inputs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Makes a report from `inputs`, and returns the status, standard output and standard error.
fn report(inputs: &[&Path], out: Option<&Path>) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask-dev"));
    command.arg("report").args(inputs).stdin(Stdio::null());
    let command = command.args(out.into_iter().flat_map(|out| [Path::new("--out"), out]));
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let status = output.status.code().unwrap();
    (status, text(output.stdout), text(output.stderr))
}

/// Returns the path of a log with known results.
fn golden(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/host/results/tests/goldens");
    folder.join(name)
}

/// Returns the names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Creates a run's folder, with a log and the results that are made from it.
fn run_folder(parent: &Path, name: &str, log: &str) -> PathBuf {
    let folder = parent.join(name);
    fs::create_dir(&folder).unwrap();
    fs::copy(golden(&format!("{log}.log")), folder.join("serial.log")).unwrap();
    fs::copy(golden(&format!("{log}.json")), folder.join("results.json")).unwrap();
    folder
}

#[test]
fn a_log_becomes_a_page_and_its_data() {
    let parent = tempfile::tempdir().unwrap();
    let log = golden("passes.log");
    let folder = parent.path().join("new/deep");
    let (status, said, warned) = report(&[&log], Some(&folder));
    assert_eq!((status, warned.as_str()), (0, ""));
    assert!(said.trim_end().ends_with("report.html"), "{said}");
    assert_eq!(
        names(&folder),
        ["report.html", "results.csv", "results.json"]
    );
    let cells = |path: &Path| json(path)["cells"].clone();
    assert_eq!(
        cells(&folder.join("results.json")),
        cells(&golden("passes.json"))
    );
    assert_eq!(
        fs::read(folder.join("results.csv")).unwrap(),
        fs::read(golden("passes.csv")).unwrap()
    );
    // A note warns that a log does not contain everything.
    let notes = json(&folder.join("results.json"))["notes"].to_string();
    assert!(notes.contains("read from a serial log"), "{notes}");
    // If the output's name has the extension of a page, only the page is written.
    for name in ["one.html", "two.htm"] {
        let page = parent.path().join(name);
        assert_eq!(report(&[&log], Some(&page)).0, 0);
        assert!(fs::read_to_string(&page).unwrap().starts_with("<!DOCTYPE"));
    }
    assert_eq!(names(parent.path()), ["new", "one.html", "two.htm"]);
}

#[test]
fn a_folder_may_be_called_like_a_page_and_a_file_is_no_folder() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("folder.html");
    fs::create_dir(&folder).unwrap();
    let log = golden("cut.log");
    assert_eq!(report(&[&log], Some(&folder)).0, 0);
    assert_eq!(names(&folder).len(), 3);
    let file = parent.path().join("file");
    fs::write(&file, "kept").unwrap();
    let (status, _, said) = report(&[&log], Some(&file));
    assert_eq!(status, 2);
    assert!(said.contains("name a folder that can"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
}

#[test]
fn a_run_gets_its_page_and_keeps_its_results() {
    let parent = tempfile::tempdir().unwrap();
    let run = run_folder(parent.path(), "first", "whole");
    fs::write(run.join("command.txt"), "make it\n").unwrap();
    let kept = fs::read(run.join("results.json")).unwrap();
    assert_eq!(report(&[&run], None).0, 0);
    assert_eq!(
        names(&run),
        ["command.txt", "report.html", "results.json", "serial.log"]
    );
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("make it") && page.contains("first"));
    // A report of other inputs must not be written into the folder of a run.
    let other = golden("systems.log");
    let (status, _, said) = report(&[&run, &other], Some(&run));
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("results of its own"), "{said}");
    assert_eq!(fs::read(run.join("results.json")).unwrap(), kept);
    // If there is only the log, the log is read, and the data is written anew.
    fs::remove_file(run.join("results.json")).unwrap();
    assert_eq!(report(&[&run], None).0, 0);
    assert!(names(&run).contains(&"results.csv".to_owned()));
}

#[test]
fn several_inputs_are_called_by_what_tells_them_apart() {
    let parent = tempfile::tempdir().unwrap();
    let first = run_folder(parent.path(), "first", "whole");
    let second = run_folder(parent.path(), "second", "passes");
    let third = parent.path().join("third.txt");
    fs::copy(golden("systems.log"), &third).unwrap();
    let fourth = run_folder(parent.path(), "fourth.2", "whole");
    let out = parent.path().join("out");
    let inputs = [&first, &second.join("serial.log"), &third, &fourth];
    let (status, _, said) = report(&inputs.map(PathBuf::as_path), Some(&out));
    assert_eq!(status, 0, "{said}");
    let runs = json(&out.join("results.json"))["runs"].clone();
    let labels = runs.as_array().unwrap().iter().map(|run| &run["label"]);
    let labels: Vec<&str> = labels.map(|label| label.as_str().unwrap()).collect();
    // The parts of a sweep are joined, and the label has the names of all parts.
    let mut names: Vec<&str> = labels.iter().flat_map(|label| label.split('+')).collect();
    names.sort_unstable();
    assert_eq!(names, ["first", "fourth.2", "second", "third"]);
}

#[test]
fn what_is_no_run_gets_a_folder_of_its_own() {
    let parent = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask-dev"));
    let command = command.arg("report").arg(golden("cut.log"));
    let output = command.current_dir(&parent).output().unwrap();
    assert!(output.status.success());
    assert_eq!(names(parent.path()), Vec::<String>::new());
    let said = String::from_utf8(output.stdout).unwrap();
    let page = said.trim_end().rsplit_once("report: ").unwrap().1;
    let folder = parent.path().join(page).parent().unwrap().to_owned();
    assert!(folder.parent().unwrap().ends_with("reports"), "{page}");
    assert_eq!(
        names(&folder),
        ["report.html", "results.csv", "results.json"]
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_wrong_with_an_input_is_said() {
    let parent = tempfile::tempdir().unwrap();
    let page = parent.path().join("page.html");
    let damaged = golden("damaged.log");
    let (status, _, said) = report(&[&damaged], Some(&page));
    assert_eq!(status, 0);
    let known = json(&golden("damaged.json"));
    let told = |what: &str| known[what].as_array().unwrap().clone();
    assert!(!told("damaged").is_empty() && !told("problems").is_empty());
    for cell in told("damaged") {
        let cell = cell.as_str().unwrap();
        assert!(
            said.contains(&format!("{cell} is damaged, not used")),
            "{said}"
        );
    }
    for problem in told("problems") {
        assert!(said.contains(problem.as_str().unwrap()), "{said}");
    }
    assert!(said.lines().all(|line| line.starts_with("warning: ")));
    let (_, _, said) = report(&[&golden("cut.log")], Some(&page));
    assert!(said.contains("incomplete: "), "{said}");
    // A byte order mark, which some editors write, is not a part of the text.
    let marked = parent.path().join("marked.json");
    let text = fs::read_to_string(golden("whole.json")).unwrap();
    fs::write(&marked, format!("\u{feff}\n{text}")).unwrap();
    assert_eq!(report(&[&marked], Some(&page)).0, 0);
    // A log without cells has nothing to show.
    let none = parent.path().join("none.log");
    let log = fs::read_to_string(golden("whole.log")).unwrap();
    let first: Vec<&str> = log.lines().take(12).collect();
    fs::write(&none, first.join("\n")).unwrap();
    let (status, _, said) = report(&[&none], Some(&page));
    assert_eq!(status, 2);
    assert!(said.contains("no cell of this is whole"), "{said}");
}
