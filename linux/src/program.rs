// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs another program from its first instruction to its end.
//!
//! The program is loaded with a breakpoint at its entry point, to which the dynamic linker jumps once all libraries are
//! loaded (AT_ENTRY of getauxval(3)). The program stops there until [`Loaded::run`] lets it continue without a
//! debugger. After an instruction is written through `/proc/PID/mem`, the kernel makes the caches of all CPUs agree on
//! it (Linux, arch/arm64/mm/flush.c).

mod children;
mod output;

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, kill_process_group, pidfd_open,
    set_child_subreaper, wait, waitpid,
};

use crate::commands;
use crate::{cpus, sample};

pub use children::end_all as end_all_children;
pub use output::{OutputFile, Printed, mount as mount_output};

/// The type AT_ENTRY in the auxiliary vector (Linux, include/uapi/linux/auxvec.h).
const AT_ENTRY: u64 = 9;
/// The encoding of BRK #0.
const BREAKPOINT: [u8; 4] = 0xd420_0000_u32.to_le_bytes();
/// The folders in which programs are searched for.
const PLACES: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program exited, with a status.
    Exited(i32),
    /// A signal ended the program.
    Signalled(i32),
    /// The program ran longer than its limit, and was killed.
    TimedOut,
}

/// A program that is stopped at its first instruction.
#[derive(Debug)]
pub struct Loaded<'c> {
    command: &'c commands::Command,
    process: Pid,
}

/// A program that has ended, or has run for as long as its limit allows.
#[derive(Debug)]
pub struct Ended {
    /// Ticks from the program's first instruction to its end or its limit.
    pub ticks: u64,
    process: Pid,
    late: bool,
}

