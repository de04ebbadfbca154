// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes governed CPUs poll, whatever their governor chooses.
//!
//! The idle loop is compiled once for each way of forcing, and once without forcing, so the loop of
//! a cell without forcing has no additional instruction. (The patch named below has one loop with a
//! branch that is patched at run time. While unused, that branch is a NOP.)
//!
//! [`Posted`] does what a patch for Linux does: D. Bristot de Oliveira, "sched/idle: Make idle poll dynamic per-cpu",
//! January 2023. Whenever a CPU is about to idle, it checks its switch. If the switch is on, the CPU keeps the
//! scheduler's tick on and polls with YIELD, checking the switch each time.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use plan::IdlePollBy;
use wait::idle::{poll_while, relax_while};
use wait::poll::Pause;

use super::governor::Governed;
use crate::kernel::stats::Stat;
use crate::kernel::{Cpu, force, time, timer};
use crate::setting::Setting;
use crate::tally::Event;
use crate::target::{Here, Noting};
use crate::{clock, percpu::PerCpu};

/// Time after which a CPU that polls by pointer checks whether it still has to poll, in microseconds.
const LOOK_US: u32 = 100;

/// A way of making a governed CPU poll.
pub trait Forcing: Sized {
    /// Prepares `cpu` for a body that idles as `setting` says.
    fn prepare_cpu<P: Pause, const BARRIER: bool>(_setting: &Setting, _cpu: &Cpu) {}

    /// Enters an idle state once, or tries to, or polls if the CPU is forced to; returns the requests found.
    fn idle_once<T: Here, P: Pause, const BARRIER: bool>(
        idle: &mut Governed<P, Self, BARRIER>,
        me: &T,
    ) -> u32;
}

/// A way that never forces a CPU to poll.
pub struct Never;

impl Forcing for Never {
    #[inline(always)]
    fn idle_once<T: Here, P: Pause, const BARRIER: bool>(
        idle: &mut Governed<P, Self, BARRIER>,
        me: &T,
    ) -> u32 {
        idle.stay_as_chosen(me)
    }
}

/// The way [`IdlePollBy::Posted`].
pub struct Posted;

impl Forcing for Posted {
    #[inline(always)]
    fn idle_once<T: Here, P: Pause, const BARRIER: bool>(
        idle: &mut Governed<P, Self, BARRIER>,
        me: &T,
    ) -> u32 {
        if force::SWITCH.is_on(idle.cpu.index) {
            poll_posted(idle, me)
        } else {
            idle.stay_as_chosen(me)
        }
    }
}

/// Polls while the tick continues, until there is a request or the switch is off.
#[inline(never)]
fn poll_posted<T: Here, P: Pause, const BARRIER: bool>(
    idle: &mut Governed<P, Posted, BARRIER>,
    me: &T,
) -> u32 {
    let cpu = idle.cpu;
    let start = clock::now();
    cpu.note_polling(true);
    set_next_tick(idle, start);
    let taken = relax_while(me, idle.wanted, || {
        if cpu.rung.has_ticked() {
            cpu.rung.take_tick();
            set_next_tick(idle, clock::now());
        }
        force::SWITCH.is_on(cpu.index)
    });
    count_poll(cpu, me.cpu(), start);
    taken
}

/// Sets the tick for the next multiple of its period.
fn set_next_tick<P, const BARRIER: bool>(idle: &Governed<P, Posted, BARRIER>, now: u64) {
    if idle.cpu.rung.is_on() {
        let in_ns = idle.tick_ns - time::ticks_to_ns(now) % idle.tick_ns;
        timer::set_tick(idle.cpu, Some(now + time::ns_to_ticks(in_ns)));
    }
}

/// Counts a forced poll that began at `start` and ends now.
fn count_poll(cpu: &Cpu, me: &PerCpu, start: u64) {
    let ticks = clock::now() - start;
    me.tally.add_many(Event::PollTicks, ticks);
    cpu.stats.add_many(Stat::Forced, ticks);
    cpu.note_polling(false);
}

/// The way [`IdlePollBy::Pointer`].
pub struct Pointer;

/// The type of the functions that the pointer points to.
type Step<T, P, const BARRIER: bool> = fn(&mut Governed<P, Pointer, BARRIER>, &T) -> u32;

impl Forcing for Pointer {
    fn prepare_cpu<P: Pause, const BARRIER: bool>(setting: &Setting, cpu: &Cpu) {
        let [chosen, forced] = match setting.noting {
            false => step_pointers::<PerCpu, P, BARRIER>(),
            true => step_pointers::<Noting, P, BARRIER>(),
        };
        cpu.steps.chosen.store(chosen, Release);
        cpu.steps.forced.store(forced, Release);
        cpu.steps.now.store(chosen, Release);
    }

    #[inline(always)]
    fn idle_once<T: Here, P: Pause, const BARRIER: bool>(
        idle: &mut Governed<P, Self, BARRIER>,
        me: &T,
    ) -> u32 {
        let step = idle.cpu.steps.now.load(Acquire);
        // SAFETY: only `prepare_cpu` and `Steps::force_poll` store here. Both store functions of this type, before
        // and while the body of this type runs, which waits as `Noting` if the setting says so and otherwise as
        // `PerCpu`.
        let step = unsafe { core::mem::transmute::<*mut (), Step<T, P, BARRIER>>(step) };
        step(idle, me)
    }
}

/// Returns the chosen and the forced step of a CPU that waits as a `T`.
fn step_pointers<T: Here, P: Pause, const BARRIER: bool>() -> [*mut (); 2] {
    let steps = [
        Governed::stay_as_chosen as Step<T, P, BARRIER>,
        poll_pointer::<T, P, BARRIER>,
    ];
    steps.map(|step| step as *mut ())
}

/// Polls with the wait's pause, without a tick, until there is a request or the pointer has
/// changed.
fn poll_pointer<T: Here, P: Pause, const BARRIER: bool>(
    idle: &mut Governed<P, Pointer, BARRIER>,
    me: &T,
) -> u32 {
    let cpu = idle.cpu;
    let start = clock::now();
    let look = clock::us_to_ticks(LOOK_US);
    cpu.note_polling(true);
    if cpu.rung.is_on() {
        // No code here would set the timer again after a tick.
        timer::set_tick(cpu, None);
    }
    let still = || cpu.steps.now.load(Acquire) == cpu.steps.forced.load(Relaxed);
    let taken = poll_while(me, &idle.pause, idle.wanted, look, still);
    count_poll(cpu, me.cpu(), start);
    taken
}

/// Returns the way of forced polling, if this body's loops can be switched.
pub const fn forced_poll_way<B: crate::setting::Body>(setting: &Setting) -> Option<IdlePollBy> {
    match B::HAS_TASKS {
        true => setting.forced,
        false => None,
    }
}
