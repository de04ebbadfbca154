// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a kernel's `make`. Keeps the output in a log, shows the progress, and ends `make` when this program ends.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use shell::failure::{BadInput, bad_input};
use shell::terminal::{self, step};
use shell::{interrupt, places};

use crate::compiler::Compiler;
use crate::tree::BUILD;

/// Interval between lines of progress if the output is not a terminal. `TERMINAL` is the interval between updates of
/// the line on a terminal.
const PLAIN: Duration = Duration::from_secs(10);
const TERMINAL: Duration = Duration::from_millis(200);
/// Interval between checks for a signal.
const TICK: Duration = Duration::from_millis(100);

/// A build of a kernel: what `make` needs, the log, and how many files a whole build compiles.
#[derive(Debug)]
pub struct Build<'b> {
    pub name: &'b str,
    /// End of the kernel's release string (LOCALVERSION).
    pub release: &'b str,
    pub copy: &'b Path,
    pub compiler: &'b Compiler,
    pub log: &'b Path,
    /// Number of files that a whole build compiles; 0 if it is not known.
    pub files: u64,
}

impl Build<'_> {
    /// Runs `make` with `targets`, and returns how many files it compiled.
    pub fn make(&self, targets: &[&str]) -> Result<u64> {
        interrupt::catch()?;
        let mut make = self.compiler.command("make");
        make.arg("-C")
            .arg(self.copy)
            .arg(format!("O={BUILD}"))
            .args(&self.compiler.variables)
            .args(JOBS.get_or_init(|| [job_option()]))
            .args(targets)
            // The release must not depend on a repository around the folder, nor the image on the time of the build.
            .arg(format!("LOCALVERSION={}", self.release))
            .args([
                "KBUILD_BUILD_TIMESTAMP=1970-01-01",
                "KBUILD_BUILD_USER=rouse",
            ])
            .args(["KBUILD_BUILD_HOST=rouse", "KBUILD_BUILD_VERSION=1"])
            .env("LC_ALL", "C");
        for (name, _) in env::vars_os().filter(|(name, _)| affects_build(name)) {
            make.env_remove(name);
        }
        let (status, compiled) = self.follow_make(&mut make)?;
        interrupt::or(Ok(()))?;
        match status {
            true => Ok(compiled),
            false => Err(self.build_error()),
        }
    }

    /// Runs `make` to its end. Returns whether it succeeded, and how many files it compiled.
    fn follow_make(&self, make: &mut Command) -> Result<(bool, u64)> {
        let mut log = File::options().create(true).append(true).open(self.log)?;
        writeln!(log, "$ {}", shell::command::typed(make))?;
        let errors = log.try_clone()?;
        let mut child = make
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .process_group(0)
            .spawn()
            .context(BadInput::context("make can't be started; install it"))?;
        let output = child.stdout.take().context("make has no output")?;
        let (sender, lines) = channel();
        let reader = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut progress = Progress::new(self.name, self.files);
        let mut ended = false;
        loop {
            match lines.recv_timeout(TICK) {
                Ok(line) => {
                    writeln!(log, "{line}")
                        .map_err(|error| shell::files::refused(self.log, "written", &error))?;
                    progress.take_line(&line);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if interrupt::requested() && !ended {
                ended = true;
                end_make(&child);
            }
        }
        let status = child.wait()?;
        let _ = reader.join();
        terminal::clear_line();
        Ok((status.success(), progress.compiled))
    }

    /// Returns the error of a failed build, with the cause from its log.
    fn build_error(&self) -> anyhow::Error {
        let text = fs::read(self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let log = places::shown(self.log);
        let full = |line: &&str| line.contains("No space left on device");
        if last_command(&text).lines().any(|line| full(&line)) {
            let folder = places::shown(&places::target().join("kernels"));
            return BadInput::error(format!(
                "the disk is full; make room: `rm -r` a folder in {folder}, and run the command again, which goes on from there"
            ));
        }
        let cause = first_error(&text).unwrap_or("make reports no error");
        anyhow::anyhow!(
            "{} does not build: {cause}; {log} has all of make's output",
            self.name
        )
    }
}

/// Ends `make` and the processes that it has started.
fn end_make(make: &Child) {
    if let Ok(group) = i32::try_from(make.id()) {
        // The process group no longer exists if `make` has just ended.
        let _ = killpg(Pid::from_raw(group), Signal::SIGTERM);
    }
}

static JOBS: std::sync::OnceLock<[String; 1]> = std::sync::OnceLock::new();

fn job_option() -> String {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    format!("-j{cpus}")
}

/// Whether an environment variable would change how a kernel is built. Only options of this program may change that.
fn affects_build(name: &OsStr) -> bool {
    const NAMES: [&str; 12] = [
        "MAKEFLAGS",
        "ARCH",
        "CROSS_COMPILE",
        "LLVM",
        "LLVM_IAS",
        "CC",
        "LD",
        "HOSTCC",
        "KCFLAGS",
        "KAFLAGS",
        "KCPPFLAGS",
        "LOCALVERSION",
    ];
    let name = name.to_string_lossy();
    NAMES.contains(&&*name) || name.starts_with("KCONFIG_") || name.starts_with("KBUILD_")
}

/// Returns the part of a log that the last command has written.
fn last_command(log: &str) -> &str {
    log.rfind("\n$ ").map_or(log, |at| &log[at..])
}

/// Returns the log line that tells why the last command failed: the first error from a compiler, from Kconfig, or
/// from `make` itself.
fn first_error(log: &str) -> Option<&str> {
    let last = last_command(log);
    let marks = [
        ": error: ",
        ": fatal error: ",
        "Kconfig:",
        "undefined reference",
        "*** ",
    ];
    marks
        .iter()
        .find_map(|mark| last.lines().find(|line| line.contains(mark)))
        .map(|line| line.trim().trim_start_matches("../"))
}

/// Progress of a build so far.
struct Progress<'p> {
    name: &'p str,
    files: u64,
    compiled: u64,
    begun: Instant,
    shown: Instant,
}

impl<'p> Progress<'p> {
    fn new(name: &'p str, files: u64) -> Self {
        let begun = Instant::now();
        Self {
            name,
            files,
            compiled: 0,
            begun,
            shown: begun,
        }
    }

    /// Takes a line of output from `make`, which consists of a short command and the file that the command makes.
    fn take_line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let compiles = matches!(words.next(), Some("CC" | "AS"));
        self.compiled += u64::from(compiles);
        let terminal = std::io::stderr().is_terminal();
        let interval = if terminal { TERMINAL } else { PLAIN };
        if terminal::is_quiet() || self.shown.elapsed() < interval {
            return;
        }
        self.shown = Instant::now();
        let text = self.text(words.next().unwrap_or_default());
        match terminal {
            true => terminal::rewrite_line(&text),
            false => step!("{text}"),
        }
    }

    fn text(&self, file: &str) -> String {
        let of = match self.files {
            files if files > self.compiled => format!(" of {files}"),
            _ => String::new(),
        };
        let seconds = self.begun.elapsed().as_secs();
        format!(
            "building {}: {}{of} files, {seconds} s, {file}",
            self.name, self.compiled
        )
    }
}

