// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process of an emulator: its output, its threads, and its end.
//!
//! The process does not outlive this program. Dropping an [`EmulatorProcess`] kills its process. If this program is
//! killed, Linux notifies QEMU (`exit-with-parent`) and gem5's machine (`boards/gem5/machine.py`).

mod lines;

use std::fs;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use lines::Lines;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::emulator_time::{Sample, State, Thread};
use crate::interrupt;
use crate::processor_time::{self, USER_TICK};

/// How long a program that has closed its output may take to end.
const LAST_BREATH: Duration = Duration::from_secs(5);
/// How long an emulator that is asked to end may take to write its files.
const LAST_FILES: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(10);
/// How long to gather characters before a read. A Linux pipe holds 65536 characters (pipe(7)), and no emulated port
/// sends that many in this time. If a port sent more, it would block, but lose no characters.
const GATHER: Duration = Duration::from_millis(2);

/// Bytes to read at once, as many as a Linux pipe holds.
const PIECE: usize = 1 << 16;

/// A line of the console or of the emulator itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputLine {
    /// Standard output, which is the machine's console.
    Console(String),
    /// Standard error.
    Emulator(String),
}

/// How the emulator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// This program killed the emulator.
    Killed,
    /// The emulator ended by itself, with status 0.
    Well,
    /// The emulator ended with an exit status that is not 0.
    Status(i32),
    /// A signal from another process ended the emulator.
    Signal(i32),
}

impl End {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(0), _) => Self::Well,
            (Some(code), _) => Self::Status(code),
            (None, signal) => Self::Signal(signal.unwrap_or(0)),
        }
    }

    /// Describes the end if it is unexpected.
    pub fn describe_mishap(self) -> Option<String> {
        match self {
            Self::Killed | Self::Well => None,
            Self::Status(status) => Some(format!("ended with status {status}")),
            Self::Signal(signal) => Some(format!("was killed by {}", interrupt::name_of(signal))),
        }
    }
}

/// A running emulator. It ends when this program ends, however that happens.
#[derive(Debug)]
pub struct EmulatorProcess {
    child: Child,
    /// The unfinished line of the emulator's console.
    console: Arc<Mutex<Lines>>,
}

impl EmulatorProcess {
    /// Starts an emulator, and sends each line of its output to the receiver.
    pub fn start(command: &mut Command) -> Result<(Self, Receiver<OutputLine>)> {
        let piped = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().context("the emulator can't be started")?;
        let (sender, lines) = channel();
        let console = Arc::default();
        if let Some(stdout) = child.stdout.take() {
            let console = Arc::clone(&console);
            read_lines(stdout, console, sender.clone(), OutputLine::Console);
        }
        if let Some(stderr) = child.stderr.take() {
            read_lines(stderr, Arc::default(), sender, OutputLine::Emulator);
        }
        Ok((Self { child, console }, lines))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the unfinished line of the console. The receiver already has all earlier lines.
    pub fn unfinished_line(&self) -> String {
        lock(&self.console).unfinished_line().to_owned()
    }

    /// Samples the threads of the emulator and its child processes. `None` where the host does not report them.
    pub fn sample(&self) -> Option<Sample> {
        let mut sample = Sample::new();
        add_process(self.child.id().into(), &mut sample);
        (!sample.is_empty()).then_some(sample)
    }

    /// Asks the emulator to end, and waits until it has written its recordings and has ended.
    pub fn stop(mut self) {
        let id = Pid::from_raw(self.child.id() as i32);
        // This fails only if the emulator has ended on its own.
        let _ = kill(id, Signal::SIGTERM);
        self.wait_for(LAST_FILES);
    }

    fn wait_for(&mut self, limit: Duration) -> Option<ExitStatus> {
        let since = Instant::now();
        while since.elapsed() < limit {
            if let Ok(Some(status)) = processor_time::try_wait(&mut self.child) {
                return Some(status);
            }
            thread::sleep(PAUSE);
        }
        None
    }

    /// Waits for the end of an emulator that has closed its output.
    pub fn wait(mut self) -> End {
        self.wait_for(LAST_BREATH).map_or(End::Killed, End::of)
    }
}

impl Drop for EmulatorProcess {
    fn drop(&mut self) {
        // These two calls fail only if the emulator has ended on its own.
        let _ = self.child.kill();
        let _ = processor_time::wait(&mut self.child);
    }
}

/// Joins small writes into larger reads. An emulated serial port writes each character separately, and each write would
/// wake a blocked reader. This reader sleeps before each read, so everything, including the end of the stream, arrives
/// up to [`GATHER`] late.
struct Gathered<R>(R);

impl<R: Read> Read for Gathered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        thread::sleep(GATHER);
        self.0.read(buffer)
    }
}

