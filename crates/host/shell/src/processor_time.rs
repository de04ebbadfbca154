// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processor time of a test: the time of its own thread and of every process that it started. Processor time does not
//! depend on other load on the host.
//!
//! The host keeps only one sum for all processes that this program has waited for, but tests run in parallel. So this
//! module reads a process's line in /proc after the process has ended and before anyone has waited for it. The line
//! then has the total time of the process, and of the children that the process has waited for (proc_pid_stat(5)). On
//! systems other than Linux, this module counts nothing.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A tick of the processor times in /proc: USER_HZ, which is 100 on every
/// architecture that Rust's std has (proc_pid_stat(5), sysconf(3)).
pub const USER_TICK: Duration = Duration::from_millis(10);

thread_local! {
    static HERE: RefCell<Account> = RefCell::default();
}

/// A sum of processor time, in ticks.
#[derive(Clone, Debug, Default)]
pub struct Account(Arc<AtomicU64>);

impl Account {
    /// Returns the account of this thread.
    pub fn of_this_thread() -> Self {
        HERE.with_borrow(Self::clone)
    }

    /// Does `work`. Charges the time of `work`, on this thread and in the processes that it starts, to this account.
    pub fn charge<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = HERE.replace(self.clone());
        let begun = own_ticks();
        let done = work();
        self.add(own_ticks().saturating_sub(begun));
        HERE.set(before);
        done
    }

    pub fn total(&self) -> Duration {
        let ticks = self.0.load(Ordering::Relaxed);
        USER_TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    fn add(&self, ticks: u64) {
        self.0.fetch_add(ticks, Ordering::Relaxed);
    }
}

/// Like [`Command::status`].
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    wait(&mut command.spawn()?)
}

/// Like [`Command::output`], for a program that reads nothing.
pub fn output(command: &mut Command) -> io::Result<Output> {
    let command = command.stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    rest(command.spawn()?)
}

/// Like [`Child::wait_with_output`], for a program that reads nothing.
pub fn rest(mut child: Child) -> io::Result<Output> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = thread::scope(|scope| {
        let stderr = scope.spawn(|| read_all(stderr));
        (read_all(stdout), stderr.join())
    });
    let status = wait(&mut child)?;
    let stderr = stderr.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(Output {
        status,
        stdout: stdout?,
        stderr,
    })
}

/// Reads `source`, if there is one, to its end.
fn read_all(source: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut source) = source {
        source.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Like [`Child::wait`].
pub fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    if has_ended(child, true) {
        charge_child(child);
    }
    child.wait()
}

/// Like [`Child::try_wait`].
pub fn try_wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    if has_ended(child, false) {
        charge_child(child);
    }
    child.try_wait()
}

/// Adds the time of a process that has ended.
fn charge_child(child: &Child) {
    if let Some(ticks) = ticks_of(&child.id().to_string()) {
        Account::of_this_thread().add(ticks);
    }
}

/// Whether a process has ended and nobody has waited for it yet.
#[cfg(target_os = "linux")]
fn has_ended(child: &Child, block: bool) -> bool {
    use nix::errno::Errno;
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    use nix::unistd::Pid;

    let Ok(id) = i32::try_from(child.id()) else {
        return false;
    };
    let mut flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    if !block {
        flags |= WaitPidFlag::WNOHANG;
    }
    loop {
        match waitid(Id::Pid(Pid::from_raw(id)), flags) {
            Err(Errno::EINTR) => {}
            Ok(status) => return status != WaitStatus::StillAlive,
            // Another caller has already waited for this process.
            Err(_) => return false,
        }
    }
}

#[cfg(not(target_os = "linux"))]
const fn has_ended(_: &Child, _: bool) -> bool {
    false
}

/// Returns the processor time of this thread, in ticks.
fn own_ticks() -> u64 {
    // utime and stime are fields 14 and 15.
    read_ticks("/proc/thread-self/stat", 14..=15).unwrap_or(0)
}

/// Returns the processor time, in ticks, of a process and of its children that it has waited for.
fn ticks_of(process: &str) -> Option<u64> {
    // utime and stime, followed by cutime and cstime.
    read_ticks(&format!("/proc/{process}/stat"), 14..=17)
}

fn read_ticks(path: &str, fields: std::ops::RangeInclusive<usize>) -> Option<u64> {
    sum_fields(&fs::read_to_string(path).ok()?, fields)
}

/// Returns the sum of the fields `fields` in a line from /proc. Fields are counted from 1. The second field is a name
/// in parentheses, which may contain anything.
fn sum_fields(stat: &str, fields: std::ops::RangeInclusive<usize>) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let rest: Vec<&str> = rest.split_whitespace().collect();
    let numbers = rest.get(fields.start() - 3..=fields.end() - 3)?;
    numbers
        .iter()
        .map(|number| number.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let stat = "77 (a) R 9 (x) S 1 77 77 0 -1 4194304 97 0 0 0 12 5 100 200 20 0 1 0 119355\n";
        assert_eq!(sum_fields(stat, 14..=15), Some(17));
        assert_eq!(sum_fields(stat, 14..=17), Some(317));
        assert_eq!(sum_fields("77 (cut) S 1", 14..=15), None);
        assert_eq!(sum_fields("77", 14..=15), None);
    }

    #[test]
    fn output_and_status_are_those_of_the_program() {
        let script = "printf said; printf complained >&2; exit 3";
        let output = output(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (&*output.stdout, &*output.stderr),
            (&b"said"[..], &b"complained"[..])
        );
        let status = status(Command::new("sh").args(["-c", "kill -KILL $$"])).unwrap();
        assert_eq!(status.code(), None);
    }

    /// Returns a command that runs until it has used `ticks` ticks. The time of a process includes the time of the
    /// children that it has waited for.
    #[cfg(target_os = "linux")]
    fn busy(ticks: u32) -> Command {
        let mut command = Command::new("sh");
        let script = format!(
            "until [ $(cut -d ' ' -f 14 /proc/$$/stat) -ge {ticks} ]; do \
             i=0; while [ $i -lt 10000 ]; do i=$((i + 1)); done; done"
        );
        command.args(["-c", &script]);
        command
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_test_is_charged_for_its_processes_and_no_other_ones() {
        let [one, other, none] = [(); 3].map(|()| Account::default());
        thread::scope(|scope| {
            scope.spawn(|| one.charge(|| status(&mut busy(30)).unwrap()));
            scope.spawn(|| other.charge(|| output(&mut busy(5)).unwrap()));
            scope.spawn(|| none.charge(|| busy(10).status().unwrap()));
        });
        assert!(one.total() >= USER_TICK * 30, "{one:?}");
        assert!(other.total() >= USER_TICK * 5, "{other:?}");
        // A program that is started without this module does not count, and neither do programs that other threads
        // start.
        assert!(none.total() < USER_TICK * 5, "{none:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn one_that_is_killed_is_charged_for_what_it_took() {
        let account = Account::default();
        account.charge(|| {
            let mut child = busy(1_000_000).spawn().unwrap();
            while ticks_of(&child.id().to_string()).unwrap() < 10 {
                assert!(try_wait(&mut child).unwrap().is_none());
                thread::yield_now();
            }
            child.kill().unwrap();
            wait(&mut child).unwrap();
        });
        assert!(account.total() >= USER_TICK * 10, "{account:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_work_of_the_thread_counts() {
        let account = Account::default();
        account.charge(|| {
            let begun = own_ticks();
            while own_ticks() < begun + 3 {
                std::hint::spin_loop();
            }
        });
        assert!(account.total() >= USER_TICK * 3, "{account:?}");
    }
}
