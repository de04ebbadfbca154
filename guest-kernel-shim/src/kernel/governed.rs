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
//! Who does not use it executes not one instruction for it.

use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use arch::insn;
use cpuidle::{Choice, Device, FOREVER, Kind, Moment, Outcome, Psd, Setup, State, Table, Wake};
use plan::Governor;
use wait::poll::{self, Pause};

use super::stats::Stat;
use super::{Cpu, cpu, time, timer};
use crate::idle::{self, Body, Idle, Setting};
use crate::percpu::PerCpu;
use crate::tally::Event;
use crate::{clock, hypervisor};

/// The scheduler's tick: 250 Hz, ns.
pub const TICK_NS: u64 = 4_000_000;
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
type Step<P> = fn(&mut Governed<P>, &PerCpu) -> u32;

/// The functions of a CPU that idles by governor: [`Step`]s of the type that it
/// runs at the moment.
pub struct Steps {
    /// What it does.
    now: AtomicPtr<()>,
    /// As the governor says.
    chosen: AtomicPtr<()>,
    /// Polls.
    forced: AtomicPtr<()>,
}

impl Steps {
    /// None.
    pub const fn new() -> Self {
        const fn none() -> AtomicPtr<()> {
            AtomicPtr::new(core::ptr::null_mut())
        }
        Self {
            now: none(),
            chosen: none(),
            forced: none(),
        }
    }

    /// Whether the CPU has any: it has begun to idle by governor.
    pub fn are_set(&self) -> bool {
        !self.now.load(Acquire).is_null()
    }

    /// Takes them back, between two blocks.
    pub fn clear(&self) {
        self.now.store(core::ptr::null_mut(), Release);
    }

    /// Makes the CPU poll, or not; it learns of it when it idles next, or at
    /// once if it polls.
    pub fn force(&self, on: bool) {
        let step = if on { &self.forced } else { &self.chosen };
        self.now.store(step.load(Acquire), Release);
    }
}

/// The device that `setting` asks for.
fn device(setting: &Setting, governor: Governor) -> Device {
    let poll = State::new("poll", Kind::Poll, 0, 0);
    let wfi = State::new("wfi", Kind::Wfi, WFI_NS.0, WFI_NS.1);
    let leaving = u64::from(setting.standby_us) * 1000;
    let standby = State::new("standby", Kind::Standby, leaving, leaving * RESIDENCY);
    let states = [poll, wfi, standby];
    let count = if leaving == 0 { 2 } else { 3 };
    let table = Table::new(&states[..count], TICK_NS).unwrap_or_else(|error| {
        panic!(
            "idle states with standby of {} us: {error}",
            setting.standby_us
        )
    });
    let mut device = Device::new(table, setup(setting, governor));
    device.set_psd(Psd::new(setting.psd_ms, TICK_NS));
    device
}

/// The governor with the limit that `setting` has.
fn setup(setting: &Setting, governor: Governor) -> Setup {
    Setup::new(governor, (time::ns(setting.limit) / 1000) as u32)
}

/// Idles by governor.
pub struct Governed<P> {
    pause: P,
    wanted: u32,
    cpu: &'static Cpu,
    /// The tick is off until the CPU has run a task.
    tick_stopped: bool,
}

/// Runs `body` with idle states that the governor of `setting` chooses, if it has one.
pub fn with<P: Pause>(setting: &Setting, pause: P, body: &mut impl Body) {
    let Some(governor) = setting.wait.governor() else {
        return;
    };
    let cpu = cpu(PerCpu::this().index);
    cpu.device
        .with(|place| *place = Some(device(setting, governor)));
    let steps = [chosen::<P> as Step<P>, forced::<P>].map(|step| step as *mut ());
    cpu.steps.chosen.store(steps[0], Release);
    cpu.steps.forced.store(steps[1], Release);
    cpu.steps.now.store(steps[0], Release);
    body.run(Governed {
        pause,
        wanted: setting.wanted,
        cpu,
        tick_stopped: false,
    });
}

