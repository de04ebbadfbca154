// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idles in the states of crate `cpuidle`, for waits `governor:<name>`.
//!
//! | state | how | leaving it takes |
//! |---|---|---|
//! | `poll` | checks the request word, like `poll-wfi` | nothing |
//! | `wfi` | WFI, trapped or not | the exit of WFI |
//! | `standby`, `deep` | PSCI CPU_SUSPEND to a standby state | in addition, their exit latency |
//!
//! An emulator leaves every state at once, and a hypervisor can't know which power-saving state its guest has chosen.
//! So the guest itself adds the exit latency of a standby state: after the call returns and before interrupts are
//! enabled, the CPU does nothing for that long. On a real machine, the time passes at that point as well, because
//! firmware brings the CPU back before any handler runs. This way needs no hypervisor, and costs EL2's paths nothing.
//!
//! CPUs may be forced to poll whatever their governor chooses: [`super::forced_poll`].

use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::sync::atomic::Ordering::Relaxed;

use cpuidle::{Choice, Device, Driver, FOREVER, Period, Psd, Setup, StateKind, Table, Wake, Way};
use plan::{Governor, IdlePollBy, PsdLimit};
use wait::idle::{self, Idle};
use wait::poll::Pause;
use wait::target::Measure;

use super::forced_poll::{self, Forcing, Never, Pointer, Posted};
use crate::kernel::stats::Stat;
use crate::kernel::table::cpu;
use crate::kernel::{Cpu, time, timer};
use crate::percpu::PerCpu;
use crate::setting::{Body, Setting};
use crate::target::{Barred, Here};
use crate::{clock, hypervisor};

/// Returns the device that `setting` asks for.
fn new_device(setting: &Setting, governor: Governor) -> Device {
    let table = setting.states.table(setting.standby_us, setting.tick_ns);
    // A cell whose table contradicts itself was skipped before this point.
    let table = table.unwrap_or_else(|error| panic!("states {}: {error}", setting.states));
    let limit_us = (time::ticks_to_ns(setting.limit) / 1000) as u32;
    let psd = psd_window(setting, &table);
    let mut device = Device::new(table, Setup::new(governor, limit_us));
    device.set_psd(psd);
    device
}

/// Returns the window that a request to a simulated device opens.
fn psd_window(setting: &Setting, table: &Table) -> Psd {
    let limit_ns = match setting.psd_limit {
        PsdLimit::Poll => 0,
        // Slightly above the exit latency of the first state that halts.
        PsdLimit::Wfi => {
            let halting = table.states().iter().find(|state| !state.polls());
            halting.map_or(0, |state| state.exit_latency_ns + 1)
        }
    };
    Psd::with_limit(setting.psd_ms, setting.tick_ns, limit_ns)
}

/// Idles as a governor chooses; `F` may force the CPU to poll.
pub struct Governed<P, F, const BARRIER: bool> {
    pub(super) pause: P,
    pub(super) wanted: u32,
    pub(super) tick_ns: u64,
    pub(super) cpu: &'static Cpu,
    period: Period,
    forcing: PhantomData<F>,
}

/// Runs `body` with idle states chosen by the governor of `setting`, if there is a governor.
pub fn run_body<P: Pause, B: Body>(setting: &Setting, pause: P, body: &mut B) {
    let Some(governor) = setting.wait.governor() else {
        return;
    };
    let cpu = cpu(PerCpu::this().index);
    cpu.device
        .with(|place| *place = Some(new_device(setting, governor)));
    match forced_poll::forced_poll_way::<B>(setting) {
        None => select_barrier::<P, Never>(setting, pause, cpu, body),
        Some(IdlePollBy::Posted) => select_barrier::<P, Posted>(setting, pause, cpu, body),
        Some(IdlePollBy::Pointer) => select_barrier::<P, Pointer>(setting, pause, cpu, body),
    }
}

/// Runs the loop with or without a barrier before WFI, as `setting` says.
fn select_barrier<P: Pause, F: Forcing>(
    setting: &Setting,
    pause: P,
    cpu: &'static Cpu,
    body: &mut impl Body,
) {
    if setting.barrier {
        run_loop::<P, F, true>(setting, pause, cpu, body);
    } else {
        run_loop::<P, F, false>(setting, pause, cpu, body);
    }
}

