// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a CPU waits, and the work that uses a way of waiting.

use plan::{IdlePollBy, PsdLimit, States, Wait};

use crate::percpu::PerCpu;
use crate::target::Noting;

/// A way of waiting, on a CPU of this machine: plain, or logging.
pub trait Idle: wait::idle::Idle<PerCpu> + wait::idle::Idle<Noting> {}

impl<I: wait::idle::Idle<PerCpu> + wait::idle::Idle<Noting>> Idle for I {}

/// Work that uses a way of waiting; generic, so that the wait is compiled into the loop that is measured.
pub trait Body {
    /// It runs tasks: a governed CPU may be made to poll meanwhile.
    const HAS_TASKS: bool = false;

    /// Does it.
    fn run(&mut self, idle: impl Idle);
}

/// How a CPU waits.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The way.
    pub wait: Wait,
    /// Request bits that end the wait when seen.
    pub wanted: u32,
    /// Poll limit, ticks.
    pub limit: u64,
    /// Ticks after which a WFET returns where there is no limit.
    pub bound: u64,
    /// FEAT_WFxT is there.
    pub wfxt: bool,
    /// An event stream bounds WFE.
    pub stream: bool,
    /// The time that polls take is to be summed up, which costs some
    /// instructions.
    pub timed: bool,
    /// CPUs run one after another, and only a YIELD or a wait lets the next one run. So a CPU that spins has to yield,
    /// and it does so after every read. Yielding less often would put a constant of this program into the measurement:
    /// the number of reads that can't see anything new.
    pub hands_over: bool,
    /// The way is used on a CPU that logs.
    pub noting: bool,
    /// A barrier precedes WFI.
    pub barrier: bool,
    /// Idle states, where a governor chooses among them.
    pub states: States,
    /// Exit latency of the standby state where they do not give it, microseconds; 0 is
    /// without it.
    pub standby_us: u32,
    /// Period of the scheduler's tick, nanoseconds.
    pub tick_ns: u64,
    /// How long a CPU stays shallow after it asked a device, milliseconds.
    pub psd_ms: u32,
    /// How shallow that is.
    pub psd_limit: PsdLimit,
    /// The way in which CPUs are made to poll whatever their governor chooses; `None` if none is.
    pub forced: Option<IdlePollBy>,
}
