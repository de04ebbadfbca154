// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests output on a terminal: tables fit the terminal, and have colours unless `NO_COLOR` is set. Output to a pipe has
//! no colours and is not fitted to a width.

#![cfg(target_os = "linux")]

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use results::goldens::golden;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const REPLAY: [&str; 5] = ["governors", "--generate", "bursty", "--count", "50"];
const ESCAPE: char = '\u{1b}';

fn replay(more: &[&str]) -> Command {
    xtask(&[&REPLAY[..], more].concat())
}

fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask-dev"));
    command.args(arguments).stdin(Stdio::null());
    // Remove variables of the tester's environment that would change the output.
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "COLUMNS"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm-256color");
    command
}

/// Returns the output of `command` on a terminal of `columns` columns.
fn shown(mut command: Command, columns: u16) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let size = Winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).unwrap();
    command.stdout(terminal).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // After this, only the child has a descriptor of the terminal.
    drop(command);
    let mut bytes = Vec::new();
    // On Linux, the end of the output is reported as an error, EIO (pty(7)).
    let _ = File::from(master).read_to_end(&mut bytes);
    assert!(child.wait().unwrap().success());
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

fn piped(mut command: Command) -> String {
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Screens with golden files: a run, a sweep, runs of Linux under two hypervisors, and comparisons, one of two kernels.
const SCREENS: [(&str, &[&str]); 6] = [
    (
        "run",
        &["report", "results/virt.json", "--out", "/dev/null"],
    ),
    (
        "sweep",
        &["report", "xtask/dev/tests/sweep.json", "--out", "/dev/null"],
    ),
    (
        "linux",
        &["report", "results/linux.json", "--out", "/dev/null"],
    ),
    (
        "compare",
        &[
            "compare",
            "results/virt.json",
            "results/graviton2.json",
            "--out",
            "/dev/null",
        ],
    ),
    (
        "kernels",
        &[
            "compare",
            "xtask/dev/tests/kernels-a.json",
            "xtask/dev/tests/kernels-b.json",
            "--out",
            "/dev/null",
        ],
    ),
    (
        "over-time",
        &[
            "compare",
            "--over-time",
            "results/virt.json",
            "results/altra.json",
            "--out",
            "/dev/null",
        ],
    ),
];

/// Checks that only names and paths are wider than the terminal, and that colours do not move text.
#[test]
fn golden_screens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, arguments) in SCREENS {
        let screen = |columns: u16, coloured: bool| {
            let mut command = xtask(arguments);
            command.current_dir(&root);
            if !coloured {
                command.env("NO_COLOR", "1");
            }
            shown(command, columns)
        };
        let plain = [80, 120, 200]
            .map(|columns| format!("{columns} columns\n\n{}\n", screen(columns, false)));
        let coloured = screen(80, true);
        let stripped = coloured
            .split(ESCAPE)
            .enumerate()
            .map(|(part, text)| match part {
                0 => text,
                _ => text.split_once('m').map_or("", |(_, rest)| rest),
            });
        assert_eq!(stripped.collect::<String>(), screen(80, false), "{name}");
        let path = format!("xtask/dev/tests/goldens/{name}.screens.txt");
        golden(&root.join(path), &plain.concat());
    }
}

#[test]
fn help_fits_the_terminal() {
    for verb in ["run", "compare", "image", "explain"] {
        let mut command = xtask(&[verb, "--help"]);
        command.env("NO_COLOR", "1");
        for line in shown(command, 80).lines() {
            assert!(line.chars().count() <= 80, "{verb}: {line}");
        }
    }
}

/// Returns the lines of the table, from the first title to the next empty line.
fn table(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.is_empty()).skip(1);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn a_table_fits_the_terminal_and_says_what_is_missing() {
    for columns in [60, 80] {
        let mut command = replay(&[]);
        command.env("NO_COLOR", "1");
        let text = shown(command, columns);
        let lines = table(&text);
        let note = lines.iter().position(|line| line.starts_with('('));
        let note = lines[note.unwrap()..].join(" ");
        assert!(note.ends_with("--wide shows all columns)"), "{note}");
        for line in lines {
            assert!(line.chars().count() <= usize::from(columns), "{line}");
        }
    }
    // All columns are shown on request, and in output to a pipe.
    let mut wide = replay(&["--wide"]);
    wide.env("NO_COLOR", "1");
    let whole = piped(replay(&[]));
    assert_eq!(table(&shown(wide, 60)), table(&whole));
    assert!(!whole.contains("--wide"));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    assert!(shown(replay(&[]), 200).contains(ESCAPE));
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("CLICOLOR", "0")] {
        let mut command = replay(&[]);
        command.env(name, value);
        assert!(!shown(command, 200).contains(ESCAPE), "{name}={value}");
    }
    for form in ["md", "mail", "csv", "json"] {
        let text = shown(replay(&["--format", form]), 200);
        assert!(!text.contains(ESCAPE), "{form}");
    }
    let mut forced = replay(&[]);
    forced.env("CLICOLOR_FORCE", "1");
    for command in [replay(&[]), forced] {
        assert!(!piped(command).contains(ESCAPE));
    }
}