impl<'c> Loaded<'c> {
    /// Loads the program of a command and sends its output to `output`. The program may run on `all` CPUs unless the
    /// command names CPUs.
    ///
    /// # Errors
    /// The program can't be started. The message names the program. The program may have left children.
    pub fn new(
        command: &'c commands::Command,
        all: &[usize],
        output: &OutputFile,
    ) -> io::Result<Self> {
        // Orphans of the program become children of this process.
        set_child_subreaper(Some(rustix::process::getpid()))?;
        let [program, arguments @ ..] = command.arguments.as_slice() else {
            return Err(io::Error::other("the command is empty"));
        };
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
            .stdout(output.file()?)
            .stderr(output.file()?)
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
                ptrace_result(libc::ptrace(libc::PTRACE_TRACEME, 0, none, none))
            });
        }
        let child = child.spawn().map_err(|error| {
            io::Error::other(format!("{program}: {}", why_not_started(program, &error)))
        })?;
        let process = Pid::from_child(&child);
        let loaded = Self { command, process };
        // The process stops after the exec.
        loaded.wait_until_stopped(program)?;
        let entry = entry_point(process)?;
        let mut memory = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{}/mem", process.as_raw_nonzero()))?;
        let mut first = BREAKPOINT;
        memory.seek(SeekFrom::Start(entry))?;
        memory.read_exact(&mut first)?;
        memory.seek(SeekFrom::Start(entry))?;
        memory.write_all(&BREAKPOINT)?;
        loaded.go_on_to(entry, program)?;
        memory.seek(SeekFrom::Start(entry))?;
        memory.write_all(&first)?;
        Ok(loaded)
    }

    /// Lets the program continue to its entry point, and passes on the signals that it receives on the way.
    fn go_on_to(&self, entry: u64, program: &str) -> io::Result<()> {
        let mut signal = 0;
        loop {
            self.continue_with(signal)?;
            signal = self.wait_until_stopped(program)?;
            match signal {
                libc::SIGTRAP if self.next_address()? == Some(entry) => return Ok(()),
                libc::SIGTRAP => {
                    return Err(io::Error::other(format!(
                        "{program} executes another program, or a breakpoint, while it is loaded"
                    )));
                }
                _ => {}
            }
        }
    }

    /// Lets the program run until it ends or reaches its limit.
    ///
    /// # Errors
    /// The kernel does not let this process wait for the program.
    pub fn run(self) -> io::Result<Ended> {
        let watched = pidfd_open(self.process, PidfdFlags::empty())?;
        let limit = Timespec::try_from(self.command.time_limit()).map_err(io::Error::other)?;
        let mut ended = [PollFd::new(&watched, PollFlags::IN)];
        let start = sample::begins();
        self.set_free()?;
        let events = poll(&mut ended, Some(&limit))?;
        Ok(Ended {
            ticks: sample::ends() - start,
            process: self.process,
            late: events == 0,
        })
    }

    /// Waits until the program stops, and returns the signal that stopped it.
    fn wait_until_stopped(&self, program: &str) -> io::Result<i32> {
        let status = waitpid(Some(self.process), WaitOptions::empty())?;
        let signal = status.and_then(|(_, status)| status.stopping_signal());
        signal.ok_or_else(|| {
            io::Error::other(format!("{program} ended before its first instruction"))
        })
    }

    /// Returns the address of the program's next instruction. The address is the last value of `-1 SP PC` if the
    /// program is not in a system call (proc_pid_syscall(5)).
    fn next_address(&self) -> io::Result<Option<u64>> {
        let place = format!("/proc/{}/syscall", self.process.as_raw_nonzero());
        let text = fs::read_to_string(place)?;
        let last = text.split_whitespace().last().unwrap_or_default();
        Ok(u64::from_str_radix(last.trim_start_matches("0x"), 16).ok())
    }

    /// Lets the program continue with a signal, still under the control of ptrace(2).
    fn continue_with(&self, signal: i32) -> io::Result<()> {
        let (process, none) = (self.process.as_raw_nonzero().get(), ptr::null_mut::<u8>());
        let signal = ptr::without_provenance_mut::<u8>(signal as usize);
        // SAFETY: this request reads no memory; the last argument is the number of a signal.
        ptrace_result(unsafe { libc::ptrace(libc::PTRACE_CONT, process, none, signal) })
    }

    /// Lets the program continue without ptrace(2).
    fn set_free(&self) -> io::Result<()> {
        let (process, none) = (self.process.as_raw_nonzero().get(), ptr::null_mut::<u8>());
        // SAFETY: this request reads no memory; the last argument is the number of a signal, 0 for none.
        ptrace_result(unsafe { libc::ptrace(libc::PTRACE_DETACH, process, none, none) })
    }
}

impl Ended {
    /// Ends all processes that the program left behind, and the program itself if it exceeded its limit. Returns how
    /// the program ended, and whether any of these processes were still running.
    ///
    /// # Errors
    /// The kernel does not let this process wait for the processes.
    pub fn finish(self) -> io::Result<(Ending, bool)> {
        if self.late {
            // Errors do not matter, because the program may have ended in the meantime, or be in another group.
            let _ = kill_process_group(self.process, Signal::KILL);
            let _ = kill_process(self.process, Signal::KILL);
        }
        let ending = self.reap()?;
        let left = children::end_all()?;
        match self.late {
            true => Ok((Ending::TimedOut, false)),
            false => Ok((ending, left)),
        }
    }

    fn reap(&self) -> io::Result<Ending> {
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
}

/// Converts the result of ptrace(2).
fn ptrace_result(result: libc::c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the address of a process's entry point.
fn entry_point(process: Pid) -> io::Result<u64> {
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
    found.ok_or_else(|| {
        io::Error::other("the kernel gives no entry point; is it a program of 64 bits?")
    })
}

/// Describes why a program can't be started. If the program's file exists, its interpreter is missing.
fn why_not_started(program: &str, error: &io::Error) -> String {
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
        _ => match error.raw_os_error() {
            Some(libc::EINVAL) => "it can't be started on these CPUs; see --exec-cpus".into(),
            Some(libc::ENOEXEC) => {
                "the kernel can't execute it: it needs CONFIG_BINFMT_SCRIPT for scripts, and has no other architecture"
                    .into()
            }
            _ => error.to_string(),
        },
    }
}
