// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes tasks sleep: sets a CPU's virtual timer for its deadlines.
//!
//! The timer is set for the earliest of these times: the deadlines of tasks, which a governor may know; the
//! deadlines of simulated devices, which the governor must not know, because a kernel does not know when a device
//! will answer; and the scheduler's tick, while the CPU idles in a state in which a governor wants the tick.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::Ordering::Relaxed;
use core::task::{Context, Poll};

use aarch64_cpu::registers::{CNTV_CTL_EL0, Writeable};
use arch::insn;
use wait::request::RESCHED;

use super::Cpu;
use super::clockwork::{self, MASKED};
use super::stats::Stat;
use super::table::{cpu, task};
use super::task::current_task;
use crate::clock;
use crate::percpu::PerCpu;

/// Handles the timer's interrupt. If a deadline has passed, the timer stays expired, so this masks it and notifies the
/// idle loop or the executor of this CPU. Otherwise the interrupt was the scheduler tick. The idle loop sets the next
/// tick when it asks its governor. The next idle entry may be much later, because a CPU that polls keeps polling. So
/// the timer is set for the next deadline here.
pub fn handle_interrupt(me: &PerCpu, cpu: &Cpu) {
    let event = cpu.rung.event.load(Relaxed);
    if clock::now() < event {
        cpu.stats.add(Stat::Ticks);
        cpu.rung.tick.store(true, Relaxed);
        clockwork::set_timer(event);
    } else {
        CNTV_CTL_EL0.set(MASKED);
        insn::isb();
        cpu.rung.due.store(true, Relaxed);
        me.request.wake(RESCHED, false);
        me.interrupted.store(true, Relaxed);
    }
}

/// Wakes the tasks whose deadlines have passed. Interrupts must be masked.
pub fn wake_expired(cpu: &Cpu) {
    cpu.rung.due.store(false, Relaxed);
    let now = clock::now();
    loop {
        let waiter = cpu
            .timers
            .with(|clockwork| match clockwork.tasks.expire(now) {
                None => clockwork.devices.expire(now),
                waiter => waiter,
            });
        let Some(waiter) = waiter else { break };
        cpu.stats.add(Stat::Expired);
        task(waiter).wake();
    }
    cpu.timers.with(|clockwork| clockwork.arm(&cpu.rung));
}

/// Sets or cancels the scheduler tick of an idle CPU, in ticks of the counter.
pub fn set_tick(cpu: &Cpu, tick: Option<u64>) {
    cpu.timers.with(|clockwork| {
        if clockwork.tick != tick {
            clockwork.tick = tick;
            clockwork.arm(&cpu.rung);
        }
    });
}

/// Makes the calling task wait until the count has reached `deadline`.
pub fn sleep_until(deadline: u64) -> Sleep {
    Sleep {
        deadline,
        device: false,
        set: false,
    }
}

/// Makes the calling task wait until a simulated device answers, at `deadline`.
pub fn await_device(deadline: u64) -> Sleep {
    Sleep {
        deadline,
        device: true,
        set: false,
    }
}

/// The future of a task that sleeps.
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
            let waiter = current_task(context).number;
            let cpu = cpu(PerCpu::this().index);
            cpu.timers.with(|clockwork| {
                let timers = if self.device {
                    &mut clockwork.devices
                } else {
                    &mut clockwork.tasks
                };
                assert!(
                    timers.add(self.deadline, waiter),
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
