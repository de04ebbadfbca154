// SPDX-License-Identifier: MIT OR Apache-2.0
//! The idle loop of a CPU with a governor: one stay in an idle state after another,
//! until there is something to do.
//!
//! This module has the steps and their order; a [`Driver`], the CPU, implements each step. The
//! guest's driver is a real CPU, and the driver of `cargo xtask governors` is a trace.

use crate::{Choice, Device, Moment, Outcome, StateKind, Wake};

/// The operations that an idle period needs from its CPU. In Linux, a cpuidle driver provides them,
/// with the clock, timers and tick around it.
pub trait Driver {
    /// Event that ends an idle period: a request, or whatever else there is to do.
    type Event: Copy;

    /// The time by a clock that never goes backwards, in the clock's ticks.
    fn now(&self) -> u64;

    /// Converts ticks of the clock to nanoseconds.
    fn ns(&self, ticks: u64) -> u64;

    /// Period of the scheduler tick, in ns; ticks come at multiples of the period.
    fn tick_ns(&self) -> u64;

    /// How busy the CPU was lately; see [`Moment::utilisation`].
    fn utilisation(&self) -> u32;

    /// Returns the time from `now` to the next timer other than the tick, ns, or [`FOREVER`](crate::FOREVER).
    fn next_timer_ns(&self, now: u64) -> u64;

    /// Calls `work` with the device of the CPU.
    fn with_device<R>(&self, work: impl FnOnce(&mut Device) -> R) -> R;

    /// Arms the tick for `in_ns` nanoseconds after `now`, or stops it.
    fn set_tick(&self, now: u64, in_ns: Option<u64>);

    /// Whether the tick came since the last call.
    fn take_tick(&self) -> bool;

    /// Polls for at most [`Choice::poll_limit_ns`]; returns the event that it saw.
    fn poll(&self, choice: &Choice) -> Option<Self::Event>;

    /// Enters the chosen halting state, which `way` describes, and leaves it on an interrupt.
    /// Returns the event that exists then, if any, and whether the CPU entered the state at
    /// all.
    fn halt(&self, choice: &Choice, way: Way) -> (Option<Self::Event>, bool);

    /// Returns the cause that `event` counts as.
    fn cause(&self, event: Self::Event) -> Wake;
}

/// Parameters for entering a state. (Copying the whole [`State`](crate::State) would go through
/// memory in every stay.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// How the CPU waits in the state.
    pub kind: StateKind,
    /// [`State::exit_latency_ns`](crate::State::exit_latency_ns).
    pub exit_latency_ns: u64,
}

/// An idle period: from having nothing to do to having something to do again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Period {
    /// Whether the governor has stopped the tick, which starts again with the next period.
    tick_stopped: bool,
}

impl Period {
    /// The period of a CPU that has just run a task.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            tick_stopped: false,
        }
    }

    /// Runs one stay, or attempt at one, in the state that the governor chooses. Returns the event
    /// that ended the period, or `None` if the period continues.
    #[inline(always)]
    pub fn stay<D: Driver>(&mut self, cpu: &D) -> Option<D::Event> {
        let (choice, way) = self.select(cpu);
        let start = cpu.now();
        let (event, entered) = match way.kind {
            StateKind::Poll => (cpu.poll(&choice), true),
            StateKind::Wfi | StateKind::Standby => cpu.halt(&choice, way),
        };
        let residency_ns = cpu.ns(cpu.now() - start);
        let wake = match event {
            Some(event) => cpu.cause(event),
            None if way.kind == StateKind::Poll => Wake::PollTimeout,
            None if cpu.take_tick() => Wake::Tick,
            None => Wake::Interrupt,
        };
        cpu.with_device(|device| {
            if entered {
                device.reflect(&Outcome {
                    state: choice.state,
                    residency_ns,
                    wake,
                });
            } else {
                device.count_rejection(choice.state);
            }
        });
        event
    }

    /// Asks the governor, and sets the tick according to its choice.
    #[inline(always)]
    fn select<D: Driver>(&mut self, cpu: &D) -> (Choice, Way) {
        let now = cpu.now();
        let now_ns = cpu.ns(now);
        let next_tick_ns = cpu.tick_ns() - now_ns % cpu.tick_ns();
        let moment = Moment {
            next_tick_ns,
            tick_stopped: self.tick_stopped,
            utilisation: cpu.utilisation(),
            ..Moment::quiet_at(now_ns)
        };
        let (choice, way) = cpu.with_device(|device| {
            let choice = device.select(&moment, || cpu.next_timer_ns(now));
            let state = device.states().at(choice.state);
            let way = Way {
                kind: state.kind,
                exit_latency_ns: state.exit_latency_ns,
            };
            (choice, way)
        });
        self.tick_stopped |= choice.stop_tick;
        cpu.set_tick(now, (!self.tick_stopped).then_some(next_tick_ns));
        (choice, way)
    }
}

#[cfg(test)]
mod tests;
