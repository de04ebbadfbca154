// SPDX-License-Identifier: MIT OR Apache-2.0
//! The soak's threads and their CPUs.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::thread;

use rustix::thread::{Pid, gettid};

use super::Soak;
use super::timers::wait_without_deadline;
use crate::wait_state::What;
use crate::{clock, cpus};

/// Interval between checks while the soak waits for the end of its threads, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// All threads of the soak.
#[derive(Debug, Default)]
pub struct Threads {
    homes: Mutex<Vec<(Pid, usize)>>,
    /// Number of threads that are still running, not counting those that never end.
    left: AtomicUsize,
}

impl Threads {
    /// Starts a thread on `cpu`. `ends` states whether the thread ends when the soak is over.
    pub fn start(
        &'static self,
        soak: &'static Soak,
        cpu: usize,
        ends: bool,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.left.fetch_add(usize::from(ends), AcqRel);
        let body = move || {
            if let Ok(mut homes) = self.homes.lock() {
                homes.push((gettid(), cpu));
            }
            if let Err(error) = cpus::pin(cpu).and_then(|()| work()) {
                soak.watch.fail(&format!("a thread of CPU {cpu}: {error}"));
            }
            self.left.fetch_sub(usize::from(ends), AcqRel);
        };
        thread::Builder::new().spawn(body).map(drop)
    }

    /// Moves the threads that belong to `cpu` back to this CPU. The kernel moved them away when the CPU went offline.
    pub fn bring_home(&self, cpu: usize) -> io::Result<()> {
        let homes = self.homes.lock().map_err(|_| io::ErrorKind::Other)?;
        let mut of = homes.iter().filter(|(_, home)| *home == cpu);
        of.try_for_each(|(thread, _)| cpus::pin_other(*thread, cpu))
    }

    /// Waits until all threads have ended, except those that never end.
    pub fn await_end(&self, soak: &Soak) -> io::Result<()> {
        let waits = || {
            while self.left.load(Acquire) > 0 {
                wait_without_deadline(LOOK_NS)?;
                soak.watch.report_late_waits();
            }
            Ok(())
        };
        soak.watch
            .watch_wait(soak.watch.hotplug_waiter(), What::End, clock::now(), waits)
            .0
    }
}
