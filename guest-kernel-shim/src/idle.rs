// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways of waiting for a request.
//!
//! Every one is a loop over the same four steps: promise to look (set
//! POLLING), look and pause, withdraw the promise, halt. `spin`, `yield`, `wfe`,
//! `wfe-sev` and `wfet` do only the first three; `wfi` only the last; `poll-wfi`
//! and `haltpoll` all four. What differs is the pause, [`Pause`]. Where a governor
//! chooses among idle states, the loop is that of [`governed`].
//!
//! Polls run with interrupts unmasked: a masked interrupt does not wake a WFE
//! (DDI 0487K.a, D1.7.1), and would wait for the end of the poll. A halt is
//! entered with interrupts masked, after the word has shown no request, and a
//! pending interrupt ends it masked or not; see [`wait::request`].

pub mod limited;
mod pause;

use arch::insn;
use plan::Wait;
use wait::governor::{Guest, Tunables};
use wait::poll::{self, Counted, Pause};
use wait::request::RESCHED;

use self::pause::{By, Spin, Wfe, WfeSev, Wfet, Yield};
use crate::clock;
use crate::kernel::governed;
use crate::percpu::PerCpu;
use crate::tally::Event;

/// A way of waiting.
pub trait Idle {
    /// Waits until a wanted request is there, and takes it.
    fn wait(&mut self, cpu: &PerCpu) -> u32;
}

/// Something to do with a way of waiting; generic, so that the wait is
/// compiled into the loop that is measured.
pub trait Body {
    /// Does it.
    fn run(&mut self, idle: impl Idle);
}

/// How a CPU waits.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The way.
    pub wait: Wait,
    /// Request bits that end the wait when seen.
    pub wanted: u32,
    /// Poll limit, ticks.
    pub limit: u64,
    /// Ticks after which a WFET returns where there is no limit.
    pub bound: u64,
    /// FEAT_WFxT is there.
    pub wfxt: bool,
    /// An event stream bounds WFE.
    pub stream: bool,
    /// The time that polls take is to be summed up, which costs some
    /// instructions.
    pub timed: bool,
    /// Exit latency of the standby state, microseconds; 0 is without it.
    pub standby_us: u32,
    /// How long a CPU stays shallow after it asked a device, milliseconds.
    pub psd_ms: u32,
}

/// Runs `body` with the way of waiting that `setting` names.
pub fn with(setting: &Setting, body: &mut impl Body) {
    let &Setting { wanted, timed, .. } = setting;
    match setting.wait {
        Wait::Busy => body.run(Busy { wanted }),
        Wait::Spin => poll_without_limit(setting, By(Spin::default()), body),
        Wait::Yield => poll_without_limit(setting, By(Yield), body),
        Wait::Wfe => poll_without_limit(setting, By(Wfe), body),
        Wait::WfeSev => poll_without_limit(setting, By(WfeSev), body),
        Wait::Wfet => poll_without_limit(setting, By(Wfet), body),
        Wait::Wfi => body.run(Halt { wanted, timed }),
        Wait::PollWfi | Wait::Haltpoll if setting.wfxt => poll_then_halt(setting, By(Wfet), body),
        Wait::PollWfi | Wait::Haltpoll if setting.stream => poll_then_halt(setting, By(Wfe), body),
        Wait::PollWfi | Wait::Haltpoll => poll_then_halt(setting, By(Yield), body),
        Wait::Governed(_) => by_governor(setting, body),
    }
}

fn poll_without_limit(setting: &Setting, pause: impl Pause, body: &mut impl Body) {
    let (wanted, bound) = (setting.wanted, setting.bound);
    if setting.timed {
        body.run(Poll::new(Counted::new(pause), wanted, bound, true));
    } else {
        body.run(Poll::new(pause, wanted, bound, false));
    }
}

/// Apart from the others, whose code must not depend on how much there is of this.
#[cold]
#[inline(never)]
fn by_governor(setting: &Setting, body: &mut impl Body) {
    match setting {
        _ if setting.wfxt => governed::with(setting, By(Wfet), body),
        _ if setting.stream => governed::with(setting, By(Wfe), body),
        _ => governed::with(setting, By(Yield), body),
    }
}

fn poll_then_halt(setting: &Setting, pause: impl Pause, body: &mut impl Body) {
    if setting.timed {
        poll_then_halt_by(setting, Counted::new(pause), body);
    } else {
        poll_then_halt_by(setting, pause, body);
    }
}

fn poll_then_halt_by(setting: &Setting, pause: impl Pause, body: &mut impl Body) {
    let &Setting {
        wanted,
        limit,
        timed,
        ..
    } = setting;
    if setting.wait == Wait::Haltpoll {
        body.run(Haltpoll::new(pause, wanted, limit, timed));
    } else {
        body.run(PollHalt::new(pause, wanted, limit, timed));
    }
}

/// `busy`: not idle at all. It runs something else, here nothing worth
/// mentioning, and looks at what its own interrupt handler left.
struct Busy {
    wanted: u32,
}

impl Idle for Busy {
    #[inline(always)]
    fn wait(&mut self, cpu: &PerCpu) -> u32 {
        loop {
            if cpu.take_interrupted() {
                let taken = cpu.request.take(self.wanted);
                if taken != 0 {
                    return taken;
                }
            }
            insn::yield_now();
        }
    }
}

/// Polls without a limit; every pause returns by itself within `bound` ticks.
struct Poll<P> {
    pause: P,
    wanted: u32,
    bound: u64,
    timed: bool,
}

