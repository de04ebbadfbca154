// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machine makes of the instructions that wait: tried out, because
//! nothing says so. Every trial is bounded by the [`alarm`](crate::alarm), or, where
//! interrupts are masked, by events that another CPU sends until it is over; the
//! wait's own books say what ended it, and [`settle`] when that is an answer.

use abi::KnobValue;
use arch::insn;
use arch::regs::{CNTKCTL_EL1, ISR_EL1};
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use wait::stream::{self, Stream};

use super::answer::{Answer, Verdict, settle};
use super::features;
use super::watch::{self, Deed, End, Wait};
use crate::{clock, hypervisor, percpu};

/// When the other CPU acts, microseconds.
const ACTION_US: u32 = 100;
/// A wait that is shorter did not wait, microseconds.
const AT_ONCE_US: u32 = 50;

/// An end that nothing which is tried explains.
const BY_OTHER: &str = "something else ended the wait";
/// A deed that leaves the wait too little time to show that it goes on.
const ACTED_LATE: &str = "the other CPU acted late";
/// An end that is later than it may be, and may be that of a CPU that was away.
const ENDED_LATE: &str = "the wait ended late";

fn action() -> u64 {
    clock::ticks(ACTION_US)
}

fn at_once(ticks: u64) -> bool {
    ticks < clock::ticks(AT_ONCE_US)
}

/// WFE with an empty event register waits.
///
/// Yes if the alarm ended it, no if it was over at once. A longer one that the
/// alarm did not end is a no-op whose CPU was away, or an event from elsewhere.
pub fn wfe_halts() -> Answer {
    settle(|bound| {
        let wait = Wait::watch(bound, insn::wfe);
        match wait.ended() {
            Err(why) => Verdict::Void(why),
            Ok(End::Alarm) => Verdict::Yes(wait.ticks()),
            Ok(End::Other) if at_once(wait.ticks()) => Verdict::No(wait.ticks()),
            Ok(End::Other) => Verdict::Void(BY_OTHER),
        }
    })
}

/// What a wait during which the second CPU acts shows of the deed, on a machine
/// whose WFE waits; `before` is what an end before the deed shows.
///
/// Yes if it was over after the deed and the alarm had not rung: nothing else is
/// there that would have ended it. No if the alarm ended it, and the deed had been
/// done long before.
fn by_deed(wait: &Wait, deed: Option<Deed>, before: Verdict) -> Verdict {
    match (wait.ended(), deed) {
        (Err(why), _) => Verdict::Void(why),
        (Ok(End::Other), None) => before,
        (Ok(End::Other), Some(_)) => Verdict::Yes(wait.ticks()),
        (Ok(End::Alarm), Some(deed)) if deed.until < wait.due - (wait.due - wait.start) / 2 => {
            Verdict::No(wait.ticks())
        }
        (Ok(End::Alarm), _) => Verdict::Void(ACTED_LATE),
    }
}

/// SEV of another CPU ends a WFE.
pub fn sev_wakes_wfe() -> Answer {
    settle(|bound| {
        let wait = || {
            Wait::watch(bound, || {
                watch::say();
                insn::wfe();
            })
        };
        let (wait, deed) = watch::beside(|| watch::act(action, insn::sev), wait);
        by_deed(&wait, deed, Verdict::Void(BY_OTHER))
    })
}

/// What the second CPU stores to.
#[repr(align(64))]
struct Line(AtomicU32);
static LINE: Line = Line(AtomicU32::new(0));

/// A store of another CPU to a line on which the monitor is armed ends a WFE,
/// and nothing else does before. An end before the store is certain, however
/// long it took.
pub fn monitor_wakes_wfe() -> Answer {
    settle(|bound| {
        let wait = || {
            Wait::watch(bound, || {
                watch::say();
                insn::load_exclusive(&LINE.0);
                insn::wfe();
            })
        };
        let store = || watch::act(action, || LINE.0.store(1, Release));
        let (wait, deed) = watch::beside(store, wait);
        insn::clrex();
        LINE.0.load(Acquire);
        by_deed(&wait, deed, Verdict::No(wait.ticks()))
    })
}

