// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests what the machine's wait instructions do, which no register describes. Every trial is bounded
//! by the [`alarm`](crate::alarm) or, if interrupts are masked, by events that another CPU sends until
//! the trial is over. The record of the wait shows how the wait ended, and [`fidelity`] judges it.

use abi::KnobValue;
use arch::insn;
use arch::regs::{CNTKCTL_EL1, IRQ_PENDING, ISR_EL1};
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use fidelity::{End, Verdict};
use wait::stream::{self, Stream};

use super::answer::{Answer, repeat_trial};
use super::watch;
use crate::features::features;
use crate::{clock, hypervisor, percpu};

/// Time after which the other CPU acts, in microseconds.
const ACTION_US: u32 = 100;
/// Reason why a wait that ended too late gives no answer.
const ENDED_LATE: &str = "the wait ended late";

fn act_delay() -> u64 {
    clock::us_to_ticks(ACTION_US)
}

/// Tests whether WFE waits when the event register is empty.
pub fn wfe_halts() -> Answer {
    repeat_trial(|bound| fidelity::wfe(&watch::watch_wait(bound, insn::wfe)))
}

/// Tests whether a SEV on another CPU ends a WFE.
pub fn sev_wakes_wfe() -> Answer {
    repeat_trial(|bound| {
        let wait = || {
            watch::watch_wait(bound, || {
                watch::announce_wait();
                insn::wfe();
            })
        };
        let (wait, action) =
            watch::run_with_second(|| watch::act_during_wait(act_delay, insn::sev), wait);
        fidelity::by_action(&wait, action, fidelity::UNEXPLAINED)
    })
}

/// The line that the second CPU stores to.
#[repr(align(64))]
struct CacheLine(AtomicU32);
static LINE: CacheLine = CacheLine(AtomicU32::new(0));

/// Tests whether a store by another CPU to a line on which the monitor is armed ends a WFE, and nothing ends
/// the WFE earlier. If the WFE ends before the store, the answer is certainly no, however long the WFE took.
pub fn monitor_wakes_wfe() -> Answer {
    repeat_trial(|bound| {
        let wait = || {
            watch::watch_wait(bound, || {
                watch::announce_wait();
                insn::load_exclusive(&LINE.0);
                insn::wfe();
            })
        };
        let store = || watch::act_during_wait(act_delay, || LINE.0.store(1, Release));
        let (wait, action) = watch::run_with_second(store, wait);
        insn::clrex();
        LINE.0.load(Acquire);
        fidelity::by_action(&wait, action, Verdict::No(wait.ticks()))
    })
}

/// Tests whether WFET waits until its deadline.
pub fn wfet_halts() -> Answer {
    if !features().wfxt {
        return Answer::NotRun("no FEAT_WFxT");
    }
    repeat_trial(|bound| {
        let asked = fidelity::deadline(bound);
        let wait = watch::watch_wait(bound, || insn::wfet(clock::now() + asked));
        fidelity::wfet(&wait, asked)
    })
}

/// Tests whether a WFET that has reached its deadline leaves the event register set.
pub fn wfet_timeout_sets_event() -> Answer {
    if !features().wfxt {
        return Answer::NotRun("no FEAT_WFxT");
    }
    repeat_trial(|bound| {
        let asked = fidelity::deadline(bound);
        let (mut first, mut second) = (0, 0);
        let wait = watch::watch_wait(bound, || {
            let begun = clock::now();
            insn::wfet(begun + asked);
            let start = clock::now();
            first = start - begun;
            insn::wfet(start + asked);
            second = clock::now() - start;
        });
        fidelity::timeout_is_event(&wait, asked, first, second)
    })
}

/// Returns the event stream that Linux uses.
fn linux_stream() -> Option<Stream> {
    Stream::nearest(100, clock::frequency(), features().ecv)
}