fn run_loop<P: Pause, F: Forcing, const BARRIER: bool>(
    setting: &Setting,
    pause: P,
    cpu: &'static Cpu,
    body: &mut impl Body,
) {
    F::prepare_cpu::<P, BARRIER>(setting, cpu);
    body.run(Governed::<P, F, BARRIER> {
        pause,
        wanted: setting.wanted,
        tick_ns: setting.tick_ns,
        cpu,
        period: Period::new(),
        forcing: PhantomData,
    });
}

impl<T: Here, P: Pause, F: Forcing, const BARRIER: bool> Idle<T> for Governed<P, F, BARRIER> {
    #[inline(always)]
    fn wait(&mut self, me: &T) -> u32 {
        self.period = Period::new();
        let taken = loop {
            let taken = F::idle_once(self, me);
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

impl<P: Pause, F, const BARRIER: bool> Governed<P, F, BARRIER> {
    /// Idles once, in the state that the governor chooses; returns the requests found.
    pub(super) fn stay_as_chosen<T: Here>(&mut self, me: &T) -> u32 {
        let here: Stay<'_, T, P, BARRIER> = Stay {
            pause: &self.pause,
            wanted: self.wanted,
            tick_ns: self.tick_ns,
            cpu: self.cpu,
            me,
        };
        stay_in_state(&mut self.period, &here)
    }
}

/// The function is not inlined, so that the compiler generates the same code however many loops of an image call it.
#[inline(never)]
fn stay_in_state<T: Here, P: Pause, const BARRIER: bool>(
    period: &mut Period,
    here: &Stay<'_, T, P, BARRIER>,
) -> u32 {
    period.stay(here).map_or(0, NonZeroU32::get)
}

/// The governed CPU.
struct Stay<'a, T, P, const BARRIER: bool> {
    pause: &'a P,
    wanted: u32,
    tick_ns: u64,
    cpu: &'static Cpu,
    me: &'a T,
}

impl<T: Here, P: Pause, const BARRIER: bool> Driver for Stay<'_, T, P, BARRIER> {
    /// Requests that were taken.
    type Event = NonZeroU32;

    #[inline(always)]
    fn now(&self) -> u64 {
        clock::now()
    }

    #[inline(always)]
    fn ns(&self, ticks: u64) -> u64 {
        time::ticks_to_ns(ticks)
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
            Some(at) => time::ticks_to_ns(at.saturating_sub(now)),
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
            timer::set_tick(self.cpu, in_ns.map(|in_ns| now + time::ns_to_ticks(in_ns)));
        }
    }

    #[inline(always)]
    fn take_tick(&self) -> bool {
        self.cpu.rung.take_tick()
    }

    #[inline(always)]
    fn poll(&self, choice: &Choice) -> Option<NonZeroU32> {
        let limit = time::ns_to_ticks(choice.poll_limit_ns);
        NonZeroU32::new(idle::poll_for(
            self.me,
            self.pause,
            self.wanted,
            limit,
            true,
        ))
    }

    /// After the tick, the governor chooses again: a CPU that halted now would sleep without the
    /// tick that it needs.
    #[inline(always)]
    fn halt(&self, _: &Choice, way: Way) -> (Option<NonZeroU32>, bool) {
        let ticked = || self.cpu.rung.has_ticked();
        let (taken, entered) = idle::halt_unless(self.me, self.wanted, ticked, || {
            if way.kind == StateKind::Standby {
                self.wait_in_standby(way.exit_latency_ns);
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
    /// Waits in PSCI CPU_SUSPEND, counted as a halt, and then for the exit latency.
    #[inline(always)]
    fn wait_in_standby(&self, exit_latency_ns: u64) {
        let start = clock::now();
        self.me.log_halt(|| {
            hypervisor::cpu_suspend();
        });
        self.me.count(Measure::HaltTicks, clock::now() - start);
        self.me.count(Measure::Halts, 1);
        let leaving = time::ns_to_ticks(exit_latency_ns);
        clock::pause(leaving);
        self.cpu.stats.add_many(Stat::Leaving, leaving);
    }
}
