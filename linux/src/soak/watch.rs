// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches the deadlines of the events for which threads wait.

use std::fs;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

use crate::wait_state::What;
use crate::{clock, init, output};

/// Maximum duration of a wake-up where ticks are instructions, in milliseconds. Linux's loops that
/// wait for another CPU may keep their turn in the emulator until the next timer (docs/linux.md).
const WAKE_UP_MS: u64 = 1000;
/// Limit where ticks are time, in milliseconds. This limit is larger, because the host also takes some of that time.
const WAKE_UP_MS_OF_TIME: u64 = 20_000;
/// Factor by which the limit is larger when a CPU is turned off or on.
const HOTPLUG: u64 = 5;

/// The state of a thread that sometimes waits.
#[derive(Debug, Default)]
struct Waiter {
    what: AtomicU64,
    /// Deadline of the thread's wait, in ticks; 0 while the thread does not wait.
    due: AtomicU64,
}

/// All waiting threads: two per CPU, and the one that turns CPUs off and on.
#[derive(Debug)]
pub struct Watch {
    seed: u64,
    waiters: Vec<Waiter>,
    bound: u64,
    failed: AtomicBool,
}

impl Watch {
    /// Creates the state for the threads of `cpus` CPUs.
    pub fn new(seed: u64, cpus: usize) -> Self {
        let ms = match clock::counts_instructions() {
            true => WAKE_UP_MS,
            false => WAKE_UP_MS_OF_TIME,
        };
        Self {
            seed,
            waiters: (0..=2 * cpus).map(|_| Waiter::default()).collect(),
            bound: clock::frequency() / 1000 * ms,
            failed: AtomicBool::new(false),
        }
    }

    /// Returns the number of the thread that turns CPUs off and on.
    pub fn hotplug_waiter(&self) -> usize {
        self.waiters.len() - 1
    }

    /// Calls `wait`, which waits for `what` with a deadline that counts from tick `from`. Returns the result of `wait`,
    /// and the ticks since `from`.
    pub fn watch_wait<T>(
        &self,
        waiter: usize,
        what: What,
        from: u64,
        wait: impl FnOnce() -> T,
    ) -> (T, u64) {
        let times = match what {
            What::Off(_) | What::On(_) | What::End => HOTPLUG,
            _ => 1,
        };
        let due = from + self.bound * times;
        let this = &self.waiters[waiter];
        this.what.store(what.encode(), Relaxed);
        this.due.store(due, Release);
        let done = wait();
        let now = clock::now();
        this.due.store(0, Release);
        if now > due {
            self.report_stall(waiter, what, now - due + self.bound * times);
        }
        (done, now.saturating_sub(from))
    }

    /// Looks for a thread that has waited for too long, and reports it.
    pub fn report_late_waits(&self) {
        for (number, waiter) in self.waiters.iter().enumerate() {
            let due = waiter.due.load(Acquire);
            let what = waiter.what.load(Relaxed);
            let now = clock::now();
            // Read the deadline again, since this wait may have ended and another one may have begun in the meantime.
            if due != 0 && now > due && waiter.due.load(Acquire) == due {
                self.report_stall(number, What::decode(what), now - due + self.bound);
            }
        }
    }

    fn report_stall(&self, waiter: usize, what: What, ticks: u64) {
        let ms = ticks / (clock::frequency() / 1000);
        let of = match waiter == self.hotplug_waiter() {
            true => "the thread that turns CPUs off and on".into(),
            false => format!("a thread of CPU {}", waiter / 2),
        };
        self.fail(&format!("stall: {of} has waited {ms} ms for {what}"));
    }

    /// Reports the failure and turns the machine off.
    pub fn fail(&self, why: &str) -> ! {
        if !self.failed.swap(true, Relaxed) {
            output::give_up(
                "failed",
                &format!("soak of Linux, seed {}: {why}", self.seed),
            );
            init::power_off();
        }
        loop {
            thread::park();
        }
    }
}

/// Makes the kernel panic instead of only warning about a CPU that does not schedule, an RCU stall
/// or a hung task. Skips detectors that the kernel does not have.
pub fn have_the_kernel_panic() {
    for name in [
        "softlockup_panic",
        "panic_on_rcu_stall",
        "hung_task_panic",
        "panic_on_warn",
    ] {
        let _ = fs::write(format!("/proc/sys/kernel/{name}"), "1");
    }
}
