// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeping: the deadlines of a CPU on its virtual timer.
//!
//! The timer is set for the earliest of three: the deadlines of tasks, which
//! are what a governor may know of; those of simulated devices, which it must
//! not know, as no kernel knows when a device will answer; and the scheduler's
//! tick, while the CPU idles in a state in which a governor wants it.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use core::task::{Context, Poll};

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Writeable};
use arch::insn;
use sched::timers::Timers;
use wait::request::RESCHED;

use super::stats::Stat;
use super::{Cpu, cpu, task};
use crate::clock;
use crate::percpu::PerCpu;

/// CNTV_CTL_EL0: off, ENABLE, ENABLE and IMASK.
const OFF: u64 = 0;
const ON: u64 = 1;
const MASKED: u64 = 3;

/// Deadlines that a CPU can have of a kind.
const DEADLINES: usize = 64;

/// The deadlines of one CPU, ticks.
pub struct Clockwork {
    tasks: Timers<DEADLINES>,
    devices: Timers<DEADLINES>,
    tick: Option<u64>,
}

impl Clockwork {
    /// None.
    pub const fn new() -> Self {
        Self {
            tasks: Timers::new(),
            devices: Timers::new(),
            tick: None,
        }
    }

    /// The next deadline of a task: what a governor knows.
    pub fn next(&self) -> Option<u64> {
        self.tasks.next()
    }

    /// Sets the timer.
    fn arm(&self, rung: &Rung) {
        let events = [self.tasks.next(), self.devices.next()];
        let event = events.into_iter().flatten().min();
        let tick = self.tick.filter(|&tick| event.is_none_or(|at| tick < at));
        rung.tick_next.store(tick.is_some(), Relaxed);
        match tick.or(event) {
            Some(at) => {
                CNTV_CVAL_EL0.set(at);
                CNTV_CTL_EL0.set(ON);
            }
            None => CNTV_CTL_EL0.set(OFF),
        }
        insn::isb();
    }
}

/// What the timer's handler and the executor tell each other; only the CPU
/// itself uses it.
pub struct Rung {
    /// The kernel runs on this CPU.
    on: AtomicBool,
    /// The timer is set for the tick.
    tick_next: AtomicBool,
    /// A deadline has passed.
    due: AtomicBool,
    /// The tick has come.
    tick: AtomicBool,
}

impl Rung {
    /// Nothing has rung.
    pub const fn new() -> Self {
        Self {
            on: AtomicBool::new(false),
            tick_next: AtomicBool::new(false),
            due: AtomicBool::new(false),
            tick: AtomicBool::new(false),
        }
    }

    /// Whether the kernel runs on this CPU.
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Whether a deadline has passed that nobody has seen to.
    pub fn is_due(&self) -> bool {
        self.due.load(Relaxed)
    }

    /// Whether the tick came and the timer has to be set anew.
    pub fn has_ticked(&self) -> bool {
        self.tick.load(Relaxed)
    }

    /// Whether the tick came since the last time.
    pub fn take_tick(&self) -> bool {
        self.tick.swap(false, Relaxed)
    }

    /// The kernel begins or ends on this CPU.
    pub fn switch(&self, on: bool) {
        for flag in [&self.tick_next, &self.due, &self.tick] {
            flag.store(false, Relaxed);
        }
        self.on.store(on, Relaxed);
        if !on {
            CNTV_CTL_EL0.set(OFF);
            insn::isb();
        }
    }
}

/// The timer's interrupt: it stays expired, so it is masked, and whoever idles
/// or runs here is told.
pub fn rang(me: &PerCpu, cpu: &Cpu) {
    CNTV_CTL_EL0.set(MASKED);
    insn::isb();
    if cpu.rung.tick_next.load(Relaxed) {
        cpu.stats.add(Stat::Ticks);
        cpu.rung.tick.store(true, Relaxed);
    } else {
        cpu.rung.due.store(true, Relaxed);
        me.request.wake(RESCHED, false);
        me.interrupted.store(true, Relaxed);
    }
}

/// Wakes the tasks whose time has come; with interrupts masked.
pub fn expire(cpu: &Cpu) {
    cpu.rung.due.store(false, Relaxed);
    let now = clock::now();
    loop {
        let who = cpu
            .timers
            .with(|clockwork| match clockwork.tasks.expire(now) {
                None => clockwork.devices.expire(now),
                who => who,
            });
        let Some(who) = who else { break };
        cpu.stats.add(Stat::Expired);
        task(who).wake();
    }
    cpu.timers.with(|clockwork| clockwork.arm(&cpu.rung));
}

/// Sets or takes back the tick of an idle CPU, ticks of the counter.
pub fn set_tick(cpu: &Cpu, tick: Option<u64>) {
    cpu.timers.with(|clockwork| {
        if clockwork.tick != tick {
            clockwork.tick = tick;
            clockwork.arm(&cpu.rung);
        }
    });
}

/// Waits until the count has reached `deadline`.
pub fn sleep_until(deadline: u64) -> Sleep {
    Sleep {
        deadline,
        device: false,
        set: false,
    }
}

/// Waits until a simulated device answers, at `deadline`.
pub fn device_until(deadline: u64) -> Sleep {
    Sleep {
        deadline,
        device: true,
        set: false,
    }
}

/// A task that sleeps.
pub struct Sleep {
    deadline: u64,
    device: bool,
    set: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if clock::now() >= self.deadline {
            return Poll::Ready(());
        }
        if !self.set {
            self.set = true;
            let who = super::task::current(context).number;
            let cpu = cpu(PerCpu::this().index);
            cpu.timers.with(|clockwork| {
                let timers = if self.device {
                    &mut clockwork.devices
                } else {
                    &mut clockwork.tasks
                };
                assert!(
                    timers.add(self.deadline, who),
                    "a CPU has no room for another deadline"
                );
                if timers.next() == Some(self.deadline) {
                    clockwork.arm(&cpu.rung);
                }
            });
        }
        Poll::Pending
    }
}