impl<P: Pause> Idle for Governed<P> {
    #[inline(always)]
    fn wait(&mut self, me: &PerCpu) -> u32 {
        self.tick_stopped = false;
        let taken = loop {
            let step = self.cpu.steps.now.load(Acquire);
            // SAFETY: only `with` and `force` store here, functions of this type,
            // before and while the body of this type runs.
            let step = unsafe { core::mem::transmute::<*mut (), Step<P>>(step) };
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
fn forced<P: Pause>(idle: &mut Governed<P>, me: &PerCpu) -> u32 {
    let start = clock::now();
    let look = clock::ticks(LOOK_US);
    let steps = &idle.cpu.steps;
    idle.cpu.stats.add(Stat::Entered);
    if idle.cpu.rung.is_on() {
        // Nobody here would set the timer anew after a tick.
        timer::set_tick(idle.cpu, None);
    }
    me.request.start_polling();
    loop {
        let deadline = clock::now() + look;
        let seen = poll::until(&idle.pause, &me.request, idle.wanted, deadline);
        if seen != 0 || steps.now.load(Acquire) != steps.forced.load(Relaxed) {
            break;
        }
    }
    let taken = me.request.finish_polling(idle.wanted);
    let ticks = clock::now() - start;
    me.tally.add_many(Event::PollTicks, ticks);
    idle.cpu.stats.add_many(Stat::Forced, ticks);
    taken
}

/// One stay in the state that the governor chooses.
fn chosen<P: Pause>(idle: &mut Governed<P>, me: &PerCpu) -> u32 {
    let (choice, state) = select_state(idle);
    let start = clock::now();
    let (taken, entered) = enter(idle, me, &choice, &state);
    let residency_ns = time::ns(clock::now() - start);
    let cpu = idle.cpu;
    let wake = match taken {
        0 if state.polls() => Wake::PollTimeout,
        0 if cpu.rung.take_tick() => Wake::Tick,
        0 => Wake::Interrupt,
        _ if cpu.rung.is_due() => Wake::Timer,
        _ => Wake::Request,
    };
    cpu.with_device(|device| {
        if entered {
            device.reflect(&Outcome {
                state: choice.state,
                residency_ns,
                wake,
            });
        } else {
            device.rejected(choice.state);
        }
    });
    taken
}

/// Asks the governor, and sets the tick as it wants it.
fn select_state<P>(idle: &mut Governed<P>) -> (Choice, State) {
    let cpu = idle.cpu;
    let now = clock::now();
    let now_ns = time::ns(now);
    let next_tick_ns = TICK_NS - now_ns % TICK_NS;
    let moment = Moment {
        now_ns,
        next_tick_ns,
        tick_stopped: idle.tick_stopped,
        latency_limit_ns: FOREVER,
        utilisation: cpu.load.load(Relaxed),
    };
    let next_timer = || match cpu.timers.with(|clockwork| clockwork.next()) {
        Some(at) => time::ns(at.saturating_sub(now)),
        None => FOREVER,
    };
    let (choice, state) = cpu.with_device(|device| {
        let choice = device.select(&moment, next_timer);
        (choice, *device.states().at(choice.state))
    });
    idle.tick_stopped |= choice.stop_tick;
    if cpu.rung.is_on() {
        let tick = (!idle.tick_stopped).then(|| now + time::ticks(next_tick_ns));
        timer::set_tick(cpu, tick);
    }
    (choice, state)
}

/// Enters the state; the requests that were found, and whether it was entered at
/// all.
fn enter<P: Pause>(idle: &Governed<P>, me: &PerCpu, choice: &Choice, state: &State) -> (u32, bool) {
    match state.kind {
        Kind::Poll => {
            let limit = time::ticks(choice.poll_limit_ns);
            let taken = idle::poll_for(&idle.pause, me, idle.wanted, limit, true);
            (taken, true)
        }
        Kind::Wfi => asleep(idle, me, || idle::wfi(me, true)),
        Kind::Standby => asleep(idle, me, || {
            let start = clock::now();
            hypervisor::cpu_suspend();
            me.tally.add_many(Event::HaltTicks, clock::now() - start);
            me.tally.add(Event::Halted);
            let leaving = time::ticks(state.exit_latency_ns);
            clock::pause(leaving);
            idle.cpu.stats.add_many(Stat::Leaving, leaving);
        }),
    }
}

/// Sleeps, unless a request came before the promise to look was withdrawn, or the
/// tick since it was set: its handler leaves the timer masked, and who slept
/// then would do so past every deadline.
#[inline(always)]
fn asleep<P>(idle: &Governed<P>, me: &PerCpu, sleep: impl FnOnce()) -> (u32, bool) {
    let wanted = idle.wanted;
    insn::mask_irq();
    let requested = me.request.stop_polling() & wanted != 0;
    let entered = !requested && !idle.cpu.rung.has_ticked();
    if entered {
        sleep();
    }
    insn::unmask_irq();
    (me.request.take(wanted), entered)
}
