// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the kernel's events in one block of a cell.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use cpuidle::{Device, StateCounts, States};

/// The names of the idle states in reports.
pub const STATES: [&str; States::NAMES.len()] = States::NAMES;

/// The counted values; records give their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Stat {
    /// Times that the executor ran a task.
    Switches,
    /// Passes of the scheduler.
    Passes,
    /// Passes that began in the idle loop.
    FromIdle,
    /// Times that a CPU was about to idle and decided whether to search for work.
    Newidle,
    /// Searches for work of other CPUs.
    Searches,
    /// Run queues that searches read.
    Looked,
    /// Tasks made ready by their own CPU.
    Local,
    /// Tasks made ready by another CPU.
    Remote,
    /// Function calls made.
    Made,
    /// Function calls served in the interrupt handler.
    Interrupted,
    /// Function calls served by the idle loop.
    Drained,
    /// Passed deadlines of tasks and devices. Each of these woke a task.
    Expired,
    /// Ticks taken while idle.
    Ticks,
    /// Times that the CPU idled.
    Idled,
    /// Times that a CPU was forced to begin polling.
    Entered,
    /// Ticks of the counter in forced polling.
    Forced,
    /// Ticks of the counter that leaving standby took.
    Leaving,
    /// Samples of `io` that read, and the ticks that they took.
    Reads,
    Reading,
    /// Samples of `io` that wrote, and the ticks that they took.
    Writes,
    Writing,
    /// Samples of `frames`, and samples that ended after their deadline.
    Frames,
    Late,
    /// Delays of the three tasks of a frame, in ticks: of the first task from its intended start until it ran, of the
    /// second and the third from their wake-up until they ran.
    Beginning,
    Rendering,
    Composing,
}

impl Stat {
    /// All counters, in order.
    pub const ALL: [(Self, &'static str); 26] = [
        (Self::Switches, "sched.switches"),
        (Self::Passes, "sched.passes"),
        (Self::FromIdle, "sched.from-idle"),
        (Self::Newidle, "sched.newidle"),
        (Self::Searches, "sched.searches"),
        (Self::Looked, "sched.looked"),
        (Self::Local, "sched.local"),
        (Self::Remote, "sched.remote"),
        (Self::Made, "call.made"),
        (Self::Interrupted, "call.interrupted"),
        (Self::Drained, "call.drained"),
        (Self::Expired, "timer.expired"),
        (Self::Ticks, "timer.ticks"),
        (Self::Idled, "idle.times"),
        (Self::Entered, "idle.entered"),
        (Self::Forced, "idle.forced"),
        (Self::Leaving, "idle.leaving"),
        (Self::Reads, "io.reads"),
        (Self::Reading, "io.read-ticks"),
        (Self::Writes, "io.writes"),
        (Self::Writing, "io.write-ticks"),
        (Self::Frames, "frames.made"),
        (Self::Late, "frames.late"),
        (Self::Beginning, "frames.begin-ticks"),
        (Self::Rendering, "frames.render-ticks"),
        (Self::Composing, "frames.compose-ticks"),
    ];
}

/// Counts of one CPU.
pub struct Stats([AtomicU64; Stat::ALL.len()]);

impl Stats {
    /// Counts that are all zero.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Stat::ALL.len()])
    }

    /// Counts one event; only the CPU itself calls this. Events that interrupt handlers count are
    /// counted nowhere else.
    #[inline(always)]
    pub fn add(&self, stat: Stat) {
        self.add_many(stat, 1);
    }

    /// Counts `many` more events.
    #[inline(always)]
    pub fn add_many(&self, stat: Stat, many: u64) {
        let count = &self.0[stat as usize];
        count.store(count.load(Relaxed) + many, Relaxed);
    }

    /// Returns the count of `stat`.
    pub fn get(&self, stat: Stat) -> u64 {
        self.0[stat as usize].load(Relaxed)
    }

    /// Returns the counts since the last call.
    fn take_counts(&self) -> [u64; Stat::ALL.len()] {
        core::array::from_fn(|n| self.0[n].swap(0, Relaxed))
    }
}

/// Counts of a cell, over all its CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Counts in the order of [`Stat`].
    pub stats: [u64; Stat::ALL.len()],
    /// Counts by idle state; times are in nanoseconds.
    pub states: [StateCounts; STATES.len()],
    /// Ticks from the beginning of the work to its end, on the first CPU.
    pub span: u64,
}

impl Totals {
    /// Counts that are all zero.
    pub const ZERO: Self = Self {
        stats: [0; Stat::ALL.len()],
        states: [StateCounts {
            usage: 0,
            rejected: 0,
            time_ns: 0,
            above: 0,
            below: 0,
        }; STATES.len()],
        span: 0,
    };

    /// Takes the counts of a CPU, which then start from zero again.
    pub fn take_from(stats: &Stats, idle: Option<&Device>) -> Self {
        Self {
            stats: stats.take_counts(),
            states: STATES
                .map(|name| idle.map_or(StateCounts::default(), |idle| state_counts(idle, name))),
            span: 0,
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.stats.iter_mut().zip(other.stats) {
            *sum += count;
        }
        for (sum, tally) in self.states.iter_mut().zip(other.states) {
            sum.usage += tally.usage;
            sum.rejected += tally.rejected;
            sum.time_ns += tally.time_ns;
            sum.above += tally.above;
            sum.below += tally.below;
        }
        self.span += other.span;
    }
}

/// Returns the counts for state `name` on the CPU of `idle`, if the CPU has that state.
fn state_counts(idle: &Device, name: &str) -> StateCounts {
    let mut states = idle.states().states().iter();
    let index = states.position(|state| state.name == name);
    index.map_or(StateCounts::default(), |index| *idle.statistics().of(index))
}
