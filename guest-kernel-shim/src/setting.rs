// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes how a CPU waits, and defines work that uses a way of waiting.

use plan::{IdlePollBy, PsdLimit, States, Wait};

use crate::percpu::PerCpu;
use crate::target::Noting;

/// A way of waiting on a CPU of this machine, with or without logging.
pub trait Idle: wait::idle::Idle<PerCpu> + wait::idle::Idle<Noting> {}

impl<I: wait::idle::Idle<PerCpu> + wait::idle::Idle<Noting>> Idle for I {}

/// Work that uses a way of waiting; it is generic, so that the wait is compiled into the measured loop.
pub trait Body {
    /// Whether the work runs tasks, during which a governed CPU may be made to poll.
    const HAS_TASKS: bool = false;

    /// Does the work.
    fn run(&mut self, idle: impl Idle);
}

/// How a CPU waits.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The way of waiting.
    pub wait: Wait,
    /// Request bits that end the wait when seen.
    pub wanted: u32,
    /// Limit of a poll, in ticks.
    pub limit: u64,
    /// Ticks after which a WFET returns, where the poll has no limit.
    pub bound: u64,
    /// Whether FEAT_WFxT is there.
    pub wfxt: bool,
    /// Whether an event stream bounds WFE.
    pub stream: bool,
    /// Whether the time spent in polls is added up, which costs some instructions.
    pub timed: bool,
    /// Whether CPUs run one after another, and only a YIELD or a wait lets the next CPU run. So a
    /// CPU that spins has to yield after every read. If it yielded less often, the measurement
    /// would include a constant of this program: the number of reads that can't see anything new.
    pub hands_over: bool,
    /// Whether the CPU logs its polls and halts.
    pub noting: bool,
    /// Whether a barrier precedes each WFI.
    pub barrier: bool,
    /// Idle states, if a governor chooses among them.
    pub states: States,
    /// Exit latency of the standby state if `states` does not give it, in microseconds; 0 if there
    /// is no such state.
    pub standby_us: u32,
    /// Period of the scheduler tick, in nanoseconds.
    pub tick_ns: u64,
    /// How long a CPU stays in shallow states after a request to a device, in milliseconds.
    pub psd_ms: u32,
    /// Limit on the states that the CPU may choose during that time.
    pub psd_limit: PsdLimit,
    /// The way in which CPUs are forced to poll whatever their governor chooses; `None` if no CPU is.
    pub forced: Option<IdlePollBy>,
}
