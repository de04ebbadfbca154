// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that kill this program half-way. The program must keep the results that it has, its exit status must be the
//! signal's, and no emulator may be left.
//!
//! No test waits for a fixed time. Each test sends the signal when the program's output shows that the program has come
//! far enough, and then waits for the consequences. If these take longer than [`PATIENCE`], the test fails.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use shell::partial_files::{Scratch, sweep};
use shell::{places, processor_time};

/// The longest time that an expected event may take.
const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(50);

/// A run of two boots: the first boot, without the hypervisor, measures; the second boot hangs in the hypervisor. The
/// second boot does not end by itself, so the signal can't come too late.
const LINE: [&str; 15] = [
    "run",
    "--under=none,rouse",
    "--workload=pingpong",
    "--wait=wfi,spin",
    "--deliver=direct",
    "--quick",
    "--append=rouse.fault=el2-hang",
    "--timeout=3600",
    // On standard output, the survey shows that the second boot has started.
    "--survey",
    // The test looks for rows of the wide table.
    "--wide",
    "--board=virt",
    "--metric=insns",
    "--cpus=2",
    "--memory=512M",
    // With one job, the second boot begins when the first has ended.
    "--jobs=1",
];
const UNDER_WAY: &str = "rouse: survey end";

/// Checks that the program keeps its results when `signal` comes, and that its exit status is `status`.
pub fn keeps_results(signal: &str, status: i32) -> Result<()> {
    let out = fresh_folder(&format!("killed-by-{signal}"))?;
    let mut run = Run::start(&out)?;
    run.until_under_way()?;
    send_signal(signal, run.process.id())?;
    let ended = run.wait_for_end()?;
    let (said, complained) = run.read_output()?;
    ensure!(
        ended.code() == Some(status),
        "SIG{signal}: {ended}, not exit status {status}; it printed:\n{said}{complained}"
    );
    for wanted in [
        &format!("interrupted by SIG{signal}"),
        "cells: 4 complete, 0 partial, 5 missing",
    ] {
        ensure!(
            complained.contains(wanted),
            "SIG{signal}: `{wanted}` is not in its output:\n{said}{complained}"
        );
    }
    let row = ["wfi", "none", "direct"];
    ensure!(
        said.lines()
            .any(|line| line.split_whitespace().take(3).eq(row)),
        "SIG{signal}: the table has no row of {row:?}, but:\n{said}{complained}"
    );
    for name in ["results.json", "results.csv", "report.html", "serial.log"] {
        let text = fs::read_to_string(out.join(name)).with_context(|| name.to_owned())?;
        ensure!(
            text.contains("none"),
            "{name}: nothing of the first boot is in it"
        );
    }
    Ok(())
}

/// Checks that no emulator is left when SIGKILL ends this program.
pub fn leaves_no_emulator() -> Result<()> {
    if cfg!(not(target_os = "linux")) {
        return Ok(());
    }
    let out = fresh_folder("killed-outright")?;
    let mut run = Run::start(&out)?;
    run.until_under_way()?;
    let emulators = children(run.process.id());
    ensure!(!emulators.is_empty(), "no emulator was found");
    send_signal("KILL", run.process.id())?;
    run.wait_for_end()?;
    for emulator in emulators {
        wait_until(|| (!is_running(emulator)).then_some(()))
            .with_context(|| format!("the emulator, process {emulator}, is left"))?;
    }
    ensure!(!out.exists(), "{} is there but not complete", out.display());
    // The next run only renames the folder of a killed run, and does not remove it.
    sweep(out.parent().context("it is in a folder")?);
    let kept = out.with_file_name("killed-outright-killed");
    let log = fs::read_to_string(kept.join("serial.log"));
    let log = log.with_context(|| kept.display().to_string())?;
    ensure!(
        results::capture::has_records(&log),
        "no record is in {}",
        kept.display()
    );
    fs::remove_dir_all(kept)?;
    Ok(())
}

