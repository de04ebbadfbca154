// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run` under this machine's own KVM: builds the program of `image --for kvm`, runs it here, and writes the same
//! folder as any run.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plan::{Program, Under};
use results::Results;

use super::program;
use crate::images::{self, Guest};
use crate::options::RunArgs;
use reporting::format::FormatArgs;
use reporting::{report, watts};
use shell::command;
use shell::failure::{BadInput, bad_input};
use shell::folder::Folder;
use shell::interrupt;
use shell::log::Log;
use shell::output::Output;
use shell::partial_files::Scratch;
use shell::terminal::say;

/// The board whose name represents any machine that runs this program.
pub(super) const BOARD: &str = "virt";

/// Interval between checks for signals.
const LOOK: Duration = Duration::from_millis(200);

/// Measures on this machine.
pub fn run(args: &RunArgs) -> Result<()> {
    let plan = &args.job.load.plan;
    plan.check_used(&plan.plan().map_err(BadInput::error)?)
        .map_err(BadInput::error)?;
    let watts = args.watts.as_deref().map(watts::read).transpose()?;
    let copy = Output::claim_any("--json", args.json.as_ref())?;
    args.format.claim()?;
    let folder = Folder::claim(args.out.as_deref(), "kvm")?;
    interrupt::catch()?;
    let built = interrupt::or(images::build(BOARD, Guest::Ours(Program::Measuring)))?;
    let monitor = interrupt::or(images::monitor())?;
    let place = Scratch::new()?;
    let path = place.path().join("rouse-kvm");
    fs::write(&path, program::bytes(&built, &monitor)?)?;
    fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    let mut measured = measure(&path, &program_arguments(args), place.path(), folder)?;
    if let Some(watts) = &watts {
        measured.results.model_energy(watts);
    }
    measured.close(copy, &args.format)
}

/// Returns the program's arguments for `args`.
fn program_arguments(args: &RunArgs) -> Vec<String> {
    let mut words = args.job.load.plan.words();
    let unders = args
        .job
        .under
        .as_ref()
        .and_then(|unders| unders.hypervisors().first());
    let limits = &args.limits;
    let others = [
        // The word `kvm` selects KVM's current mode.
        unders
            .filter(|under| **under != Under::Kvm)
            .map(|under| format!("--under={under}")),
        args.job.cpus.map(|cpus| format!("--cpus={cpus}")),
        args.job
            .memory
            .as_ref()
            .map(|size| format!("--memory={size}")),
        args.job.metric.map(|metric| format!("--metric={metric}")),
        args.job
            .load
            .append
            .as_ref()
            .map(|text| format!("--append={text}")),
        limits.timeout.map(|limit| format!("--timeout={limit}")),
        limits
            .time_limit
            .map(|limit| format!("--time-limit={limit}")),
        args.repeat.map(|repeat| format!("--repeat={repeat}")),
    ];
    words.extend(others.into_iter().flatten());
    words
}

/// Output and results of a program.
#[derive(Debug)]
struct Measured {
    results: Results,
    folder: Folder,
    log: Log,
    command: String,
    /// The program's exit status, if not 0.
    status: Option<i32>,
}

/// Runs `program`, which writes its results in `place`.
fn measure(program: &Path, words: &[String], place: &Path, folder: Folder) -> Result<Measured> {
    let json = place.join("results.json");
    let mut log = folder.log()?;
    let mut command = Command::new(program);
    command.args(words).arg("--json").arg(&json);
    let shown = command::typed(&command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} can't be started", program.display()))?;
    let said = child.stdout.take().map(BufReader::new);
    let ended = Arc::new(AtomicBool::new(false));
    let watcher = pass_signals_on(child.id(), ended.clone());
    for line in said.into_iter().flat_map(|said| said.split(b'\n')) {
        let mut line = line?;
        line.push(b'\n');
        log.write_all(&line)?;
    }
    ended.store(true, Relaxed);
    // The watcher thread ends within `LOOK`. After that, it sends no signal to any process.
    let _ = watcher.join();
    let status = child.wait()?;
    // A program that measured nothing leaves no results.
    let results = match fs::read_to_string(&json) {
        Ok(text) => serde_json::from_str(&text).context("the program's results")?,
        Err(_) => Results::default(),
    };
    Ok(Measured {
        results,
        folder,
        log,
        command: shown,
        status: (!status.success()).then(|| status.code().unwrap_or(1)),
    })
}

