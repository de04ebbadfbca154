// SPDX-License-Identifier: MIT OR Apache-2.0
//! A soak: threads on every CPU wait for timers and wake each other in all ways, while CPUs go offline and come back.
//! The soak lasts for a given number of seconds on the machine's clock. A wake-up that comes too late is a stall. The
//! soak reports it and turns the machine off.
//!
//! Every wait has a deadline. The thread that waited checks afterwards whether it met the deadline, and the threads
//! that wait for timers look for threads that are still waiting after their deadlines.

mod hotplug;
mod tally;
mod threads;
mod timers;
mod trips;
mod watch;

use std::io::{self, stdout};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use abi::{Deliver, KnobValue};
use fastrand::Rng;
use plan::Arguments;

use crate::counts::Counts;
use crate::hypervisor::LevelBelow;
use crate::output::Output;
use crate::page::Page;
use crate::{clock, cpus};
use hotplug::Hotplug;
use tally::OperationCounts;
use threads::Threads;
use trips::Mail;
use watch::Watch;

/// The default seed.
const SEED: u64 = 1;

/// Number of audits for each check of the counters. A check reads some dozens of counters, each with an exit.
const COUNTS_EACH: u64 = 16;

/// State that all threads share.
struct Soak {
    seed: u64,
    cpus: Vec<usize>,
    page: Option<Page>,
    deliver: Deliver,
    mail: Mail,
    threads: Threads,
    watch: Watch,
    tally: OperationCounts,
    /// Rouse's counts at the last check.
    counts: Mutex<Counts>,
    over: AtomicBool,
}

/// Runs the soak for `seconds`. Returns only if there was no failure.
///
/// # Errors
/// The soak can't begin, or one of its operations fails.
pub fn run(arguments: &Arguments<'_>, seconds: u64) -> Result<(), String> {
    let direct = arguments.plan.lists.deliver.values.first();
    let deliver = match direct.is_some_and(|deliver| deliver.is_direct()) {
        true => Deliver::Direct,
        false => Deliver::Inject,
    };
    let soak =
        Soak::new(arguments.seed.unwrap_or(SEED), deliver).map_err(|error| error.to_string())?;
    // Threads use this state until the machine is off.
    run_soak(Box::leak(Box::new(soak)), seconds).map_err(|error| error.to_string())
}

fn run_soak(soak: &'static Soak, seconds: u64) -> io::Result<()> {
    let mut output = Output::new(stdout());
    let under = if soak.page.is_some() { "rouse" } else { "none" };
    let line = output.record("boot").field("under", under);
    output.send(line.field("version", env!("CARGO_PKG_VERSION")))?;
    watch::have_the_kernel_panic();
    for &cpu in &soak.cpus {
        soak.set_delivery(cpu)?;
    }
    soak.start()?;
    Hotplug::new(soak, &mut output, seconds)?.run()?;
    soak.over.store(true, Relaxed);
    soak.threads.await_end(soak)?;
    for &cpu in &soak.cpus {
        cpus::pin(cpu)?;
        soak.audit_interrupts();
    }
    soak.tally.write_counts(&mut output)?;
    let line = output.record("end").field("cells", 0);
    output.send(line)?;
    output.flush()
}

impl Soak {
    fn new(seed: u64, deliver: Deliver) -> io::Result<Self> {
        let cpus = cpus::allowed_cpus()?;
        if cpus.len() < 2 {
            return Err(io::Error::other("a soak needs two CPUs; use --cpus 2"));
        }
        let most = cpus.iter().max().map_or(0, |last| last + 1);
        Ok(Self {
            seed,
            page: Page::open(LevelBelow::of_machine())?.filter(Page::is_rouses),
            deliver,
            mail: Mail::new(most)?,
            threads: Threads::default(),
            watch: Watch::new(seed, cpus.len()),
            tally: OperationCounts::default(),
            counts: Mutex::new(Counts::new()),
            over: AtomicBool::new(false),
            cpus,
        })
    }

    /// Starts the threads that belong to each CPU.
    fn start(&'static self) -> io::Result<()> {
        let mut random = Rng::with_seed(self.seed);
        for (index, &cpu) in self.cpus.iter().enumerate() {
            let (of_timers, of_trips) = (random.fork(), random.fork());
            self.threads
                .start(self, cpu, true, move || timers::run(self, index, of_timers))?;
            self.threads
                .start(self, cpu, true, move || trips::run(self, index, of_trips))?;
            self.threads
                .start(self, cpu, false, move || trips::answer_pipe(self, cpu))?;
            self.threads
                .start(self, cpu, false, move || trips::answer_futex(self, cpu))?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// Sets how interrupts are delivered to `cpu`. A CPU that was offline has lost the setting.
    fn set_delivery(&self, cpu: usize) -> io::Result<()> {
        let Some(page) = &self.page else {
            return Ok(());
        };
        cpus::pin(cpu)?;
        match page.set(KnobValue::Deliver(self.deliver)) {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "CPU {cpu}: Rouse refuses {:?}",
                self.deliver
            ))),
        }
    }

    /// Makes Rouse compare its state of this CPU's interrupts with the registers.
    fn audit_interrupts(&self) {
        let Some(page) = &self.page else {
            return;
        };
        if !page.audit_interrupts() {
            self.watch
                .fail("audit: what Rouse knows of a CPU's interrupts contradicts its registers");
        }
        let audits = self.tally.audits.fetch_add(1, Relaxed);
        if audits.is_multiple_of(COUNTS_EACH) {
            self.compare_counts(page);
        }
    }

    /// Checks that no counter of Rouse has decreased.
    fn compare_counts(&self, page: &Page) {
        let Ok(mut before) = self.counts.lock() else {
            return;
        };
        let after = page.counts();
        for (name, count) in before.iter() {
            let now = after.get(name).copied().unwrap_or(0);
            if now < *count {
                self.watch
                    .fail(&format!("going back: {name} was {count}, and is {now}"));
            }
        }
        *before = after;
    }
}