/// What a WFET is to wait of its bound, ticks: 100 us of the first. It grows with it,
/// so that where CPUs are late by ms there is a wait to which that is little.
fn deadline(bound: u64) -> u64 {
    bound / 20
}

/// WFET waits until its deadline.
///
/// No if it was over before, or if the alarm ended it. Yes if it was over soon
/// after; later it may have been a CPU that was away.
pub fn wfet_halts() -> Answer {
    if !features().wfxt {
        return Answer::NotRun("no FEAT_WFxT");
    }
    settle(|bound| {
        let asked = deadline(bound);
        let wait = Wait::watch(bound, || insn::wfet(clock::now() + asked));
        let ticks = wait.ticks();
        match wait.ended() {
            Err(why) => Verdict::Void(why),
            Ok(End::Alarm) => Verdict::No(ticks),
            Ok(End::Other) if ticks < 2 * asked => Verdict::of(ticks >= asked, ticks),
            Ok(End::Other) => Verdict::Void(ENDED_LATE),
        }
    })
}

/// A WFET that ran into its deadline leaves the event register set.
///
/// The first one has to have run into it. Yes if the second is over at once; no
/// if it was not over before its own deadline.
pub fn wfet_timeout_sets_event() -> Answer {
    if !features().wfxt {
        return Answer::NotRun("no FEAT_WFxT");
    }
    settle(|bound| {
        let asked = deadline(bound);
        let (mut first, mut second) = (0, 0);
        let wait = Wait::watch(bound, || {
            let begun = clock::now();
            insn::wfet(begun + asked);
            let start = clock::now();
            first = start - begun;
            insn::wfet(start + asked);
            second = clock::now() - start;
        });
        match wait.ended() {
            Err(why) => Verdict::Void(why),
            Ok(End::Alarm) => Verdict::Void(ENDED_LATE),
            Ok(End::Other) if first < asked => Verdict::Void(BY_OTHER),
            Ok(End::Other) if at_once(second) => Verdict::Yes(second),
            Ok(End::Other) if second >= asked => Verdict::No(second),
            Ok(End::Other) => Verdict::Void(BY_OTHER),
        }
    })
}

/// The stream that Linux asks for.
fn stream() -> Option<Stream> {
    Stream::nearest(100, clock::frequency(), features().ecv)
}

/// Whether WFE ends once per period of `stream`, which is on.
///
/// How long waits take does not tell: that of an emulator, which ends at once, takes
/// as long as its host does to let the CPU go on. But a stream ends waits at the
/// same phase of its period each time. So what is looked at is the time from the
/// end of a wait to that of the next. No if most are clearly less than a period, as no
/// delay makes them, or if the alarm had to end most waits; yes if all but one are
/// whole periods, with waits of one period, give or take one.
fn periodic(stream: Stream) -> Answer {
    const WAITS: usize = 8;
    let made = stream.period();
    settle(|bound| {
        let mut waits = [0; WAITS];
        let (mut alarms, mut short, mut whole) = (0, 0, 0);
        let mut last = match Wait::watch(bound, insn::wfe) {
            wait if wait.ended() == Ok(End::Other) => Some(wait.end),
            _ => None,
        };
        for ticks in &mut waits {
            let wait = Wait::watch(bound, insn::wfe);
            match wait.ended() {
                Err(why) => return Verdict::Void(why),
                Ok(End::Alarm) => alarms += 1,
                Ok(End::Other) => {
                    let passed = last.map_or(0, |last| wait.end - last);
                    let phase = passed % made;
                    short += usize::from(passed < made - made / 8);
                    whole += usize::from(phase <= made / 8 || phase >= made - made / 8);
                    last = Some(wait.end);
                }
            }
            *ticks = wait.ticks();
        }
        waits.sort_unstable();
        let median = waits[WAITS / 2];
        if alarms >= WAITS / 2 || short >= WAITS / 2 {
            Verdict::No(median)
        } else if short <= 1 && whole >= WAITS - 1 && median <= 2 * made {
            Verdict::Yes(median)
        } else {
            Verdict::Void(ENDED_LATE)
        }
    })
}

