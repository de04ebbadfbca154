// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of another program, from its first instruction to its end.
//!
//! The program is loaded with a breakpoint at its entry point, which the dynamic linker jumps to once all libraries are
//! loaded (AT_ENTRY of getauxval(3)). There it stops, and goes on without a debugger when it is told to.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, kill_process_group, pidfd_open,
    set_child_subreaper, wait,
};

use crate::commands;
use crate::{cpus, sample};

/// AT_ENTRY (Linux, include/uapi/linux/auxvec.h).
const AT_ENTRY: u64 = 9;
/// BRK #0.
const BREAKPOINT: [u8; 4] = 0xd420_0000_u32.to_le_bytes();
/// File of the program's output.
const OUTPUT: &str = "/rouse-output";
/// Where programs are.
const PLACES: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Largest output: a program that writes more is ended.
const MOST: u64 = 4 << 20;
/// Time between two looks at a program that runs.
const LOOKS: Duration = Duration::from_millis(250);

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
    /// It ran longer than it may, and was ended.
    TimedOut,
    /// It wrote more than it may, and was ended.
    Flooded,
}

/// A finished run.
#[derive(Debug)]
pub struct Run {
    /// Ticks from its first instruction to its end.
    pub ticks: u64,
    /// Its end.
    pub ending: Ending,
    /// Whether it left processes behind, which were ended.
    pub left_children: bool,
    /// Its output and its errors, as they came.
    pub output: Vec<u8>,
}

/// A program that stands at its first instruction.
#[derive(Debug)]
pub struct Loaded<'c> {
    command: &'c commands::Command,
    process: Pid,
}

impl<'c> Loaded<'c> {
    /// Loads the program of a command. It may run on `all` CPUs unless the command names some.
    ///
    /// # Errors
    /// It can't be started; the message names it.
    pub fn new(command: &'c commands::Command, all: &[usize]) -> io::Result<Self> {
        // Orphans of the program become children of this process.
        set_child_subreaper(Some(rustix::process::getpid()))?;
        let [program, arguments @ ..] = command.arguments.as_slice() else {
            return Err(io::Error::other("the command is empty"));
        };
        let output = File::create(OUTPUT)?;
        let mut child = Command::new(program);
        child
            .args(arguments)
            .current_dir("/")
            .env_clear()
            .envs([
                ("PATH", PLACES),
                ("HOME", "/root"),
                ("TERM", "dumb"),
                ("LC_ALL", "C"),
            ])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        let cpus = match command.cpus.as_slice() {
            [] => all.to_vec(),
            some => some.to_vec(),
        };
        // SAFETY: both calls are system calls that may be made between fork and exec.
        unsafe {
            child.pre_exec(move || {
                cpus::unpin(&cpus)?;
                let none = ptr::null_mut::<u8>();
                traced(libc::ptrace(libc::PTRACE_TRACEME, 0, none, none))
            });
        }
        let child = child.spawn().map_err(|error| {
            io::Error::other(format!("{program}: {}", lacking(program, &error)))
        })?;
        let process = Pid::from_child(&child);
        let loaded = Self { command, process };
        // It stops after the exec, and then at its entry point.
        loaded.stopped(program)?;
        let entry = entry(process)?;
        let mut memory = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{}/mem", process.as_raw_nonzero()))?;
        let mut first = BREAKPOINT;
        memory.seek(SeekFrom::Start(entry))?;
        memory.read_exact(&mut first)?;
        memory.seek(SeekFrom::Start(entry))?;
        memory.write_all(&BREAKPOINT)?;
        loaded.go_on()?;
        loaded.stopped(program)?;
        memory.seek(SeekFrom::Start(entry))?;
        memory.write_all(&first)?;
        Ok(loaded)
    }

    /// Lets it run to its end.
    ///
    /// # Errors
    /// The kernel does not let this process wait for it.
    pub fn run(self) -> io::Result<Run> {
        let watched = pidfd_open(self.process, PidfdFlags::empty())?;
        let began = Instant::now();
        let start = sample::begins();
        self.set_free()?;
        let mut cut = None;
        loop {
            let mut ended = [PollFd::new(&watched, PollFlags::IN)];
            let left = self.command.limit.saturating_sub(began.elapsed());
            let timeout = Timespec::try_from(left.min(LOOKS)).map_err(io::Error::other)?;
            if poll(&mut ended, Some(&timeout))? > 0 {
                break;
            }
            cut = match (left.is_zero(), fs::metadata(OUTPUT)?.len() > MOST) {
                (true, _) => Some(Ending::TimedOut),
                (_, true) => Some(Ending::Flooded),
                _ => continue,
            };
            break;
        }
        let ticks = sample::ends() - start;
        if cut.is_some() {
            // It may have ended meanwhile.
            let _ = kill_process_group(self.process, Signal::KILL);
        }
        let ending = self.reaped()?;
        let left_children = end_all_children()?;
        Ok(Run {
            ticks,
            ending: cut.unwrap_or(ending),
            left_children,
            output: shown()?,
        })
    }

