// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays a trace to a governor.
//!
//! The idle loop is the guest's own code, [`Period`] of crate `cpuidle`. The loop runs on a simulated CPU whose events
//! come from the trace. The scheduler tick of this CPU comes at multiples of the tick's period unless it is stopped,
//! and starts again when a task has run. A tick ends a halt, but not a poll. A CPU that polls notices an event at once.
//! A CPU that halts notices an event after the exit latency, even an event of the timer. If an event comes while the
//! CPU leaves a halt for the tick, the CPU notices the event when it has left the halt. Between two intervals, the CPU
//! runs for the time in the trace, so a late wake-up delays everything after it.

use std::cell::{Cell, RefCell};

use cpuidle::{Choice, Device, Driver, FOREVER, Period, Psd, Setup, Wake, Way};

use super::ledger::Ledger;
use super::states::States;
use super::trace::{Interval, Trace};

/// Conditions of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Longest exit latency that is allowed, in ns.
    pub latency_limit_ns: u64,
    /// Utilisation for intervals for which the trace gives none, in 1024ths.
    pub utilisation: u32,
    /// Time for which the CPU stays in shallow states after I/O is submitted (power-sleep-demotion prevention, PSD), in
    /// ms; 0 is off.
    pub psd_ms: u32,
}

/// Replays `trace` with the governor `name`.
pub fn replay(name: Setup, trace: &Trace, states: &States, setting: &Setting) -> Ledger {
    let mut device = Device::new(states.table, name);
    device.set_latency_limit(setting.latency_limit_ns);
    device.set_psd(Psd::new(setting.psd_ms, states.table.tick_ns()));
    let device = RefCell::new(device);
    let ledger = RefCell::default();
    let mut now_ns = 0;
    for interval in &trace.intervals {
        now_ns += interval.busy_ns;
        let cpu = ReplayedCpu {
            states,
            device: &device,
            ledger: &ledger,
            interval,
            utilisation: interval.utilisation.unwrap_or(setting.utilisation),
            begin_ns: now_ns,
            now_ns: Cell::new(now_ns),
            tick_at_ns: Cell::new(FOREVER),
        };
        now_ns = cpu.idle_until_noticed();
    }
    let mut ledger = ledger.into_inner();
    ledger.sort();
    ledger
}

/// The CPU in one interval of the trace.
struct ReplayedCpu<'s> {
    states: &'s States,
    device: &'s RefCell<Device>,
    ledger: &'s RefCell<Ledger>,
    interval: &'s Interval,
    utilisation: u32,
    begin_ns: u64,
    now_ns: Cell<u64>,
    tick_at_ns: Cell<u64>,
}

impl ReplayedCpu<'_> {
    /// Idles until the CPU notices the event of the interval, and returns the time at which it does.
    fn idle_until_noticed(&self) -> u64 {
        if self.interval.io {
            self.device.borrow_mut().submitted(self.begin_ns);
        }
        let mut period = Period::new();
        while self.now() < self.end_ns() {
            period.stay(self);
        }
        if self.interval.io {
            self.device.borrow_mut().completed();
        }
        let lateness_ns = self.now() - self.end_ns();
        self.ledger.borrow_mut().lateness_ns.push(lateness_ns);
        self.now()
    }

    /// Returns the time of the event.
    fn end_ns(&self) -> u64 {
        self.begin_ns + self.interval.duration_ns
    }

    /// Stays in state `index` until the event or `until_ns`, whichever comes first, and leaves the state; returns the
    /// event if it ended the stay.
    fn stay(&self, index: usize, until_ns: u64) -> Option<Wake> {
        let state = self.states.table.at(index);
        let ended_ns = self.end_ns().min(until_ns);
        let slept_ns = ended_ns - self.now();
        let exit_ns = state.exit_latency_ns.min(self.end_ns() - ended_ns);
        let mut ledger = self.ledger.borrow_mut();
        ledger.add_stay(self.states, index, slept_ns, exit_ns);
        self.now_ns.set(ended_ns + state.exit_latency_ns);
        (self.end_ns() <= until_ns).then_some(self.interval.wake)
    }
}

/// The clock of this driver counts nanoseconds.
impl Driver for ReplayedCpu<'_> {
    /// Cause of the wake-up.
    type Event = Wake;

    fn now(&self) -> u64 {
        self.now_ns.get()
    }

    fn ns(&self, ticks: u64) -> u64 {
        ticks
    }

    fn tick_ns(&self) -> u64 {
        self.states.table.tick_ns()
    }

    fn utilisation(&self) -> u32 {
        self.utilisation
    }

    fn next_timer_ns(&self, now: u64) -> u64 {
        self.ledger.borrow_mut().timer_asked += 1;
        match self.interval.next_timer_ns {
            FOREVER => FOREVER,
            timer_ns => timer_ns.saturating_sub(now - self.begin_ns),
        }
    }

    fn with_device<R>(&self, work: impl FnOnce(&mut Device) -> R) -> R {
        work(&mut self.device.borrow_mut())
    }

    fn set_tick(&self, now: u64, in_ns: Option<u64>) {
        self.tick_at_ns
            .set(in_ns.map_or(FOREVER, |in_ns| now + in_ns));
    }

    /// Counts the tick. Only the tick ends a halt without an event.
    fn take_tick(&self) -> bool {
        self.ledger.borrow_mut().ticks += 1;
        true
    }

    fn poll(&self, choice: &Choice) -> Option<Wake> {
        let until_ns = self.now().saturating_add(choice.poll_limit_ns);
        self.stay(choice.state, until_ns)
    }

    fn halt(&self, choice: &Choice, _: Way) -> (Option<Wake>, bool) {
        (self.stay(choice.state, self.tick_at_ns.get()), true)
    }

    fn cause(&self, event: Wake) -> Wake {
        event
    }
}
