// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Rust toolchain: its programs, its targets and its version.

mod pinned;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use anyhow::Result;
use results::Build;

use crate::manager;
use shell::failure::{BadInput, bad_input};
use shell::places;
use shell::terminal::step;

/// Target of both of the project's images.
pub const TARGET: &str = "aarch64-unknown-none-softfloat";
/// Target of the virtual machine monitor: static Linux programs.
pub const LINUX: &str = "aarch64-unknown-linux-musl";

/// The error if Cargo is missing.
pub fn no_cargo() -> BadInput {
    BadInput::context(
        "cargo can't be started; put it on the PATH, or get it as https://rustup.rs says",
    )
}

/// Returns a command that runs Cargo in the workspace's root: the pinned toolchain's Cargo, or else the Cargo that runs
/// this program.
pub fn cargo() -> Command {
    let mut cargo = match pinned::folder() {
        Some(folder) => Command::new(folder.join("bin/cargo")),
        None => Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
    };
    if let Some(folder) = pinned::folder() {
        // Rustup's programs give this variable priority (rustup's book, Overrides).
        cargo.env("RUSTUP_TOOLCHAIN", pinned::version());
        cargo.env("RUSTC", folder.join("bin/rustc"));
    }
    cargo.current_dir(places::root());
    cargo
}

/// Returns Cargo's folder, which has the sources of dependencies (The Cargo Book, Cargo Home).
pub fn home() -> PathBuf {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(env::home_dir()?.join(".cargo")))
        .unwrap_or_default()
}

/// Returns the folder of the toolchain.
pub fn sysroot() -> Option<PathBuf> {
    static SYSROOT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let ask = || {
        let said = output(rustc(), &["--print", "sysroot"])?;
        Some(said.trim().into())
    };
    SYSROOT
        .get_or_init(|| pinned::folder().map(Path::to_owned).or_else(ask))
        .clone()
}

/// Returns the path of this toolchain's own compiler. Rustup's proxy would search for the toolchain at each start.
fn rustc() -> OsString {
    match pinned::folder() {
        Some(toolchain) => toolchain.join("bin/rustc").into(),
        None => "rustc".into(),
    }
}

/// Returns the output of `rustc -vV`, whose first line is the output of `rustc --version`.
fn compiler() -> Option<&'static str> {
    static SAID: OnceLock<Option<String>> = OnceLock::new();
    let said = SAID.get_or_init(|| output(rustc(), &["-vV"]));
    said.as_deref()
}

/// Starts a thread that queries the compiler and Git for facts that every run needs, because each answer takes a few
/// hundredths of a second.
pub fn look_up_early() {
    thread::spawn(|| (build(), tree()));
}

/// Returns the standard output of a program in the workspace's root; `None` if it can't be
/// started or fails.
pub fn output(program: impl Into<OsString>, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program.into());
    command.args(arguments).current_dir(places::root());
    answer(&mut command)
}