impl<P: Pause> Poll<P> {
    fn new(pause: P, wanted: u32, bound: u64, timed: bool) -> Self {
        Self {
            pause,
            wanted,
            bound,
            timed,
        }
    }
}

impl<P: Pause> Idle for Poll<P> {
    #[inline(always)]
    fn wait(&mut self, cpu: &PerCpu) -> u32 {
        let request = &cpu.request;
        let start = if self.timed { clock::now() } else { 0 };
        request.start_polling();
        poll::forever(&self.pause, request, self.wanted, self.bound);
        let taken = request.finish_polling(self.wanted);
        if self.timed {
            cpu.tally.add_many(Event::PollTicks, clock::now() - start);
            cpu.tally.add_many(Event::Pauses, self.pause.take_pauses());
        }
        taken
    }
}

/// `wfi`.
struct Halt {
    wanted: u32,
    timed: bool,
}

impl Idle for Halt {
    #[inline(always)]
    fn wait(&mut self, cpu: &PerCpu) -> u32 {
        loop {
            insn::mask_irq();
            if cpu.request.pending() & self.wanted == 0 {
                wfi(cpu, self.timed);
            }
            insn::unmask_irq();
            let taken = cpu.request.take(self.wanted);
            if taken != 0 {
                return taken;
            }
        }
    }
}

/// WFI, counted; its time as well if it is to be `timed`.
#[inline(always)]
pub fn wfi(cpu: &PerCpu, timed: bool) {
    let start = if timed { clock::now() } else { 0 };
    insn::wfi();
    if timed {
        cpu.tally.add_many(Event::HaltTicks, clock::now() - start);
    }
    cpu.tally.add(Event::Halted);
}

/// Polls for `limit` ticks; the requests that it found, or 0.
#[inline(always)]
pub fn poll_for<P: Pause>(pause: &P, cpu: &PerCpu, wanted: u32, limit: u64, timed: bool) -> u32 {
    let deadline = clock::now() + limit;
    cpu.request.start_polling();
    if poll::until(pause, &cpu.request, wanted, deadline) != 0 {
        let taken = cpu.request.finish_polling(wanted);
        if timed {
            let ticks = clock::now() - (deadline - limit);
            cpu.tally.add_many(Event::PollTicks, ticks);
            cpu.tally.add_many(Event::Pauses, pause.take_pauses());
        }
        return taken;
    }
    let over = clock::now().saturating_sub(deadline);
    cpu.tally.add(Event::PollTimeout);
    cpu.tally.add_many(Event::Overshoot, over);
    cpu.tally.add_many(Event::PollTicks, limit + over);
    cpu.tally.add_many(Event::Pauses, pause.take_pauses());
    0
}

/// Halts unless a request came before the promise to look was withdrawn;
/// the requests that are there afterwards.
#[inline(always)]
fn halt(cpu: &PerCpu, wanted: u32, timed: bool) -> u32 {
    insn::mask_irq();
    if cpu.request.stop_polling() & wanted == 0 {
        wfi(cpu, timed);
    }
    insn::unmask_irq();
    cpu.request.take(wanted)
}

/// `poll-wfi`: the two states of `arm_poll_idle` (H. Okanovic, 2024).
struct PollHalt<P> {
    pause: P,
    wanted: u32,
    limit: u64,
    timed: bool,
}

impl<P: Pause> PollHalt<P> {
    fn new(pause: P, wanted: u32, limit: u64, timed: bool) -> Self {
        Self {
            pause,
            wanted,
            limit,
            timed,
        }
    }
}

impl<P: Pause> Idle for PollHalt<P> {
    #[inline(always)]
    fn wait(&mut self, cpu: &PerCpu) -> u32 {
        loop {
            let mut taken = poll_for(&self.pause, cpu, self.wanted, self.limit, self.timed);
            if taken == 0 {
                taken = halt(cpu, self.wanted, self.timed);
            }
            if taken != 0 {
                return taken;
            }
        }
    }
}

/// `haltpoll`: the limit follows [`Guest`].
struct Haltpoll<P> {
    pause: P,
    wanted: u32,
    governor: Guest,
    timed: bool,
}

impl<P: Pause> Haltpoll<P> {
    fn new(pause: P, wanted: u32, limit: u64, timed: bool) -> Self {
        let mut tunables = Tunables::GUEST.scaled(|time| clock::ticks((time / 1000) as u32));
        if limit != 0 {
            tunables.max = limit;
            tunables.grow_start = tunables.grow_start.min(limit);
        }
        Self {
            pause,
            wanted,
            governor: Guest::new(tunables),
            timed,
        }
    }
}

impl<P: Pause> Idle for Haltpoll<P> {
    #[inline(always)]
    fn wait(&mut self, cpu: &PerCpu) -> u32 {
        loop {
            let limit = self.governor.limit();
            if limit != 0 {
                let taken = poll_for(&self.pause, cpu, self.wanted, limit, self.timed);
                self.governor.polled(taken != 0);
                if taken != 0 {
                    return taken;
                }
            }
            let start = clock::now();
            let taken = halt(cpu, self.wanted, self.timed);
            self.governor.halted(clock::now() - start);
            if taken != 0 {
                return taken;
            }
        }
    }
}

/// Waits for a task with the plainest means: between measurements.
pub fn park(cpu: &PerCpu) {
    Halt {
        wanted: RESCHED,
        timed: false,
    }
    .wait(cpu);
}
