// SPDX-License-Identifier: MIT OR Apache-2.0
//! `governor:<name>`: idling by the states of crate `cpuidle`.
//!
//! | state | how | leaving it takes |
//! |---|---|---|
//! | `poll` | looks at the request word, as `poll-wfi` does | nothing |
//! | `wfi` | WFI, trapped or not | what WFI takes |
//! | `standby` | PSCI CPU_SUSPEND to a standby state | `standby-us` more |
//!
//! An emulator leaves every state at once, and a hypervisor below a guest can't
//! know which state the guest meant to save power with. So the exit latency of
//! `standby` is made here, in the guest: after the call returns and before
//! interrupts are let in, the CPU does nothing for that long. This is where the
//! time passes on a machine as well, as firmware brings the CPU back before any
//! handler runs; it needs no hypervisor, and costs EL2's paths nothing.
//!
//! **Polling by CPU.** What a CPU does when it idles is called through a pointer,
//! and that pointer is how a CPU is made to poll whatever its governor says (D.
//! Bristot de Oliveira, "sched/idle: Make idle poll dynamic per-cpu", a patch of
//! January 2023, where it is a patched branch): another function is put there.
//! Without it, not one instruction is executed for it.

use core::num::NonZeroU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use cpuidle::{Choice, Device, Driver, FOREVER, Kind, Period, Psd, Setup, State, Table, Wake};
use plan::Governor;
use wait::idle::{self, Idle};
use wait::poll::Pause;
use wait::target::Measure;

use crate::kernel::stats::Stat;
use crate::kernel::table::cpu;
use crate::kernel::{Cpu, time, timer};
use crate::percpu::PerCpu;
use crate::setting::{Body, Setting};
use crate::tally::Event;
use crate::target::{Barred, Here, Noting};
use crate::{clock, hypervisor};

/// Exit latency and target residency of `wfi`, ns: of the size that small cores
/// state for it.
const WFI_NS: (u64, u64) = (2_000, 10_000);
/// Target residency of `standby` in exit latencies: what the tables of common
/// cores amount to, from 2 to 4.
const RESIDENCY: u64 = 3;
/// A CPU that is made to poll looks after this long whether it still is,
/// microseconds.
const LOOK_US: u32 = 100;

/// One stay in an idle state, or an attempt; the requests that it found.
type Step<T, P, const BARRIER: bool> = fn(&mut Governed<P, BARRIER>, &T) -> u32;

/// The device that `setting` asks for.
fn device(setting: &Setting, governor: Governor) -> Device {
    let poll = State::new("poll", Kind::Poll, 0, 0);
    let wfi = State::new("wfi", Kind::Wfi, WFI_NS.0, WFI_NS.1);
    let leaving = u64::from(setting.standby_us) * 1000;
    let standby = State::new("standby", Kind::Standby, leaving, leaving * RESIDENCY);
    let states = [poll, wfi, standby];
    let count = if leaving == 0 { 2 } else { 3 };
    let table = Table::new(&states[..count], setting.tick_ns).unwrap_or_else(|error| {
        panic!(
            "idle states with standby of {} us: {error}",
            setting.standby_us
        )
    });
    let limit_us = (time::ns(setting.limit) / 1000) as u32;
    let mut device = Device::new(table, Setup::new(governor, limit_us));
    device.set_psd(Psd::new(setting.psd_ms, setting.tick_ns));
    device
}

/// Idles by governor.
pub struct Governed<P, const BARRIER: bool> {
    pause: P,
    wanted: u32,
    tick_ns: u64,
    cpu: &'static Cpu,
    period: Period,
}

/// Runs `body` with idle states that the governor of `setting` chooses, if it has one.
pub fn with<P: Pause>(setting: &Setting, pause: P, body: &mut impl Body) {
    let Some(governor) = setting.wait.governor() else {
        return;
    };
    let cpu = cpu(PerCpu::this().index);
    cpu.device
        .with(|place| *place = Some(device(setting, governor)));
    if setting.barrier {
        run::<P, true>(setting, pause, cpu, body);
    } else {
        run::<P, false>(setting, pause, cpu, body);
    }
}

/// The same, with WFI behind a barrier or not.
fn run<P: Pause, const BARRIER: bool>(
    setting: &Setting,
    pause: P,
    cpu: &'static Cpu,
    body: &mut impl Body,
) {
    let steps = match setting.noting {
        false => steps::<PerCpu, P, BARRIER>(),
        true => steps::<Noting, P, BARRIER>(),
    };
    cpu.steps.chosen.store(steps[0], Release);
    cpu.steps.forced.store(steps[1], Release);
    cpu.steps.now.store(steps[0], Release);
    body.run(Governed::<P, BARRIER> {
        pause,
        wanted: setting.wanted,
        tick_ns: setting.tick_ns,
        cpu,
        period: Period::new(),
    });
}

/// What a CPU that is looked at as `T` is to call.
fn steps<T: Here, P: Pause, const BARRIER: bool>() -> [*mut (); 2] {
    let steps = [
        chosen::<T, P, BARRIER> as Step<T, P, BARRIER>,
        forced::<T, P, BARRIER>,
    ];
    steps.map(|step| step as *mut ())
}