/// Sends every line of `source`, even if the line is not UTF-8. `lines` holds the unfinished line.
fn read_lines(
    source: impl Read + Send + 'static,
    lines: Arc<Mutex<Lines>>,
    sender: Sender<OutputLine>,
    kind: fn(String) -> OutputLine,
) {
    thread::spawn(move || {
        let mut source = Gathered(source);
        let mut bytes = vec![0; PIECE];
        loop {
            let length = match source.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => break,
                Ok(length) => length,
            };
            // The lock is held throughout. So when a caller reads the unfinished line, all lines before it have been
            // sent.
            let mut lines = lock(&lines);
            let mut ended = bytes[..length].iter().filter_map(|&byte| lines.push(byte));
            if ended.any(|line| sender.send(kind(line)).is_err()) {
                return;
            }
        }
        // Without a receiver, the line is dropped.
        let _ = lock(&lines).last().map(|line| sender.send(kind(line)));
    });
}

/// Locks `lines`. Ignores poisoning, because a panic while the lock is held ends the program.
fn lock(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the readable threads of a process and its children.
fn add_process(process: u64, sample: &mut Sample) {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else {
        return;
    };
    for task in tasks.flatten() {
        // The thread may have ended meanwhile.
        let Ok(stat) = fs::read_to_string(task.path().join("stat")) else {
            continue;
        };
        if let Some((number, thread)) = parse_thread(&stat) {
            sample.insert(number, thread);
        }
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        children.for_each(|child| add_process(child, sample));
    }
}

/// Parses the file `stat` of a thread in /proc (proc_pid_stat(5)). The thread's name, in parentheses, may contain
/// anything.
fn parse_thread(stat: &str) -> Option<(u64, Thread)> {
    let (number, rest) = stat.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let state = match *fields.first()? {
        "S" | "I" | "Z" | "X" => State::Asleep,
        "T" | "t" => State::Stopped,
        _ => State::Busy,
    };
    // utime and stime are fields 14 and 15, and the state is field 3.
    let ticks: u32 = fields.get(11)?.parse::<u32>().ok()? + fields.get(12)?.parse::<u32>().ok()?;
    let ran = USER_TICK * ticks;
    Some((number.parse().ok()?, Thread { state, ran }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_whatever_their_name() {
        let stat = "77 (a) R 9 (x) S 1 77 77 0 -1 4194304 97 0 0 0 12 5 0 0 20 0 1 0 119355";
        let (number, thread) = parse_thread(stat).unwrap();
        assert_eq!((number, thread.state), (77, State::Asleep));
        assert_eq!(thread.ran, Duration::from_millis(170));
        for (letter, state) in [
            ("R", State::Busy),
            ("D", State::Busy),
            ("t", State::Stopped),
        ] {
            let stat = stat.replace(") S ", &format!(") {letter} "));
            assert_eq!(parse_thread(&stat).unwrap().1.state, state);
        }
        assert_eq!(parse_thread("77 (cut"), None);
    }

    fn shell(script: &str) -> (EmulatorProcess, Receiver<OutputLine>) {
        EmulatorProcess::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn every_end_is_told_from_the_others() {
        for (script, end, mishap) in [
            ("exit 0", End::Well, None),
            ("exit 3", End::Status(3), Some("ended with status 3")),
            (
                "kill -SEGV $$",
                End::Signal(11),
                Some("was killed by SIGSEGV"),
            ),
        ] {
            let (process, lines) = shell(script);
            assert!(lines.iter().next().is_none());
            let ended = process.wait();
            assert_eq!(
                (ended, ended.describe_mishap().as_deref()),
                (end, mishap),
                "{script}"
            );
        }
    }

    /// Samples until a sample is as `wanted`, however long that takes.
    #[cfg(target_os = "linux")]
    fn until(process: &EmulatorProcess, wanted: impl Fn(&Sample) -> bool) {
        while !process.sample().is_some_and(|sample| wanted(&sample)) {
            thread::sleep(PAUSE);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_process_does_is_seen() {
        let (asleep, _lines) = shell("exec sleep 600");
        until(&asleep, crate::emulator_time::all_asleep);
        let stopped = Command::new("kill")
            .args(["-STOP", &asleep.child.id().to_string()])
            .status();
        assert!(stopped.unwrap().success());
        let is_stopped = |thread: &Thread| thread.state == State::Stopped;
        until(&asleep, |sample| sample.values().all(is_stopped));
        let (busy, _lines) = shell("while :; do :; done");
        let has_run = |thread: &Thread| thread.ran >= 10 * USER_TICK;
        until(&busy, |sample| sample.values().any(has_run));
        // This child works while its parent waits for it.
        let (parent, _lines) = shell("(while :; do :; done); :");
        until(&parent, |sample| {
            sample.len() == 2 && sample.values().any(has_run)
        });
        until(&parent, |sample| !crate::emulator_time::all_asleep(sample));
        let child = *parent.sample().unwrap().keys().max().unwrap();
        drop(parent);
        let _ = Command::new("kill").arg(child.to_string()).status();
    }
}
