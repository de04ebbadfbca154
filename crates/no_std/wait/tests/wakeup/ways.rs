// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways of waiting that are checked: the loops of `wait::idle`, and combinations of them that
//! guests use.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use wait::governor::Tunables;
use wait::idle::{self, Busy, Halt, Haltpoll, Idle, Limited, Poll, PollHalt};

use crate::machine::{Looks, LoomCpu};
use crate::protocol::{Protocol, TickCheck};

/// A way of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// [`Busy`].
    Busy,
    /// [`Poll`].
    Poll,
    /// [`Halt`].
    Wfi,
    /// [`PollHalt`].
    PollWfi,
    /// [`Haltpoll`].
    Haltpoll,
    /// [`Poll`] for the first wait, [`Halt`] for later waits: the behaviour of a CPU that parks
    /// after a measurement.
    PollThenWfi,
    /// Like [`Self::PollThenWfi`] with [`Limited`], which may end without a request.
    LimitedThenWfi,
    /// Like [`Self::PollThenWfi`] with [`idle::poll_while`]: a CPU that is made to poll at first, but
    /// not later.
    ForcedThenWfi,
    /// Like [`Self::PollThenWfi`] with [`idle::relax_while`].
    RelaxedThenWfi,
    /// [`idle::halt_unless`] the tick came, as on a CPU with a governor.
    WfiOrTick,
}

/// Number of ticks that a poll lasts: it looks twice.
const LIMIT: u64 = 1;
/// Tunables that lead to poll limits of 0 and 1. A halt that takes no time makes the limit grow; a long halt makes it
/// shrink.
const TUNABLES: Tunables = Tunables {
    max: 2,
    grow: 2,
    grow_start: 1,
    shrink: 2,
};

impl Way {
    /// Returns the loop, which ends with a request of `wanted`.
    pub fn idle<P: Protocol>(self, wanted: u32) -> Box<dyn Idle<LoomCpu<P>>> {
        let endless = Looks { endless: true };
        let limited = Looks { endless: false };
        let halt = Halt {
            wanted,
            timed: false,
        };
        let poll = Poll {
            pause: endless,
            wanted,
            bound: 0,
            timed: false,
        };
        match self {
            Self::Busy => Box::new(Busy { wanted }),
            Self::Poll => Box::new(poll),
            Self::Wfi => Box::new(halt),
            Self::PollWfi => Box::new(PollHalt {
                pause: limited,
                wanted,
                limit: LIMIT,
                timed: false,
            }),
            Self::Haltpoll => Box::new(Haltpoll::new(limited, wanted, TUNABLES, false)),
            Self::PollThenWfi => Box::new(Then::new(poll, halt)),
            Self::LimitedThenWfi => {
                let first = Limited {
                    pause: limited,
                    wanted,
                    limit: LIMIT,
                };
                Box::new(Then::new(first, halt))
            }
            Self::ForcedThenWfi => Box::new(Then::new(Forced { wanted }, halt)),
            Self::RelaxedThenWfi => Box::new(Then::new(Relaxed { wanted }, halt)),
            Self::WfiOrTick => Box::new(HaltOrTick { wanted }),
        }
    }

    /// Whether a waker may find the target polling in one of the first `waits` waits.
    pub fn polls(self, waits: usize) -> bool {
        match self {
            Self::Busy | Self::Wfi | Self::WfiOrTick => false,
            // The limit of the first wait is 0.
            Self::Haltpoll => waits > 1,
            _ => true,
        }
    }

    /// Whether polls may reach a limit in one of the first `waits` waits.
    pub fn times_out(self, waits: usize) -> bool {
        let limited = matches!(self, Self::PollWfi | Self::Haltpoll | Self::LimitedThenWfi);
        limited && self.polls(waits)
    }

    /// Whether the target may halt in one of the first `waits` waits.
    pub fn halts(self, waits: usize) -> bool {
        match self {
            Self::Busy | Self::Poll => false,
            Self::PollThenWfi => waits > 1,
            _ => true,
        }
    }
}

/// Uses one way for the first wait, and another way for all later waits.
struct Then<First, Others> {
    first: Option<First>,
    others: Others,
}

impl<First, Others> Then<First, Others> {
    fn new(first: First, others: Others) -> Self {
        Self {
            first: Some(first),
            others,
        }
    }
}

impl<P, First: Idle<LoomCpu<P>>, Others: Idle<LoomCpu<P>>> Idle<LoomCpu<P>>
    for Then<First, Others>
{
    fn wait(&mut self, cpu: &LoomCpu<P>) -> u32 {
        match self.first.take() {
            Some(mut first) => first.wait(cpu),
            None => self.others.wait(cpu),
        }
    }
}

/// Polls for [`LIMIT`], like a CPU that is made to poll.
struct Forced {
    wanted: u32,
}

impl<P: Protocol> Idle<LoomCpu<P>> for Forced {
    fn wait(&mut self, cpu: &LoomCpu<P>) -> u32 {
        let looks = Looks { endless: false };
        idle::poll_while(cpu, &looks, self.wanted, LIMIT, || false)
    }
}

/// Polls until its switch is off; another thread turns it off. (A count of looks would not work: loom's
/// yield lets the waker run to its end before the second look.)
struct Relaxed {
    wanted: u32,
}

impl<P: Protocol> Idle<LoomCpu<P>> for Relaxed {
    fn wait(&mut self, cpu: &LoomCpu<P>) -> u32 {
        let switch = Arc::new(AtomicBool::new(true));
        let on = Arc::clone(&switch);
        loom::thread::spawn(move || switch.store(false, Ordering::Relaxed));
        idle::relax_while(cpu, self.wanted, || on.load(Ordering::Relaxed))
    }
}

/// Halts until a request or the tick comes.
struct HaltOrTick {
    wanted: u32,
}

impl<P: Protocol> Idle<LoomCpu<P>> for HaltOrTick {
    fn wait(&mut self, cpu: &LoomCpu<P>) -> u32 {
        loop {
            let early = P::TICK == TickCheck::BeforeMask;
            let early = early.then(|| cpu.has_ticked());
            let ticked = || early.unwrap_or_else(|| cpu.has_ticked());
            let (taken, _) = idle::halt_unless(cpu, self.wanted, ticked, || idle::wfi(cpu, false));
            let taken = taken | cpu.take_tick();
            if taken != 0 {
                return taken;
            }
        }
    }
}
