// SPDX-License-Identifier: MIT OR Apache-2.0
//! A governor lives through a trace.
//!
//! The CPU of the replay does what the guest's idle loop does: it asks, enters,
//! reports, and asks again until an event of the trace is there. Its tick comes at
//! multiples of its period, unless it is stopped; it is started again when a task
//! has run. A tick ends a halt, not a poll. An event is noticed at once by a poll,
//! and after the exit latency by a halt, the timer's too; an event that comes
//! while a halt is being left for the tick is noticed when that is over. Between
//! two intervals the CPU runs for as long as the trace says, so that a late
//! wake-up puts everything that follows off.

use cpuidle::{Choice, Device, FOREVER, Moment, Outcome, Psd, Setup, Wake};

use super::ledger::Ledger;
use super::states::States;
use super::trace::{Interval, Trace};

/// Under which conditions a trace is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Exit latency that is still allowed, ns.
    pub latency_limit_ns: u64,
    /// Utilisation where the trace has none, 1024ths.
    pub utilisation: u32,
    /// The PSD window, ms; 0 is off.
    pub psd_ms: u32,
}

/// What `name` makes of `trace`.
pub fn replay(name: Setup, trace: &Trace, states: &States, setting: &Setting) -> Ledger {
    let mut device = Device::new(states.table, name);
    device.set_latency_limit(setting.latency_limit_ns);
    device.set_psd(Psd::new(setting.psd_ms, states.table.tick_ns()));
    let mut cpu = Cpu {
        states,
        device,
        ledger: Ledger::default(),
        now_ns: 0,
        tick_stopped: false,
    };
    for interval in &trace.intervals {
        cpu.idle(
            interval,
            interval.utilisation.unwrap_or(setting.utilisation),
        );
    }
    cpu.ledger.sort();
    cpu.ledger
}

/// The CPU that idles.
struct Cpu<'s> {
    states: &'s States,
    device: Device,
    ledger: Ledger,
    now_ns: u64,
    tick_stopped: bool,
}

impl Cpu<'_> {
    /// Runs, then idles until the event of `interval`.
    fn idle(&mut self, interval: &Interval, utilisation: u32) {
        self.now_ns += interval.busy_ns;
        self.tick_stopped = false;
        if interval.io {
            self.device.submitted(self.now_ns);
        }
        let begin_ns = self.now_ns;
        let end_ns = begin_ns + interval.duration_ns;
        while self.now_ns < end_ns {
            let choice = self.choose(interval, begin_ns, utilisation);
            let outcome = self.enter(choice, end_ns, interval.wake);
            self.device.reflect(&outcome);
        }
        self.ledger.lateness_ns.push(self.now_ns - end_ns);
    }

    fn choose(&mut self, interval: &Interval, begin_ns: u64, utilisation: u32) -> Choice {
        let elapsed_ns = self.now_ns - begin_ns;
        let timer_ns = match interval.next_timer_ns {
            FOREVER => FOREVER,
            timer_ns => timer_ns.saturating_sub(elapsed_ns),
        };
        let moment = Moment {
            next_tick_ns: self.next_tick() - self.now_ns,
            tick_stopped: self.tick_stopped,
            utilisation,
            ..Moment::at(self.now_ns)
        };
        let mut asked = 0;
        let choice = self.device.select(&moment, || {
            asked = 1;
            timer_ns
        });
        self.ledger.timer_asked += asked;
        self.tick_stopped |= choice.stop_tick;
        choice
    }

    /// The first multiple of the tick's period that is yet to come.
    fn next_tick(&self) -> u64 {
        let tick_ns = self.states.table.tick_ns();
        (self.now_ns / tick_ns + 1) * tick_ns
    }

    /// Enters a state and leaves it; what became of it.
    fn enter(&mut self, choice: Choice, end_ns: u64, wake: Wake) -> Outcome {
        let index = choice.state;
        let state = self.states.table.at(index);
        let (ended_ns, wake) = if state.polls() {
            let limit_ns = self.now_ns.saturating_add(choice.poll_limit_ns);
            if end_ns <= limit_ns {
                (end_ns, wake)
            } else {
                (limit_ns, Wake::PollTimeout)
            }
        } else if self.tick_stopped || end_ns <= self.next_tick() {
            (end_ns, wake)
        } else {
            self.ledger.ticks += 1;
            (self.next_tick(), Wake::Tick)
        };
        let slept_ns = ended_ns - self.now_ns;
        let exit_ns = state.exit_latency_ns.min(end_ns - ended_ns);
        self.ledger.stay(self.states, index, slept_ns, exit_ns);
        self.now_ns = ended_ns + state.exit_latency_ns;
        Outcome {
            state: index,
            residency_ns: slept_ns + state.exit_latency_ns,
            wake,
        }
    }
}