/// Checks that a second signal ends this program at once, whatever the program waits for.
pub fn second_ends_at_once() -> Result<()> {
    let folder = Scratch::new()?;
    let started = folder.path().join("started");
    // An emulator that never answers, not even with its version.
    let script = folder.path().join("qemu");
    let text = format!(
        "#!/bin/sh\necho $$ > {}\nexec sleep 100000\n",
        started.display()
    );
    fs::write(&script, text)?;
    ensure!(
        Command::new("chmod")
            .arg("+x")
            .arg(&script)
            .status()?
            .success()
    );
    let mut command = this_program()?;
    command.args(LINE).env("ROUSE_QEMU", &script);
    let mut run = Run::spawn(command.stdout(Stdio::null()))?;
    let emulator: u32 = wait_until(|| fs::read_to_string(&started).ok()?.trim().parse().ok())
        .context("the emulator was not asked for its version")?;
    // After the first signal alone, the program still waits for the emulator. Sending further signals makes sure that
    // one comes late enough to count as the second.
    let ended = wait_until(|| {
        let _ = send_signal("INT", run.process.id());
        processor_time::try_wait(&mut run.process).ok().flatten()
    });
    send_signal("KILL", emulator)?;
    let ended = ended.context("a second signal did not end it")?;
    ensure!(ended.code() == Some(130), "{ended}, not exit status 130");
    Ok(())
}

/// A running copy of this program, which ends no later than the test.
struct Run {
    process: Child,
    /// The program's standard error. The output goes to a file, so that the program never blocks on it.
    complaints: File,
}

impl Run {
    /// Starts this program with the options [`LINE`]; it writes its results to `out`.
    fn start(out: &Path) -> Result<Self> {
        let mut command = this_program()?;
        command.args(LINE).arg("--out").arg(out);
        Self::spawn(command.stdout(Stdio::piped()))
    }

    fn spawn(command: &mut Command) -> Result<Self> {
        let complaints = tempfile::tempfile()?;
        let command = command.stdin(Stdio::null());
        let process = command.stderr(complaints.try_clone()?).spawn()?;
        Ok(Self {
            process,
            complaints,
        })
    }

    /// Reads the program's output until the second boot has started.
    fn until_under_way(&mut self) -> Result<()> {
        let stdout = self.process.stdout.as_mut().context("it has no output")?;
        // Reads single bytes, because another reader needs the rest of the output.
        let mut lines = BufReader::with_capacity(1, stdout).lines();
        let mut read = String::new();
        loop {
            let Some(line) = lines.next() else {
                bail!("it ended before it could be killed; it printed:\n{read}");
            };
            let line = line?;
            if line.contains(UNDER_WAY) {
                return Ok(());
            }
            read += &line;
            read.push('\n');
        }
    }

    /// Waits for the end of the program.
    fn wait_for_end(&mut self) -> Result<ExitStatus> {
        wait_until(|| processor_time::try_wait(&mut self.process).ok().flatten())
            .context("it did not end")
    }

    /// Reads the program's standard output and standard error.
    fn read_output(&mut self) -> Result<(String, String)> {
        let (mut said, mut complained) = (String::new(), String::new());
        if let Some(stdout) = &mut self.process.stdout {
            stdout.read_to_string(&mut said)?;
        }
        self.complaints.rewind()?;
        self.complaints.read_to_string(&mut complained)?;
        Ok((said, complained))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The calls that kill and await the process fail only when the process has already ended.
        let _ = self.process.kill();
        let _ = processor_time::wait(&mut self.process);
    }
}

/// Returns a command that runs this program.
fn this_program() -> Result<Command> {
    Ok(Command::new(places::program()?))
}

/// Returns the folder for the results of test `name`; it does not exist yet.
fn fresh_folder(name: &str) -> Result<PathBuf> {
    let out = places::target().join("tests").join(name);
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| places::shown(&out))?;
    }
    Ok(out)
}

fn send_signal(signal: &str, process: u32) -> Result<()> {
    let signal = format!("-{signal}");
    let sent = Command::new("kill")
        .args([&signal, &process.to_string()])
        .status();
    ensure!(sent?.success(), "kill {signal} {process} failed");
    Ok(())
}

/// Calls `done` until it returns a value. Fails if that takes longer than [`PATIENCE`].
fn wait_until<T>(mut done: impl FnMut() -> Option<T>) -> Result<T> {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if let Some(value) = done() {
            return Ok(value);
        }
        thread::sleep(PAUSE);
    }
    bail!("nothing after {} s", PATIENCE.as_secs())
}

fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten();
    let lists = tasks.flatten().filter_map(|task| {
        let list = fs::read_to_string(task.path().join("children"));
        list.ok()
    });
    let lists: Vec<String> = lists.collect();
    let numbers = lists.iter().flat_map(|list| list.split_whitespace());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Returns whether a process runs. A process that has ended may still exist, until its parent reads its exit status.
fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}