/// Whether WFE ends once per period of `stream`, which is on.
///
/// The lengths of waits do not show this: an emulator's WFE that ends at once takes as long as the emulator's host
/// takes to let the CPU continue. But a stream ends all waits at one phase of its period. So this measures the times
/// between ends of waits. The answer is no if at least half of them are clearly less than a period, which no delay can
/// cause, or if the alarm had to end at least half of the waits. The answer is yes if at most one time is not a whole
/// number of periods, at most one is clearly less than a period, and the median wait takes at most two periods.
fn has_period(stream: Stream) -> Answer {
    const WAITS: usize = 8;
    let made = stream.period();
    repeat_trial(|bound| {
        let mut waits = [0; WAITS];
        let (mut alarms, mut short, mut whole) = (0, 0, 0);
        let mut last = match watch::watch_wait(bound, insn::wfe) {
            wait if wait.end_cause() == Ok(End::Other) => Some(wait.end),
            _ => None,
        };
        for ticks in &mut waits {
            let wait = watch::watch_wait(bound, insn::wfe);
            match wait.end_cause() {
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
        let median = hist::of_sorted(&waits, 500).copied().unwrap_or(0);
        if alarms >= WAITS / 2 || short >= WAITS / 2 {
            Verdict::No(median)
        } else if short <= 1 && whole >= WAITS - 1 && median <= 2 * made {
            Verdict::Yes(median)
        } else {
            Verdict::Void(ENDED_LATE)
        }
    })
}

/// Tests whether the event stream of EL1 ends a WFE once per period.
pub fn event_stream_period_ok() -> Answer {
    let Some(stream) = linux_stream() else {
        return Answer::NotRun("the counter can't make 100 us");
    };
    let kept = CNTKCTL_EL1.get();
    CNTKCTL_EL1.set(kept & !stream::FIELDS | stream.fields());
    insn::isb();
    let answer = has_period(stream);
    CNTKCTL_EL1.set(kept);
    insn::isb();
    answer
}

/// Tests whether the event stream of EL2 ends a WFE once per period.
pub fn el2_event_stream_period_ok() -> Answer {
    let Some(stream) = linux_stream().filter(|_| hypervisor::exists()) else {
        return Answer::NotRun("needs EL2");
    };
    hypervisor::set_knob(KnobValue::EventStream(stream.fields()));
    let answer = has_period(stream);
    hypervisor::set_knob(KnobValue::EventStream(0));
    answer
}

/// Tests whether an exception return sets the event register.
pub fn eret_sets_event() -> Answer {
    repeat_trial(|bound| {
        let wait = watch::watch_wait(bound, || {
            crate::vectors::catch_exception(|| {
                // SAFETY: the handler steps over the instruction and returns, and nothing changes.
                unsafe { core::arch::asm!("udf #0", options(nomem, nostack)) }
            });
            insn::wfe();
        });
        fidelity::first_event(&wait)
    })
}

/// How long after the start of a wait with masked interrupts the second CPU begins to send events
/// that end the wait, in ticks.
static RESCUE: AtomicU64 = AtomicU64::new(0);

/// Tests whether a masked interrupt ends a WFE, although it need not.
///
/// On a machine where it does not, the alarm does not bound the wait. So another CPU sends events repeatedly, from well
/// after the time of the alarm until the wait is over. One event would not be enough: the wait may consume an earlier
/// one, and an emulator may lose an event (docs/fidelity.md).
pub fn masked_irq_wakes_wfe() -> Answer {
    fn rescue() {
        watch::act_during_wait(
            || RESCUE.load(Acquire),
            || {
                while !watch::is_wait_over() {
                    insn::sev();
                    clock::pause(act_delay());
                }
            },
        );
    }
    repeat_trial(|bound| {
        RESCUE.store(2 * bound, Release);
        let mut pending = false;
        insn::mask_irq();
        let wait = || {
            watch::watch_wait(bound, || {
                watch::announce_wait();
                insn::wfe();
                pending = ISR_EL1.get() & IRQ_PENDING != 0;
            })
        };
        let (wait, action) = watch::run_with_second(rescue, wait);
        insn::unmask_irq();
        wait.by_masked(action, pending)
    })
}

/// Whether there is a second CPU that can act.
pub fn has_second_cpu() -> bool {
    percpu::online().count() > 1
}