    fn reaped(&self) -> io::Result<Ending> {
        loop {
            let Some((process, status)) = wait(WaitOptions::empty())? else {
                continue;
            };
            if process == self.process {
                return Ok(match status.exit_status() {
                    Some(exit) => Ending::Exited(exit),
                    None => Ending::Signalled(status.terminating_signal().unwrap_or_default()),
                });
            }
        }
    }

    /// Waits until it stops.
    fn stopped(&self, program: &str) -> io::Result<()> {
        let status = rustix::process::waitpid(Some(self.process), WaitOptions::empty())?;
        match status {
            Some((_, status)) if status.stopped() => Ok(()),
            _ => Err(io::Error::other(format!(
                "{program} ended before its first instruction"
            ))),
        }
    }

    /// Lets it go on, and stay under control.
    fn go_on(&self) -> io::Result<()> {
        let (process, none) = (self.process.as_raw_nonzero().get(), ptr::null_mut::<u8>());
        // SAFETY: this request reads no memory; its last argument is the number of a signal, none.
        traced(unsafe { libc::ptrace(libc::PTRACE_CONT, process, none, none) })
    }

    /// Lets it go on by itself.
    fn set_free(&self) -> io::Result<()> {
        let (process, none) = (self.process.as_raw_nonzero().get(), ptr::null_mut::<u8>());
        // SAFETY: this request reads no memory; its last argument is the number of a signal, none.
        traced(unsafe { libc::ptrace(libc::PTRACE_DETACH, process, none, none) })
    }
}

/// Ends and reaps all children of this process, among them orphans of a program. Returns whether one still ran.
fn end_all_children() -> io::Result<bool> {
    let mut one_ran = false;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => {
                one_ran = true;
                for child in children()? {
                    // It may have ended meanwhile.
                    let _ = kill_process(child, Signal::KILL);
                }
                let _ = wait(WaitOptions::empty());
            }
            Err(Errno::CHILD) => return Ok(one_ran),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the children of this process, by the parent in each `/proc/PID/stat` (proc_pid_stat(5)).
fn children() -> io::Result<Vec<Pid>> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(process) = number.and_then(Pid::from_raw) else {
            continue;
        };
        // A process that has just ended has no such file.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in brackets may contain anything.
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if parent == Some(&own) {
            found.push(process);
        }
    }
    Ok(found)
}

/// Converts the result of ptrace(2).
fn traced(result: libc::c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the beginning of the last program's output.
///
/// # Errors
/// It can't be read.
pub fn shown() -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    File::open(OUTPUT)?.take(MOST).read_to_end(&mut output)?;
    Ok(output)
}

/// Returns the address of a process's entry point.
fn entry(process: Pid) -> io::Result<u64> {
    let vector = fs::read(format!("/proc/{}/auxv", process.as_raw_nonzero()))?;
    let words: Vec<u64> = vector
        .chunks_exact(8)
        .map(|bytes| {
            bytes
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte))
        })
        .collect();
    let mut pairs = words.chunks_exact(2);
    let found = pairs.find(|pair| pair[0] == AT_ENTRY).map(|pair| pair[1]);
    found.ok_or_else(|| io::Error::other("the kernel gives no entry point"))
}

/// Describes why a program can't be started: of a program that is there, its interpreter is missing.
fn lacking(program: &str, error: &io::Error) -> String {
    let exists = match program.contains('/') {
        true => fs::exists(program).unwrap_or(false),
        false => PLACES
            .split(':')
            .any(|place| Path::new(place).join(program).exists()),
    };
    match error.kind() {
        io::ErrorKind::NotFound if exists => {
            "its interpreter or its dynamic linker is missing; give them by --rootfs or --packages"
                .into()
        }
        io::ErrorKind::NotFound => {
            "there is no such program; give it by --rootfs or --packages".into()
        }
        io::ErrorKind::PermissionDenied => "it is not executable".into(),
        _ => error.to_string(),
    }
}
