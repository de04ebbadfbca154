// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes CPUs other than the first offline and back online, one at a time, and reports progress.

use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::{fs, path::PathBuf};

use fastrand::Rng;

use super::timers::{now_ns, wait_with_deadline};
use super::{Soak, clock};
use crate::cpus;
use crate::output::Output;
use crate::wait_state::What;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// Number of progress reports, though at most one per second.
const REPORTS: u64 = 60;

/// The thread that turns CPUs off and on.
pub struct Hotplug<'o, W> {
    soak: &'static Soak,
    output: &'o mut Output<W>,
    random: Rng,
    seconds: u64,
    begun: u64,
    /// The time of the next report, in nanoseconds.
    report: u64,
}

impl<'o, W: Write> Hotplug<'o, W> {
    /// Prepares a soak of `seconds`.
    pub fn new(soak: &'static Soak, output: &'o mut Output<W>, seconds: u64) -> io::Result<Self> {
        cpus::pin(soak.cpus[0])?;
        let begun = now_ns();
        Ok(Self {
            random: Rng::with_seed(!soak.seed),
            soak,
            output,
            seconds,
            begun,
            report: begun,
        })
    }

    /// Runs until the soak's time is up.
    pub fn run(mut self) -> io::Result<()> {
        let end = self.begun + self.seconds * SECOND;
        while now_ns() < end {
            self.report()?;
            self.rest_randomly(10 * MS, 15_000 * MS)?;
            let which = self.random.u64(1..=self.soak.cpus.len() as u64 - 1);
            let cpu = self.soak.cpus[which as usize];
            self.turn_cpu(What::Off(cpu), cpu, false)?;
            self.rest_randomly(MS, 500 * MS)?;
            self.turn_cpu(What::On(cpu), cpu, true)?;
            self.soak.set_delivery(cpu)?;
            cpus::pin(self.soak.cpus[0])?;
            self.soak.threads.bring_home(cpu)?;
            self.soak.tally.off.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    fn rest_randomly(&mut self, least: u64, most: u64) -> io::Result<()> {
        let gap = self.random.u64(least..=most);
        wait_with_deadline(self.soak, self.soak.watch.hotplug_waiter(), gap)
    }

    fn turn_cpu(&self, what: What, cpu: usize, on: bool) -> io::Result<()> {
        let file = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        let word = if on { "1" } else { "0" };
        let last = self.soak.watch.hotplug_waiter();
        let turn = || fs::write(&file, word);
        let (done, _) = self.soak.watch.watch_wait(last, what, clock::now(), turn);
        let told = |error: io::Error| io::Error::other(format!("{}: {error}", file.display()));
        done.map_err(told)?;
        match fs::read_to_string(&file).map_err(told)?.trim() == word {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "CPU {cpu} is not what it was turned to"
            ))),
        }
    }

    fn report(&mut self) -> io::Result<()> {
        let now = now_ns();
        if now < self.report {
            return Ok(());
        }
        self.report = now + (self.seconds * SECOND / REPORTS).max(SECOND);
        // The record counts completed work, so it grows with each report even if no whole second has passed.
        let done = (now - self.begun) / SECOND;
        self.soak
            .tally
            .tell_progress(self.output, done, self.seconds)
    }
}
