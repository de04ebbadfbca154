// SPDX-License-Identifier: MIT OR Apache-2.0
//! Started by `cargo xtask`: builds xtask, and becomes it.
//!
//! Cargo either builds in silence, which is minutes the first time, or says at each
//! start that there was nothing to do. This shows what is compiled as it is compiled,
//! and nothing if nothing is.

use std::env;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const PACKAGE: &str = "xtask";
/// Tells xtask where the workspace is.
const ROOT: &str = "ROUSE_ROOT";

fn main() -> ExitCode {
    let root = root();
    let program = match env::current_exe() {
        // Cargo puts what is built alike into one folder.
        Ok(this) => this.with_file_name(PACKAGE),
        Err(error) => return fail(&format!("this program has no file ({error})")),
    };
    match build(&root) {
        Ok(true) => {}
        Ok(false) => return ExitCode::FAILURE,
        Err(error) => {
            let root = root.display();
            return fail(&format!("cargo can't be started in {root} ({error})"));
        }
    }
    let error = Command::new(&program)
        .args(env::args_os().skip(1))
        .env(ROOT, root)
        .exec();
    fail(&format!("{} can't be started ({error})", program.display()))
}

/// The workspace's root. Cargo says where this package is when it runs this; what it said
/// when it compiled this is another place if the workspace was moved since, which is no
/// reason for Cargo to compile again.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR");
    let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package)
        .ancestors()
        .nth(2)
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Builds xtask with the Cargo that runs this; whether it could.
fn build(root: &Path) -> io::Result<bool> {
    let color = match io::stderr().is_terminal() {
        true => "always",
        false => "never",
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo)
        .current_dir(root)
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
