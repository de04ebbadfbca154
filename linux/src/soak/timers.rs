// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timers of a CPU. A thread waits for one timer after another, audits, and looks for stalls.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use fastrand::Rng;
use rustix::io::Errno;
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use rustix::time::clock_gettime;

use super::{Soak, clock};
use crate::wait_state::What;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// Waits for timers until the soak is over, as a thread of the `index`th CPU.
pub fn run(soak: &Soak, index: usize, mut random: Rng) -> io::Result<()> {
    while !soak.is_over() {
        // A gap is either short, so that a CPU does not idle deeply, or long.
        let gap = match random.u64(0..=3) {
            0 => random.u64(1000..=MS),
            _ => random.u64(MS..=500 * MS),
        };
        wait_with_deadline(soak, index * 2, gap)?;
        soak.audit_interrupts();
        soak.watch.report_late_waits();
    }
    Ok(())
}

/// Waits `gap` nanoseconds as the thread with number `waiter`, with a deadline.
pub fn wait_with_deadline(soak: &Soak, waiter: usize, gap: u64) -> io::Result<()> {
    let until = now_ns() + gap;
    let ticks = u128::from(gap) * u128::from(clock::frequency()) / u128::from(SECOND);
    let due = clock::now() + ticks as u64;
    let (woken, late) = soak
        .watch
        .watch_wait(waiter, What::Timer, due, || sleep_until(until));
    woken?;
    if now_ns() < until {
        soak.watch
            .fail(&format!("a timer of CPU {} came early", waiter / 2));
    }
    soak.tally.latest_us.fetch_max(microseconds(late), Relaxed);
    soak.tally.timers.fetch_add(1, Relaxed);
    Ok(())
}

/// Waits without a deadline.
pub fn wait_without_deadline(gap: u64) -> io::Result<()> {
    sleep_until(now_ns() + gap)
}

pub fn microseconds(ticks: u64) -> u64 {
    ticks / (clock::frequency() / 1_000_000).max(1)
}

/// Reads the kernel's monotonic clock, in nanoseconds.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

fn sleep_until(ns: u64) -> io::Result<()> {
    let until = Timespec {
        tv_sec: (ns / SECOND) as i64,
        tv_nsec: (ns % SECOND) as i64,
    };
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &until) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
