// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the program that a verb needs, and becomes it: the program replaces this process (execve(2)).
//!
//! Cargo either builds silently, which takes minutes the first time, or reports at each start that there is nothing to
//! do. This program shows the packages while Cargo compiles them, and prints nothing if there are none to compile. It does
//! not start Cargo if the program is built already ([`built`]).

pub mod built;

use std::env;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use built::State;

/// The program with the everyday verbs.
const EVERYDAY: &str = "xtask";
/// The program with all verbs.
const DEV: &str = "xtask-dev";
/// Verbs that only [`DEV`] contains: experiments, explanations, the governor laboratory, tests, and verbs that publish.
pub const OF_DEV: [&str; 5] = ["experiment", "explain", "governors", "test", "dev"];

/// The environment variable that passes the workspace's path to the program.
const ROOT: &str = "ROUSE_ROOT";

/// Builds the program for the verb on this program's command line, and becomes it. Returns only after a failure.
pub fn become_verb_program() -> ExitCode {
    let words = env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    become_program(package_of_verb(words))
}

/// Builds the program with all verbs, and becomes it. Returns only after a failure.
pub fn become_dev() -> ExitCode {
    become_program(DEV)
}

fn become_program(package: &str) -> ExitCode {
    let root = workspace_root();
    let program = match env::current_exe() {
        // Cargo puts all programs of the same profile into the same folder.
        Ok(this) => this.with_file_name(package),
        Err(error) => return fail(&format!("this program has no file ({error})")),
    };
    let cargo = PathBuf::from(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let read = || State::read(&root, &cargo).ok();
    let state = read();
    if !state.is_some_and(|state| state.is_of(&program)) {
        // A program that is missing has no older sources, and Cargo alone decides about a file that can't be touched.
        let _ = built::touch_disguised(&root, &program);
        match build(&root, &cargo, package) {
            Ok(true) => {}
            Ok(false) => return ExitCode::FAILURE,
            Err(error) => {
                let root = root.display();
                return fail(&format!("cargo can't be started in {root} ({error})"));
            }
        }
        if let (Some(state), Some(now)) = (state, read()) {
            // Without a record, the next start only asks Cargo again.
            let _ = state.record(now, &root, &program);
        }
    }
    let error = Command::new(&program)
        .args(env::args_os().skip(1))
        .env(ROOT, root)
        .exec();
    fail(&format!("{} can't be started ({error})", program.display()))
}

/// Returns the package of the program that has the verb in `words`. The verb is the first word, or the word after
/// `help`.
fn package_of_verb(mut words: impl Iterator<Item = String>) -> &'static str {
    // Common options may come before the verb, with their values.
    const BEFORE: [&str; 4] = ["help", "auto", "always", "never"];
    let verb = words.find(|word| !BEFORE.contains(&word.as_str()) && !word.starts_with('-'));
    match verb.is_some_and(|verb| OF_DEV.contains(&verb.as_str())) {
        true => DEV,
        false => EVERYDAY,
    }
}

/// Returns the workspace's root. When Cargo runs this package, Cargo passes the package's folder. A program that has
/// replaced this one passes the root in [`ROOT`]. The folder at compile time is the last resort: it is wrong if the
/// workspace has moved since, because Cargo does not compile the package again after a move.
fn workspace_root() -> PathBuf {
    let here = |package: PathBuf| package.ancestors().nth(2).map(Path::to_path_buf);
    let named = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let named = named.filter(|package| package.ends_with("xtask/start"));
    named
        .and_then(here)
        .or_else(|| env::var_os(ROOT).map(PathBuf::from))
        .or_else(|| here(env!("CARGO_MANIFEST_DIR").into()))
        .unwrap_or_default()
}

/// Builds the package with the Cargo that runs this program. Returns whether it succeeded.
fn build(root: &Path, cargo: &Path, package: &str) -> io::Result<bool> {
    let color = match io::stderr().is_terminal() {
        true => "always",
        false => "never",
    };
    let mut cargo = Command::new(cargo)
        .current_dir(root)
        .args(["build", "--package", package, "--color", color])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let said = cargo.stderr.take().map(BufReader::new);
    let lines = said.into_iter().flat_map(BufRead::lines);
    let quiet = env::args_os().any(|word| word == "-q" || word == "--quiet");
    let (mut begun, mut unshown) = (false, Vec::new());
    for line in lines.map_while(Result::ok) {
        // Leave out Cargo's report that everything is up to date.
        if line.contains("Finished") {
            continue;
        }
        if quiet {
            unshown.push(line);
            continue;
        }
        if !begun && line.contains("Compiling") {
            print_line("building cargo xtask; the first time this takes minutes");
            begun = true;
        }
        print_line(&line);
    }
    let built = cargo.wait()?.success();
    if !built {
        unshown.iter().for_each(|line| print_line(line));
    }
    Ok(built)
}

/// Prints a line. Ignores errors, because there is no place to report them.
fn print_line(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn fail(why: &str) -> ExitCode {
    print_line(&format!("error: {why}"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_has_one_program() {
        let of = |line: &str| package_of_verb(line.split(' ').map(String::from));
        for line in ["run --board virt", "--help", "help run", "", "doctor dev"] {
            assert_eq!(of(line), EVERYDAY, "{line}");
        }
        for line in [
            "test",
            "dev soak",
            "help governors",
            "experiment all",
            "-q experiment all",
            "--color never --quiet test",
        ] {
            assert_eq!(of(line), DEV, "{line}");
        }
    }
}