/// Returns the standard output of a command; `None` if it can't be started or fails.
pub fn answer(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

/// Returns whether the library of `target` is installed. Returns `None` if the compiler does not find it and there is
/// no rustup.
pub fn has_target(target: &str) -> Option<bool> {
    let folder = sysroot().map(|root| root.join("lib/rustlib").join(target).join("lib"));
    if folder.is_some_and(|folder| folder.is_dir()) {
        return Some(true);
    }
    let installed = output("rustup", &["target", "list", "--installed"])?;
    Some(installed.lines().any(|line| line.trim() == target))
}

/// Installs the library of `target` if it is missing.
pub fn ensure_target(target: &str) -> Result<()> {
    match has_target(target) {
        Some(true) => Ok(()),
        // A distribution's Rust has no rustup. If the target is missing there, the compiler's message names it.
        None => Ok(()),
        Some(false) => {
            step!("installing the Rust target {target}");
            let add = Command::new("rustup")
                .args(["target", "add", target])
                .current_dir(places::root())
                .status();
            match add {
                Ok(status) if status.success() => Ok(()),
                Ok(_) => bad_input!(
                    "rustup target add {target} failed, its output is above; run it by hand where there is network"
                ),
                Err(error) => {
                    bad_input!("rustup can't be started ({error}); see https://rustup.rs")
                }
            }
        }
    }
}

/// The disassembler, a program of Rust's component `llvm-tools`.
pub const OBJDUMP: &str = "llvm-objdump";

/// Returns the toolchain's disassembler, or else one that is installed on this computer.
pub fn objdump() -> Option<PathBuf> {
    let own = sysroot().map(|root| {
        let tools = root.join("lib/rustlib").join(host().unwrap_or_default());
        tools.join("bin").join(OBJDUMP)
    });
    own.filter(|own| own.exists())
        .or_else(|| manager::on_the_path(OBJDUMP))
}

/// Returns the triple of this machine, as rustc reports it.
pub fn host() -> Option<String> {
    let mut lines = compiler()?.lines();
    let host = lines.find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
}

/// Describes the compiler and the source tree of the images' build; `None` if no compiler answers.
///
/// The result is cached, since images are also compiled only once per run.
pub fn build() -> Option<Build> {
    static BUILD: OnceLock<Option<Build>> = OnceLock::new();
    BUILD.get_or_init(find_build).clone()
}

fn find_build() -> Option<Build> {
    let compiler = compiler()?;
    let commit = output("git", &["rev-parse", "HEAD"]).map(|commit| commit.trim().to_owned());
    // The build may also compile a file that is not in Git.
    let changed = changes().is_some_and(|changes| !changes.is_empty());
    Some(Build {
        commit: commit.unwrap_or_default(),
        dirty: changed,
        ..parse_build(compiler)
    })
}

/// Parses the output of `rustc -vV`.
fn parse_build(said: &str) -> Build {
    let line = |name: &str| {
        let mut lines = said.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        // A compiler that was built outside Git prints `unknown`.
        value
            .filter(|value| *value != "unknown")
            .unwrap_or_default()
            .to_owned()
    };
    Build {
        rustc: line("release"),
        rustc_commit: line("commit-hash"),
        llvm: line("LLVM version"),
        ..Build::default()
    }
}

/// Returns the programs in Cargo's `messages`, which are JSON (The Cargo Book, External tools).
pub fn executables(messages: &[u8]) -> Vec<PathBuf> {
    let lines = messages.split(|byte| *byte == b'\n');
    let named = lines.filter_map(|line| {
        let message: serde_json::Value = serde_json::from_slice(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    named.collect()
}

/// Returns the commit of the compiler, if known.
pub fn rustc_commit() -> Option<String> {
    compiler().map(|said| parse_build(said).rustc_commit)
}

/// Returns the first line of `rustc --version`.
pub fn rustc_version() -> Option<String> {
    Some(compiler()?.lines().next()?.to_owned())
}

/// Returns the changes since the commit, as `git status` lists them. The result is cached, because Git reads every
/// file, which takes most of the time that describing the tree takes.
fn changes() -> Option<&'static str> {
    static CHANGES: OnceLock<Option<String>> = OnceLock::new();
    let said = CHANGES.get_or_init(|| output("git", &["status", "--porcelain"]));
    said.as_deref()
}

/// Whether a file of the commit is among `changes`. Files that are not in the commit are marked `??` (git-status(1),
/// Short Format).
fn is_changed(changes: &str) -> bool {
    changes.lines().any(|line| !line.starts_with("??"))
}

/// Returns the tree's name from `git describe --dirty`; `None` if the tree is not in Git.
pub fn tree() -> Option<String> {
    static TREE: OnceLock<Option<String>> = OnceLock::new();
    let ask = || {
        let commit = output("git", &["describe", "--always"])?;
        let dirty = if is_changed(changes()?) { "-dirty" } else { "" };
        Some(format!("{}{dirty}", commit.trim()))
    };
    TREE.get_or_init(ask).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_of_rustup_is_the_one_that_the_compiler_names() {
        let asked = output("rustc", &["--print", "sysroot"]).unwrap();
        assert_eq!(sysroot().unwrap(), PathBuf::from(asked.trim()));
        assert_eq!(compiler(), output("rustc", &["-vV"]).as_deref());
    }

    #[test]
    fn a_file_that_git_does_not_know_leaves_the_tree_what_it_is() {
        assert!(!is_changed(""));
        assert!(!is_changed("?? notes.txt\n"));
        for changed in [
            " M Cargo.toml\n",
            "?? notes.txt\nA  new.rs\n",
            "D  old.rs\n",
        ] {
            assert!(is_changed(changed), "{changed}");
        }
    }

    #[test]
    fn cargo_names_programs_and_much_else() {
        let said = b"{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
            {\"reason\":\"compiler-artifact\",\"executable\":\"/t/wakeup-1\"}\nno JSON\n\
            {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executables(said), [PathBuf::from("/t/wakeup-1")]);
    }

    #[test]
    fn the_compiler_is_named_exactly() {
        let said = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\n\
                    commit-hash: 59807616e1fa2540724bfbac14d7976d7e4a3860\n\
                    release: 1.95.0\nLLVM version: 22.1.2\n";
        let build = parse_build(said);
        assert_eq!(
            (build.rustc.as_str(), build.llvm.as_str()),
            ("1.95.0", "22.1.2")
        );
        assert_eq!(
            build.rustc_commit,
            "59807616e1fa2540724bfbac14d7976d7e4a3860"
        );
        assert_eq!(parse_build("commit-hash: unknown\n"), Build::default());
    }
}