/// A log of at least this size, in bytes, is replaced; a build appends to a shorter log.
const LONG: u64 = 16 << 20;

/// Removes a log whose size is `LONG` or more, before a build appends to it.
pub fn begin_log(log: &Path) -> Result<()> {
    if log.metadata().is_ok_and(|metadata| metadata.len() > LONG)
        && let Err(error) = fs::remove_file(log)
    {
        bail!(shell::files::refused(log, "removed", &error));
    }
    if log.is_dir() {
        bad_input!("{} is a folder; remove it", places::shown(log));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_of_the_last_command_is_the_cause() {
        let log = "$ make a\n../x.c:1:2: error: old\n\n$ make b\n  CC a\n../k/y.c:3:4: error: new\nmake: *** [b] Error 2\n";
        assert_eq!(first_error(log), Some("k/y.c:3:4: error: new"));
        assert_eq!(
            first_error("$ make\nmake: *** No rule\n"),
            Some("make: *** No rule")
        );
        assert_eq!(first_error("$ make\n"), None);
    }

    /// Runs a script in place of `make`.
    fn made_by(script: &str) -> Result<u64> {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let make = place.path().join("make");
        fs::write(&make, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&make, fs::Permissions::from_mode(0o755)).unwrap();
        let build = Build {
            name: "x",
            release: "",
            copy: place.path(),
            compiler: &Compiler::in_folder(place.path()),
            log: &place.path().join("log"),
            files: 0,
        };
        build.make(&["Image"])
    }

    #[test]
    fn a_build_reports_its_files_or_its_first_error() {
        assert_eq!(
            made_by("echo '  CC  a.o'; echo '  AS  b.o'; echo '  LD  c'").unwrap(),
            2
        );
        let error = made_by("echo '../k/a.c:7:1: error: no such thing' >&2; exit 2").unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("x does not build: k/a.c:7:1: error: no such thing; "),
            "{error}"
        );
        let error = made_by("echo 'as: No space left on device' >&2; exit 2").unwrap_err();
        assert!(shell::failure::is_bad_input(&error));
        assert!(error.to_string().contains("make room"), "{error}");
    }

    #[test]
    fn compiled_files_are_counted() {
        let mut progress = Progress::new("6.12", 9);
        for line in [
            "  CC      a.o",
            "  AS      b.o",
            "  LD      c",
            "  GEN     d",
        ] {
            progress.take_line(line);
        }
        assert_eq!(progress.compiled, 2);
        assert!(
            progress
                .text("b.o")
                .starts_with("building 6.12: 2 of 9 files, 0 s")
        );
    }
}
