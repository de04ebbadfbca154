// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `cargo xtask` starts: builds xtask, and becomes it.
//!
//! Cargo either builds in silence, which is minutes the first time, or says at each
//! start that there was nothing to do. This shows what is compiled as it is compiled,
//! and nothing if nothing is. It depends on nothing, so it is there in a moment.

use std::env;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

const PACKAGE: &str = "xtask";

fn main() -> ExitCode {
    match build() {
        Ok(true) => {}
        Ok(false) => return ExitCode::FAILURE,
        Err(error) => return fail(&format!("cargo can't be started ({error})")),
    }
    let program = match env::current_exe() {
        // Cargo puts what is built alike into one folder.
        Ok(this) => this.with_file_name(PACKAGE),
        Err(error) => return fail(&format!("this program has no file ({error})")),
    };
    let error = Command::new(&program).args(env::args_os().skip(1)).exec();
    fail(&format!("{} can't be started ({error})", program.display()))
}

/// Builds xtask with the Cargo that runs this; whether it could.
fn build() -> io::Result<bool> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let color = match io::stderr().is_terminal() {
        true => "always",
        false => "never",
    };
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(manifest)
        .args(["build", "--package", PACKAGE, "--color", color])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let said = cargo.stderr.take().map(BufReader::new);
    let lines = said.into_iter().flat_map(BufRead::lines);
    let mut begun = false;
    for line in lines.map_while(Result::ok) {
        // That everything was up to date is not worth a line.
        if line.contains("Finished") {
            continue;
        }
        if !begun && line.contains("Compiling") {
            say("building cargo xtask; the first time this takes minutes");
            begun = true;
        }
        say(&line);
    }
    Ok(cargo.wait()?.success())
}

/// Where this can't be written there is no place to tell.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn fail(why: &str) -> ExitCode {
    say(&format!("error: {why}"));
    ExitCode::FAILURE
}
