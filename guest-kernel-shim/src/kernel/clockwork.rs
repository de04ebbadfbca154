// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the deadlines of a CPU, and the state that its timer's handler sets.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Writeable};
use arch::insn;
use sched::timers::Timers;

/// Values of CNTV_CTL_EL0: off, and ENABLE.
const OFF: u64 = 0;
const ON: u64 = 1;
/// ENABLE and IMASK of CNTV_CTL_EL0.
pub const MASKED: u64 = 3;

/// A deadline that is never reached.
pub const NEVER: u64 = u64::MAX;

/// Maximum number of deadlines per CPU and kind.
const DEADLINES: usize = 64;

/// The deadlines of one CPU, in ticks.
pub struct Clockwork {
    /// Deadlines of tasks.
    pub tasks: Timers<DEADLINES>,
    /// Deadlines of simulated devices.
    pub devices: Timers<DEADLINES>,
    /// The scheduler tick of an idle CPU.
    pub tick: Option<u64>,
}

impl Clockwork {
    /// Returns a value without deadlines.
    pub const fn new() -> Self {
        Self {
            tasks: Timers::new(),
            devices: Timers::new(),
            tick: None,
        }
    }

    /// Returns the next deadline of a task, which a governor may know.
    pub fn next(&self) -> Option<u64> {
        self.tasks.next()
    }

    /// Sets the CPU's timer for the next deadline or tick.
    pub fn arm(&self, rung: &Rung) {
        let events = [self.tasks.next(), self.devices.next()];
        let event = events.into_iter().flatten().min().unwrap_or(NEVER);
        // The deadline is stored before the timer is set, because the handler reads it.
        rung.event.store(event, Relaxed);
        set_timer(self.tick.map_or(event, |tick| tick.min(event)));
    }
}

/// Sets the timer for `at`, or turns it off.
pub fn set_timer(at: u64) {
    if at == NEVER {
        CNTV_CTL_EL0.set(OFF);
    } else {
        CNTV_CVAL_EL0.set(at);
        CNTV_CTL_EL0.set(ON);
    }
    insn::isb();
}

/// State that the timer's handler and the executor share; only the CPU itself uses it.
pub struct Rung {
    /// Whether the kernel runs on this CPU.
    pub on: AtomicBool,
    /// The next deadline in ticks of the counter, or [`NEVER`].
    pub event: AtomicU64,
    /// Whether a deadline has passed.
    pub due: AtomicBool,
    /// Whether the scheduler tick has come.
    pub tick: AtomicBool,
}

impl Rung {
    /// Returns the state before the first interrupt.
    pub const fn new() -> Self {
        Self {
            on: AtomicBool::new(false),
            event: AtomicU64::new(NEVER),
            due: AtomicBool::new(false),
            tick: AtomicBool::new(false),
        }
    }

    /// Whether the kernel runs on this CPU.
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Whether a deadline has passed that has not been handled yet.
    pub fn is_due(&self) -> bool {
        self.due.load(Relaxed)
    }

    /// Whether the scheduler tick has come, so that the next one has to be set.
    pub fn has_ticked(&self) -> bool {
        self.tick.load(Relaxed)
    }

    /// Returns whether the scheduler tick has come since the last call.
    pub fn take_tick(&self) -> bool {
        self.tick.swap(false, Relaxed)
    }

    /// Notes that the kernel starts or stops on this CPU.
    pub fn set_on(&self, on: bool) {
        for flag in [&self.due, &self.tick] {
            flag.store(false, Relaxed);
        }
        self.event.store(NEVER, Relaxed);
        self.on.store(on, Relaxed);
        if !on {
            CNTV_CTL_EL0.set(OFF);
            insn::isb();
        }
    }
}
