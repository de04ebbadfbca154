// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks how foreign text is printed. Whatever text a file, a name or the environment contains, no printed line
//! contains characters that control a terminal, and a line quotes only a part of a long text.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// A text with escape sequences for titles and colours, line ends, C1 controls, DEL, marks of writing direction, and
/// characters without width.
const EVIL: &str =
    "x\u{1b}]0;t\u{7}\u{1b}[31m\r\n\u{9b}2J\u{7f}\u{85}\u{2028}\u{202e}\u{2066}\u{200b}\u{feff}y";
/// Maximum number of characters in a printed line. The text that the line quotes has far more.
const LONGEST: usize = 2600;

fn xtask<A: AsRef<OsStr>>(arguments: &[A]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask-dev"));
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

/// Returns the mistakes in the output.
fn wrong(output: &Output) -> Option<String> {
    let printed = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let lines = printed.iter().flat_map(|text| text.split('\n'));
    let hidden = |c: char| foreign::is_hidden(c) && c != '\t';
    // Such a line would be the second half of a text that a line end has divided.
    let forged = |line: &str| line.starts_with("\u{9b}2J") || line.starts_with("\\u{9b}2J");
    let mut wrong = lines
        .filter(|line| line.contains(hidden) || line.chars().count() > LONGEST || forged(line));
    wrong.next().map(|line| format!("{line:.300?}"))
}

fn golden(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/host/results/tests/goldens");
    folder.join(name)
}

/// Finds the JSON pointers to the texts in a value. Similar members of a list count only once.
fn texts(value: &Value, at: &str, kinds: &mut BTreeSet<String>, found: &mut Vec<String>) {
    match value {
        Value::String(_) | Value::Null => {
            let kind: String = at.chars().filter(|c| !c.is_ascii_digit()).collect();
            if kinds.insert(kind) {
                found.push(at.to_owned());
            }
        }
        Value::Array(all) => {
            let all = all.iter().enumerate();
            all.for_each(|(place, one)| texts(one, &format!("{at}/{place}"), kinds, found));
        }
        Value::Object(all) => {
            let all = all.iter();
            all.for_each(|(key, one)| texts(one, &format!("{at}/{key}"), kinds, found));
        }
        Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns results that have a text in every place where there may be one.
fn full() -> Value {
    let mut all: Value = serde_json::from_slice(&fs::read(golden("passes.json")).unwrap()).unwrap();
    for list in ["notes", "problems", "damaged", "missing"] {
        all[list] = Value::from(vec![""]);
    }
    all["incomplete"] = true.into();
    all["machine"]["hypervisor"] = "".into();
    all["machine"]["below"] = serde_json::json!({ "xen": "" });
    all
}

/// Writes `all` with `text` at each of `places` to `file`.
fn with(mut all: Value, places: &[String], text: &str, file: PathBuf) -> PathBuf {
    for at in places {
        *all.pointer_mut(at).unwrap() = text.into();
    }
    fs::write(&file, all.to_string()).unwrap();
    file
}

/// Returns the places that accept any text, and the places that do not.
fn places() -> &'static (Vec<String>, Vec<String>) {
    static PLACES: OnceLock<(Vec<String>, Vec<String>)> = OnceLock::new();
    PLACES.get_or_init(|| {
        let (mut kinds, mut found) = (BTreeSet::new(), Vec::new());
        texts(&full(), "", &mut kinds, &mut found);
        assert!(found.len() > 30, "{found:?}");
        let parent = tempfile::tempdir().unwrap();
        found.into_iter().partition(|at| {
            let file = parent.path().join("one.json");
            let file = with(full(), std::slice::from_ref(at), EVIL, file);
            let output = xtask(&["compare".as_ref(), file.as_os_str(), file.as_os_str()]);
            assert_eq!(wrong(&output), None, "{at}");
            output.status.success()
        })
    })
}

/// Writes results that have `text` at every place that accepts any text.
fn results(parent: &Path, text: &str) -> PathBuf {
    with(full(), &places().0, text, parent.join("all.json"))
}

#[test]
fn no_text_of_a_file_reaches_the_terminal_as_it_is() {
    for text in [EVIL.to_owned(), format!("a{}", EVIL.repeat(5000))] {
        let parent = tempfile::tempdir().unwrap();
        let all = results(parent.path(), &text);
        let refused = &places().1;
        assert!(refused.len() > 5, "{refused:?}");
        for at in refused {
            let file = parent.path().join("one.json");
            let file = with(full(), std::slice::from_ref(at), &text, file);
            let output = xtask(&["report".as_ref(), file.as_os_str()]);
            assert_eq!(
                (output.status.code(), wrong(&output)),
                (Some(2), None),
                "{at}"
            );
        }
        let page = parent.path().join("page.html");
        for form in ["table", "md", "mail"] {
            let [all, page] = [&all, &page].map(|path| path.as_os_str());
            let verbs: [&[&OsStr]; 3] = [
                &["report".as_ref(), all, "--out".as_ref(), page],
                &["compare".as_ref(), all, all],
                &[
                    "compare".as_ref(),
                    "--over-time".as_ref(),
                    all,
                    all,
                    "--out".as_ref(),
                    page,
                ],
            ];
            for verb in verbs {
                let form = ["--format".as_ref(), form.as_ref()];
                let output = xtask(&[verb, &form].concat());
                assert_eq!(
                    (output.status.code(), wrong(&output)),
                    (Some(0), None),
                    "{verb:?}"
                );
            }
        }
    }
}

#[test]
fn nothing_that_is_named_reaches_the_terminal_as_it_is() {
    let parent = tempfile::tempdir().unwrap();
    let named = parent.path().join(EVIL);
    fs::create_dir(&named).unwrap();
    let board = named.join("board.toml");
    fs::write(
        &board,
        format!("about = \"{}\"\n{EVIL} = 1", "x".repeat(100_000)),
    )
    .unwrap();
    let (log, none) = (named.join("serial.log"), named.join("none"));
    let text = fs::read_to_string(golden("cut.log")).unwrap();
    fs::write(&log, format!("{EVIL}\n{text}")).unwrap();
    let long = "y".repeat(100_000);
    let verbs: [&[&OsStr]; 13] = [
        &["report".as_ref(), log.as_os_str()],
        &["report".as_ref(), none.as_os_str()],
        &["compare".as_ref(), log.as_os_str(), log.as_os_str()],
        &["compare".as_ref(), EVIL.as_ref(), EVIL.as_ref()],
        &[
            "compare".as_ref(),
            "--over-time".as_ref(),
            named.as_os_str(),
        ],
        &["governors".as_ref(), "--trace".as_ref(), log.as_os_str()],
        &["governors".as_ref(), "--states".as_ref(), board.as_os_str()],
        &["run".as_ref(), "--board".as_ref(), board.as_os_str()],
        &["run".as_ref(), "--board".as_ref(), EVIL.as_ref()],
        &["run".as_ref(), "--save".as_ref(), EVIL.as_ref()],
        &["run".as_ref(), "--guest".as_ref(), log.as_os_str()],
        &["run".as_ref(), "--wait".as_ref(), long.as_ref()],
        &[EVIL.as_ref()],
    ];
    for verb in verbs {
        let output = xtask(verb);
        assert_eq!(wrong(&output), None, "{verb:.200?}");
    }
}

/// Tests records, because anybody can compute a record's checksum, even a guest.
#[test]
fn no_text_of_a_record_reaches_the_terminal_as_it_is() {
    let parent = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(golden("passes.log")).unwrap();
    let lines = text.lines().map(|line| match wire::Record::parse(line) {
        Ok(record) if ["machine", "note", "feature", "probe"].contains(&record.kind) => {
            let mut again = wire::Line::new(record.seq, record.kind);
            for (key, value) in record.fields() {
                let evil = !value.bytes().all(|byte| byte.is_ascii_digit()) && key != "name";
                again = match evil {
                    true => again.field(key, "x\u{1b}[31m\r\n\u{7f}y"),
                    false => again.field(key, wire::Unescape(value)),
                };
            }
            again.finish().unwrap().to_string()
        }
        _ => line.to_owned(),
    });
    let log = parent.path().join("serial.log");
    fs::write(&log, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let page = parent.path().join("page.html");
    for form in ["table", "md", "mail"] {
        let [log, page] = [&log, &page].map(|path| path.as_os_str());
        let form: [&OsStr; 3] = ["--format".as_ref(), form.as_ref(), "--out".as_ref()];
        let output = xtask(&[&["report".as_ref(), log][..], &form, &[page]].concat());
        assert_eq!((output.status.code(), wrong(&output)), (Some(0), None));
    }
}

#[test]
fn warnings_that_are_the_same_are_given_once() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("serial.log");
    let text = fs::read_to_string(golden("cut.log")).unwrap();
    fs::write(&log, vec![text; 300].join("\n")).unwrap();
    let page = parent.path().join("page.html");
    let page = page.as_os_str();
    let output = xtask(&["report".as_ref(), log.as_os_str(), "--out".as_ref(), page]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("(300 times, boots 1 to 300)"), "{said}");
    assert!(said.lines().count() <= 21, "{said}");
}

/// Tests that a spreadsheet does not compute anything from a file's text.
#[test]
fn no_text_of_a_file_is_a_formula() {
    let parent = tempfile::tempdir().unwrap();
    for formula in ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"] {
        let all = results(parent.path(), formula);
        let page = parent.path().join("page.html");
        let page = page.as_os_str();
        let form: [&OsStr; 2] = ["--format".as_ref(), "csv".as_ref()];
        let verbs: [&[&OsStr]; 2] = [
            &["report".as_ref(), all.as_os_str(), "--out".as_ref(), page],
            &[
                "compare".as_ref(),
                "--over-time".as_ref(),
                all.as_os_str(),
                all.as_os_str(),
                "--out".as_ref(),
                page,
            ],
        ];
        for verb in verbs {
            let output = xtask(&[verb, &form].concat());
            let text = String::from_utf8(output.stdout).unwrap();
            let cells = text
                .lines()
                .flat_map(|line| line.split(','))
                .map(|cell| cell.trim_matches('"'));
            let mut computed = cells.filter(|cell| *cell == formula);
            assert_eq!(computed.next(), None, "{text}");
        }
    }
}
