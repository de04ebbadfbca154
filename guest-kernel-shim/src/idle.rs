// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs each way of waiting for a request, chosen by its name.
//!
//! The loops come from [`wait::idle`] and are model-checked; this CPU runs them as a
//! [`Target`](wait::target::Target). The loops `spin`, `yield`, `wfe`, `wfe-sev` and `wfet` differ
//! in their pause instruction. Where a governor chooses among idle states, the loop is in
//! [`governor`].

mod forced_poll;
mod governor;
pub mod limited_poll;
mod pause;

use plan::Wait;
use wait::governor::Tunables;
use wait::idle::{Busy, Halt, Haltpoll, Idle as _, Poll, PollHalt};
use wait::poll::{Counted, Pause};
use wait::request::RESCHED;

use self::pause::{By, Spin, Wfe, WfeSev, Wfet, Yield};
use crate::clock;
use crate::percpu::PerCpu;
use crate::setting::{Body, Idle, Setting};
use crate::target::{Barred, BehindBarrier, Noting};

/// Runs `body` with the way of waiting that `setting` names.
pub fn run_body(setting: &Setting, body: &mut impl Body) {
    let &Setting { wanted, timed, .. } = setting;
    match setting.wait {
        Wait::Busy => body.run(Busy { wanted }),
        Wait::Spin if !setting.hands_over => poll_without_limit(setting, By(Spin), body),
        Wait::Spin | Wait::Yield => poll_without_limit(setting, By(Yield), body),
        Wait::Wfe => poll_without_limit(setting, By(Wfe), body),
        Wait::WfeSev => poll_without_limit(setting, By(WfeSev), body),
        Wait::Wfet => poll_without_limit(setting, By(Wfet), body),
        Wait::Wfi => halt_by(setting, Halt { wanted, timed }, body),
        Wait::PollWfi | Wait::Haltpoll if setting.wfxt => poll_then_halt(setting, By(Wfet), body),
        Wait::PollWfi | Wait::Haltpoll if setting.stream => poll_then_halt(setting, By(Wfe), body),
        Wait::PollWfi | Wait::Haltpoll => poll_then_halt(setting, By(Yield), body),
        Wait::Governed(_) => run_by_governor(setting, body),
    }
}

fn poll_without_limit(setting: &Setting, pause: impl Pause, body: &mut impl Body) {
    if setting.timed {
        body.run(new_poll(setting, Counted::new(pause)));
    } else {
        body.run(new_poll(setting, pause));
    }
}

fn new_poll<P: Pause>(setting: &Setting, pause: P) -> Poll<P> {
    let &Setting {
        wanted,
        bound,
        timed,
        ..
    } = setting;
    Poll {
        pause,
        wanted,
        bound,
        timed,
    }
}

/// The function is cold, so that the compiler lays out the loops of the other ways without it.
#[cold]
#[inline(never)]
fn run_by_governor(setting: &Setting, body: &mut impl Body) {
    match setting {
        _ if setting.wfxt => governor::run_body(setting, By(Wfet), body),
        _ if setting.stream => governor::run_body(setting, By(Wfe), body),
        _ => governor::run_body(setting, By(Yield), body),
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
    match setting.wait {
        Wait::Haltpoll => {
            let idle = Haltpoll::new(pause, wanted, haltpoll_tunables(limit), timed);
            halt_by(setting, idle, body);
        }
        _ => {
            let idle = PollHalt {
                pause,
                wanted,
                limit,
                timed,
            };
            halt_by(setting, idle, body);
        }
    }
}

/// Runs `body` with an idle loop that halts, after a barrier if `setting` asks for one.
fn halt_by<I>(setting: &Setting, idle: I, body: &mut impl Body)
where
    I: Idle,
    I: for<'c> wait::idle::Idle<Barred<'c, PerCpu>>,
    I: for<'c> wait::idle::Idle<Barred<'c, Noting>>,
{
    if setting.barrier {
        halt_with_barrier(idle, body);
    } else {
        body.run(idle);
    }
}

/// The function is cold, so that the loops of the other ways are laid out without it.
#[cold]
#[inline(never)]
fn halt_with_barrier<I>(idle: I, body: &mut impl Body)
where
    I: for<'c> wait::idle::Idle<Barred<'c, PerCpu>>,
    I: for<'c> wait::idle::Idle<Barred<'c, Noting>>,
{
    body.run(BehindBarrier(idle));
}

/// Returns the tunables of `haltpoll` in ticks, with the poll limit, if there is one, as their maximum.
fn haltpoll_tunables(limit: u64) -> Tunables {
    let ticks = |time| clock::us_to_ticks((time / 1000) as u32);
    Tunables::GUEST.scaled(ticks).with_max(limit)
}

/// Waits for a task by the simplest means, between measurements.
pub fn park(cpu: &PerCpu) {
    Halt {
        wanted: RESCHED,
        timed: false,
    }
    .wait(cpu);
}