/// The event stream of EL1 ends a WFE once per period.
pub fn event_stream_period_ok() -> Answer {
    let Some(stream) = stream() else {
        return Answer::NotRun("the counter can't make 100 us");
    };
    let kept = CNTKCTL_EL1.get();
    CNTKCTL_EL1.set(kept & !stream::FIELDS | stream.fields());
    insn::isb();
    let answer = periodic(stream);
    CNTKCTL_EL1.set(kept);
    insn::isb();
    answer
}

/// The event stream of EL2 does so as well.
pub fn el2_event_stream_period_ok() -> Answer {
    let Some(stream) = stream().filter(|_| hypervisor::present()) else {
        return Answer::NotRun("needs EL2");
    };
    hypervisor::set(KnobValue::EventStream(stream.fields()));
    let answer = periodic(stream);
    hypervisor::set(KnobValue::EventStream(0));
    answer
}

/// An exception return sets the event register.
///
/// Yes if the WFE behind it is over at once, no if the alarm ended it.
pub fn eret_sets_event() -> Answer {
    settle(|bound| {
        let wait = Wait::watch(bound, || {
            crate::vectors::catching(|| {
                // SAFETY: the handler steps over it and returns; nothing changes.
                unsafe { core::arch::asm!("udf #0", options(nomem, nostack)) }
            });
            insn::wfe();
        });
        match wait.ended() {
            Err(why) => Verdict::Void(why),
            Ok(End::Alarm) => Verdict::No(wait.ticks()),
            Ok(End::Other) if at_once(wait.ticks()) => Verdict::Yes(wait.ticks()),
            Ok(End::Other) => Verdict::Void(BY_OTHER),
        }
    })
}

/// When the second CPU begins to send events that end a wait with interrupts
/// masked, ticks from when it began.
static RESCUE: AtomicU64 = AtomicU64::new(0);

/// A masked interrupt ends a WFE, which it need not.
///
/// Where it does not, the alarm is no bound. So another CPU sends events, from
/// well after the alarm was due and again and again until the wait is over: one
/// that comes before the wait is lost to it, and an emulator may lose another
/// (docs/fidelity.md). Yes if the wait was over with the alarm due and no event
/// sent: nothing else is there that would have ended it. No if it was over soon
/// after the first event, and the interrupt was pending then: where an emulator's timer is
/// late there was none to end it.
pub fn masked_irq_wakes_wfe() -> Answer {
    fn rescue() {
        watch::act(
            || RESCUE.load(Acquire),
            || {
                while !watch::is_over() {
                    insn::sev();
                    clock::pause(action());
                }
            },
        );
    }
    /// ISR_EL1.I: an IRQ is pending, masked or not (DDI 0487K.a, D23.2).
    const PENDING: u64 = 1 << 7;
    settle(|bound| {
        RESCUE.store(2 * bound, Release);
        let mut pending = false;
        insn::mask_irq();
        let wait = || {
            Wait::watch(bound, || {
                watch::say();
                insn::wfe();
                pending = ISR_EL1.get() & PENDING != 0;
            })
        };
        let (wait, deed) = watch::beside(rescue, wait);
        insn::unmask_irq();
        if !wait.began_long_before(wait.due) {
            return Verdict::Void("the alarm rang before the wait had begun");
        }
        match deed {
            _ if wait.end < wait.due => Verdict::Void(BY_OTHER),
            None => Verdict::Yes(wait.ticks()),
            Some(_) if !pending => Verdict::Void("the timer was late"),
            Some(deed) if wait.is_shortly_after(wait.end, deed.from) => Verdict::No(wait.ticks()),
            Some(_) => Verdict::Void(ENDED_LATE),
        }
    })
}

/// Whether there is a second CPU to act.
pub fn has_second() -> bool {
    percpu::online().count() > 1
}