/// Until process `id` has `ended`, passes a request to end this program on to it. The process then keeps its results.
fn pass_signals_on(id: u32, ended: Arc<AtomicBool>) -> JoinHandle<()> {
    thread::spawn(move || {
        while !ended.load(Relaxed) {
            if interrupt::requested() {
                terminate(id);
                return;
            }
            thread::sleep(LOOK);
        }
    })
}

#[cfg(target_os = "linux")]
fn terminate(id: u32) {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    // The program may have received this signal from the terminal, too, and may have ended already.
    let _ = kill(Pid::from_raw(id as i32), Signal::SIGTERM);
}

/// Does nothing, because no program is started on this system.
#[cfg(not(target_os = "linux"))]
fn terminate(_: u32) {}

impl Measured {
    /// Writes the folder, prints the table, and judges the run.
    fn close(mut self, copy: Option<Output>, format: &FormatArgs) -> Result<()> {
        let results = &self.results;
        self.folder
            .write("command.txt", &format!("{}\n", self.command));
        if results.has_cells() {
            self.folder.write("results.json", &results.to_json()?);
            self.folder.write("results.csv", &results::csv(results)?);
            let page = report::of_run(&self.folder.name(), results, &self.command);
            self.folder.write(report::PAGE, &page);
            format.show_results(results)?;
        }
        let closed = self.folder.close(Some(&self.log));
        let log = self.log.place(&closed.place);
        say!("");
        say!("results: {}", closed.place);
        if let Some(copy) = copy.filter(|_| results.has_cells()) {
            copy.write(&results.to_json()?)?;
        }
        if let Some(lacks) = closed.lacks {
            bail!("{lacks}");
        }
        match self.status {
            None => Ok(()),
            Some(2) => bad_input!(
                "nothing could be measured; the lines above say why; the console's log is {log}"
            ),
            Some(_) => {
                bail!("not all was measured; the lines above say why; the console's log is {log}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use crate::kvm::place::tests::args;

    #[test]
    fn the_program_is_told_what_was_typed() {
        let words = program_arguments(&args(
            "--under kvm-nvhe --wait wfi --quick --cpus 3 --repeat 5 --metric cycles --timeout 9",
        ));
        for word in [
            "--wait=wfi",
            "--quick",
            "--under=kvm-nvhe",
            "--cpus=3",
            "--repeat=5",
            "--metric=cycles",
            "--timeout=9",
        ] {
            assert!(words.iter().any(|has| has == word), "{word}: {words:?}");
        }
    }

    /// Creates a program with the same output as ours.
    fn program(place: &Path, status: u32) -> PathBuf {
        let path = place.join("program");
        let data = place.join("data");
        fs::write(&data, results::samples::results().to_json().unwrap()).unwrap();
        let text = format!(
            "#!/bin/sh\necho '@r1 of the guest'\nwhile [ $# -gt 1 ]; do shift; done\ncp {} \"$1\"\nexit {status}\n",
            data.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn what_the_program_leaves_becomes_a_folder() {
        for status in [0, 1, 2] {
            let place = tempfile::tempdir().unwrap();
            let out = place.path().join("run");
            let folder = Folder::claim(Some(&out), "kvm").unwrap();
            let program = program(place.path(), status);
            let measured = measure(&program, &["--quick".into()], place.path(), folder).unwrap();
            let closed = measured.close(None, &FormatArgs::default());
            assert_eq!(closed.is_ok(), status == 0, "{closed:?}");
            let bad_input = closed.is_err_and(|error| shell::failure::is_bad_input(&error));
            assert_eq!(bad_input, status == 2);
            for name in [
                "results.json",
                "results.csv",
                "report.html",
                "serial.log",
                "command.txt",
            ] {
                assert!(out.join(name).is_file(), "{name}");
            }
            let log = fs::read_to_string(out.join("serial.log")).unwrap();
            assert_eq!(log, "@r1 of the guest\n");
        }
    }
}
