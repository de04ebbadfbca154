// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disturbs a running emulator at random moments, as a busy host would, or worse. No wait in the guest may depend on
//! when its CPUs run: every wait must have a bound.
//!
//! | disturbance | what the guest sees |
//! |---|---|
//! | one thread held | a CPU is away between any two instructions, the others run and time goes on; or the emulator's own thread is, and timers are late |
//! | the process stopped | all CPUs are away, time goes on |
//! | the machine paused by its monitor | all CPUs are taken out of what they do, time stands still |
//!
//! Only ptrace stops a single thread. SIGSTOP stops the whole process, whichever thread receives it. Priorities and
//! affinities only make it likely that a thread has to wait, and only if the host is busy. A thread is seized only
//! while it is held, so that signals between the emulator's threads usually pass unchanged.
//!
//! Each disturbance, its time and its duration are drawn from the seed. The emulator's state at that time depends on
//! the host, so two runs with the same seed are similar, but not equal.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use fastrand::Rng;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use unsupported as system;

use providing::qemu::Pauser;

pub use system::obstacle;

/// Number of disturbances of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub held: u32,
    pub stopped: u32,
    pub paused: u32,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            held,
            stopped,
            paused,
        } = self;
        write!(
            f,
            "a thread held {held} times, all stopped {stopped} times, paused {paused} times"
        )
    }
}

/// Disturbs an emulator until `end` is set.
#[derive(Debug)]
pub struct Disturber {
    end: Arc<AtomicBool>,
    thread: JoinHandle<Result<Done>>,
}

impl Disturber {
    /// Disturbs process `pid`, whose monitor is in `place`.
    pub fn start(pid: u32, place: &Path, seed: u64) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let (told, place) = (Arc::clone(&end), place.to_owned());
        // One thread makes all disturbances, because only the thread that seized another thread may release it.
        let thread = thread::spawn(move || disturb(pid, &place, seed, &told));
        Self { end, thread }
    }

    /// Ends the disturbances. The emulator continues undisturbed.
    ///
    /// # Errors
    /// If nothing could be disturbed, because the run then proves nothing.
    pub fn end(self) -> Result<Done> {
        self.end.store(true, Relaxed);
        let done = self.thread.join();
        let done = done.map_err(|_| anyhow!("what disturbs the emulator has panicked"))??;
        ensure!(
            done.held > 0,
            "--disturb: no thread of the emulator could be held; it ended at once, or ptrace is not allowed here"
        );
        Ok(done)
    }
}

fn disturb(pid: u32, place: &Path, seed: u64, end: &AtomicBool) -> Result<Done> {
    let mut random = Rng::with_seed(seed);
    let mut done = Done::default();
    let mut monitor = None;
    while !end.load(Relaxed) {
        thread::sleep(random_time(&mut random, 200, 20_000));
        // The emulator opens its monitor some time after it has started.
        if monitor.is_none() {
            monitor = Pauser::connect(place).ok();
        }
        let time = random_time(&mut random, 20, 20_000);
        let count = match (random.u8(..8), &mut monitor) {
            (0, _) => system::stop_process(pid, time)?.then_some(&mut done.stopped),
            (1, Some(monitor)) => pause(monitor, time).then_some(&mut done.paused),
            _ => {
                let choose = |threads: usize| random.usize(..threads);
                system::hold_thread(pid, time, choose)?.then_some(&mut done.held)
            }
        };
        count.into_iter().for_each(|count| *count += 1);
    }
    Ok(done)
}

/// Pauses the machine. Returns whether it still existed.
fn pause(monitor: &mut Pauser, time: Duration) -> bool {
    let stopped = monitor.stop().is_ok();
    thread::sleep(time);
    stopped && monitor.go_on().is_ok()
}

/// Draws a time between `least` and `most` microseconds from a log-uniform distribution.
fn random_time(random: &mut Rng, least: u64, most: u64) -> Duration {
    let doublings = (most / least).ilog2() + 1;
    let from = least << random.u32(..doublings);
    Duration::from_micros(random.u64(from..2 * from).min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_every_magnitude() {
        let mut random = Rng::with_seed(7);
        let times: Vec<_> = (0..1000)
            .map(|_| random_time(&mut random, 20, 20_000))
            .collect();
        let micros = |n| Duration::from_micros(n);
        assert!(
            times
                .iter()
                .all(|time| (micros(20)..=micros(20_000)).contains(time))
        );
        for (from, to) in [(20, 50), (50, 500), (500, 5000), (5000, 20_000)] {
            let some = times
                .iter()
                .filter(|time| (micros(from)..micros(to)).contains(time));
            assert!(some.count() > 50, "{from} to {to}");
        }
    }
}