impl<T: Here, P: Pause, const BARRIER: bool> Idle<T> for Governed<P, BARRIER> {
    #[inline(always)]
    fn wait(&mut self, me: &T) -> u32 {
        self.period = Period::new();
        let taken = loop {
            let step = self.cpu.steps.now.load(Acquire);
            // SAFETY: only `with` and `force` store here, functions of this type,
            // before and while the body of this type runs, which waits as `Noting` where
            // the setting says so and as `PerCpu` where not.
            let step = unsafe { core::mem::transmute::<*mut (), Step<T, P, BARRIER>>(step) };
            let taken = step(self, me);
            if taken != 0 {
                break taken;
            }
        };
        if self.cpu.rung.is_on() {
            timer::set_tick(self.cpu, None);
        }
        taken
    }
}

/// Polls, whatever the governor would say, until there is a request or this is
/// not wanted any more.
fn forced<T: Here, P: Pause, const BARRIER: bool>(idle: &mut Governed<P, BARRIER>, me: &T) -> u32 {
    let start = clock::now();
    let look = clock::ticks(LOOK_US);
    let steps = &idle.cpu.steps;
    idle.cpu.stats.add(Stat::Entered);
    if idle.cpu.rung.is_on() {
        // Nothing here would set the timer anew after a tick.
        timer::set_tick(idle.cpu, None);
    }
    let still = || steps.now.load(Acquire) == steps.forced.load(Relaxed);
    let taken = idle::poll_while(me, &idle.pause, idle.wanted, look, still);
    let ticks = clock::now() - start;
    me.cpu().tally.add_many(Event::PollTicks, ticks);
    idle.cpu.stats.add_many(Stat::Forced, ticks);
    taken
}

/// One stay in the state that the governor chooses.
fn chosen<T: Here, P: Pause, const BARRIER: bool>(idle: &mut Governed<P, BARRIER>, me: &T) -> u32 {
    let here: Stay<'_, T, P, BARRIER> = Stay {
        pause: &idle.pause,
        wanted: idle.wanted,
        tick_ns: idle.tick_ns,
        cpu: idle.cpu,
        me,
    };
    idle.period.stay(&here).map_or(0, NonZeroU32::get)
}

/// The CPU that idles by governor.
struct Stay<'a, T, P, const BARRIER: bool> {
    pause: &'a P,
    wanted: u32,
    tick_ns: u64,
    cpu: &'static Cpu,
    me: &'a T,
}

impl<T: Here, P: Pause, const BARRIER: bool> Driver for Stay<'_, T, P, BARRIER> {
    /// Requests, taken.
    type Event = NonZeroU32;

    #[inline(always)]
    fn now(&self) -> u64 {
        clock::now()
    }

    #[inline(always)]
    fn ns(&self, ticks: u64) -> u64 {
        time::ns(ticks)
    }

    #[inline(always)]
    fn tick_ns(&self) -> u64 {
        self.tick_ns
    }

    #[inline(always)]
    fn utilisation(&self) -> u32 {
        self.cpu.load.load(Relaxed)
    }

    #[inline(always)]
    fn next_timer_ns(&self, now: u64) -> u64 {
        match self.cpu.timers.with(|clockwork| clockwork.next()) {
            Some(at) => time::ns(at.saturating_sub(now)),
            None => FOREVER,
        }
    }

    #[inline(always)]
    fn with_device<R>(&self, work: impl FnOnce(&mut Device) -> R) -> R {
        self.cpu.with_device(work)
    }

    #[inline(always)]
    fn set_tick(&self, now: u64, in_ns: Option<u64>) {
        if self.cpu.rung.is_on() {
            timer::set_tick(self.cpu, in_ns.map(|in_ns| now + time::ticks(in_ns)));
        }
    }

    #[inline(always)]
    fn take_tick(&self) -> bool {
        self.cpu.rung.take_tick()
    }

    #[inline(always)]
    fn poll(&self, choice: &Choice) -> Option<NonZeroU32> {
        let limit = time::ticks(choice.poll_limit_ns);
        NonZeroU32::new(idle::poll_for(
            self.me,
            self.pause,
            self.wanted,
            limit,
            true,
        ))
    }

    /// The tick's handler leaves the timer masked: a CPU that halted after it would
    /// sleep past every deadline.
    #[inline(always)]
    fn halt(&self, _: &Choice, state: &State) -> (Option<NonZeroU32>, bool) {
        let ticked = || self.cpu.rung.has_ticked();
        let (taken, entered) = idle::halt_unless(self.me, self.wanted, ticked, || {
            if state.kind == Kind::Standby {
                self.standby(state.exit_latency_ns);
            } else if BARRIER {
                idle::wfi(&Barred(self.me), true);
            } else {
                idle::wfi(self.me, true);
            }
        });
        (NonZeroU32::new(taken), entered)
    }

    #[inline(always)]
    fn cause(&self, _: NonZeroU32) -> Wake {
        if self.cpu.rung.is_due() {
            Wake::Timer
        } else {
            Wake::Request
        }
    }
}

impl<T: Here, P, const BARRIER: bool> Stay<'_, T, P, BARRIER> {
    /// PSCI CPU_SUSPEND, counted as a halt, and then the exit latency.
    #[inline(always)]
    fn standby(&self, exit_latency_ns: u64) {
        let start = clock::now();
        self.me.halting(|| {
            hypervisor::cpu_suspend();
        });
        self.me.count(Measure::HaltTicks, clock::now() - start);
        self.me.count(Measure::Halts, 1);
        let leaving = time::ticks(exit_latency_ns);
        clock::pause(leaving);
        self.cpu.stats.add_many(Stat::Leaving, leaving);
    }
}
