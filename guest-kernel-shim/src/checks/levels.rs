// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the timers' interrupts follow the timers: they are level-sensitive
//! (DDI 0487K.a, D12.2.4), so one is pending while its timer's condition holds, and
//! for no other reason but that software set it (IHI 0069H, 4.1 and 12.11).
//!
//! Each is tried with either timer. IRQs are masked, and what is pending is
//! acknowledged by hand, so that it is seen exactly when it comes.

use aarch64_cpu::registers::{
    CNTP_CTL_EL0, CNTP_CVAL_EL0, CNTPCT_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, Readable, Writeable,
};
use arch::gic_cpu::SPURIOUS;
use arch::regs::ICC_CTLR_EL1;
use arch::{gic_cpu, insn};
use core::cell::Cell;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};
use gic::Redistributor;
use plan::Deliver;

use super::{Failure, ensure};
use crate::interrupts::{self, journal};
use crate::percpu::{self, PerCpu};
use crate::{clock, crew, hypervisor, start};

/// CNTx_CTL_EL0: ENABLE; ISTATUS.
const ENABLE: u64 = 1;
const EXPIRED: u64 = 1 << 2;
/// ICC_CTLR_EL1.EOImode.
const SPLIT: u64 = 1 << 1;

/// A timer of this CPU, and its interrupt.
#[derive(Clone, Copy)]
struct Timer {
    intid: u32,
    physical: bool,
}

impl Timer {
    fn both() -> [Self; 2] {
        let timer = &start::platform().timer;
        [(timer.virt, false), (timer.phys, true)].map(|(intid, physical)| Self { intid, physical })
    }

    fn other(self) -> Self {
        Self::both()[usize::from(!self.physical)]
    }

    fn bit(self) -> u32 {
        1 << self.intid
    }

    /// Has it expire in `ticks`.
    fn arm(self, ticks: u64) {
        if self.physical {
            CNTP_CVAL_EL0.set(CNTPCT_EL0.get() + ticks);
            CNTP_CTL_EL0.set(ENABLE);
        } else {
            CNTV_CVAL_EL0.set(clock::now() + ticks);
            CNTV_CTL_EL0.set(ENABLE);
        }
        insn::isb();
    }

    fn expired(self) -> bool {
        let control = if self.physical {
            CNTP_CTL_EL0.get()
        } else {
            CNTV_CTL_EL0.get()
        };
        control & EXPIRED != 0
    }

    /// Has it expire, and gives the interrupt controller the time to notice.
    fn raise(self) {
        self.arm(0);
        while !self.expired() {
            insn::yield_now();
        }
        pause();
    }

    /// Turns it off, and gives the interrupt controller the time to notice.
    fn lower(self) {
        if self.physical {
            CNTP_CTL_EL0.set(0);
        } else {
            CNTV_CTL_EL0.set(0);
        }
        insn::isb();
        pause();
    }

    fn enable(self) {
        redistributor().enable_all(self.bit());
    }

    fn disable(self) {
        redistributor().disable_all(self.bit());
    }

    fn pending(self) -> bool {
        redistributor().pending() & self.bit() != 0
    }

    fn active(self) -> bool {
        redistributor().active() & self.bit() != 0
    }

    /// Acknowledges it, which is pending; gives it the time to come.
    fn take(self) -> Result<(), Failure> {
        let got = Cell::new(SPURIOUS);
        clock::wait_for(|| {
            got.set(gic_cpu::acknowledge());
            got.get() != SPURIOUS
        });
        ensure(
            got.get() == self.intid,
            "it is not there to be acknowledged",
        )
    }
}

/// A moment in which nothing exits.
fn pause() {
    let end = clock::now() + clock::ticks(20);
    while clock::now() < end {
        insn::yield_now();
    }
}

fn redistributor() -> &'static Redistributor {
    interrupts::redistributor(PerCpu::this())
}

/// Fails if there is anything to acknowledge.
fn nothing() -> Result<(), Failure> {
    match gic_cpu::acknowledge() {
        SPURIOUS => Ok(()),
        intid => {
            gic_cpu::end(intid);
            Err("one came for which there is no reason any more")
        }
    }
}

/// Does `check` with either timer: IRQs masked, both timers off and their
/// interrupts enabled; and leaves none of it.
fn with_each(check: impl Fn(Timer) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut result = Ok(());
    for timer in Timer::both() {
        insn::mask_irq();
        journal(PerCpu::this()).clear();
        Timer::both().into_iter().for_each(Timer::enable);
        result = result.and_then(|()| check(timer)).and_then(|()| nothing());
        for timer in Timer::both() {
            timer.lower();
            timer.disable();
            redistributor().clear_pending(timer.bit());
            redistributor().clear_active(timer.bit());
        }
        insn::unmask_irq();
    }
    result
}

/// What a timer that was turned off left behind is gone.
pub fn gone_with_the_level() -> Result<(), Failure> {
    with_each(|timer| {
        timer.raise();
        ensure(timer.pending(), "not shown as pending")?;
        timer.lower();
        ensure(!timer.pending(), "shown as pending though its timer is off")?;
        nothing()?;
        // Nor is it taken.
        timer.raise();
        timer.lower();
        ensure(!timer.pending(), "pending again")?;
        insn::unmask_irq();
        pause();
        insn::mask_irq();
        ensure(journal(PerCpu::this()).len() == 0, "it was taken")
    })
}

/// The same where nothing but the acknowledge looks.
pub fn gone_without_a_look() -> Result<(), Failure> {
    with_each(|timer| {
        for _ in 0..3 {
            timer.raise();
            timer.lower();
            nothing()?;
        }
        // Behind another timer's, which is handled meanwhile.
        timer.other().raise();
        timer.raise();
        timer.lower();
        timer.other().take()?;
        timer.other().lower();
        gic_cpu::end(timer.other().intid);
        nothing()
    })
}

/// Enabled or not, what is read is the level, and it comes if it is high.
pub fn disabled_follows_the_level() -> Result<(), Failure> {
    with_each(|timer| {
        timer.raise();
        timer.disable();
        ensure(timer.pending(), "not shown as pending when disabled")?;
        nothing()?;
        timer.lower();
        ensure(!timer.pending(), "disabled, off, and shown as pending")?;
        timer.enable();
        nothing()?;
        timer.raise();
        timer.disable();
        timer.lower();
        timer.enable();
        nothing()?;
        timer.disable();
        timer.raise();
        ensure(timer.pending(), "not pending, as it was disabled before")?;
        timer.enable();
        timer.take()?;
        timer.lower();
        gic_cpu::end(timer.intid);
        Ok(())
    })
}

/// A level that stays high over the end of its interrupt makes the next one,
/// until it is low.
pub fn held_over_the_end() -> Result<(), Failure> {
    with_each(|timer| {
        for looks in [true, false] {
            timer.raise();
            for _ in 0..3 {
                timer.take()?;
                if looks {
                    ensure(timer.active(), "not shown as active")?;
                    ensure(timer.pending(), "not active and pending")?;
                }
                nothing()?;
                gic_cpu::end(timer.intid);
                pause();
            }
            timer.lower();
            ensure(!looks || !timer.pending(), "pending after its last end")?;
            nothing()?;
        }
        Ok(())
    })
}

/// Pending by software is pending, whatever the level is, until it is taken.
pub fn latched_by_software() -> Result<(), Failure> {
    with_each(|timer| {
        let latch = || redistributor().set_pending(timer.bit());
        let unlatch = || redistributor().clear_pending(timer.bit());
        latch();
        ensure(timer.pending(), "set pending and not shown")?;
        timer.take()?;
        ensure(timer.active(), "taken and not active")?;
        ensure(!timer.pending(), "taken and still pending")?;
        gic_cpu::end(timer.intid);
        nothing()?;
        // The level comes and goes, it stays; one acknowledge is for both.
        for both in [false, true] {
            latch();
            timer.raise();
            if !both {
                timer.lower();
            }
            ensure(timer.pending(), "gone with the level though set")?;
            timer.take()?;
            timer.lower();
            gic_cpu::end(timer.intid);
            nothing()?;
        }
        // While it is active, by the level or by software.
        for raised in [true, false] {
            if raised {
                timer.raise();
            } else {
                latch();
            }
            timer.take()?;
            timer.lower();
            latch();
            ensure(timer.pending() && timer.active(), "not active and pending")?;
            gic_cpu::end(timer.intid);
            timer.take()?;
            timer.raise();
            gic_cpu::end(timer.intid);
            timer.take()?;
            timer.lower();
            gic_cpu::end(timer.intid);
            nothing()?;
        }
        // Taken back by register, which a level does not heed.
        latch();
        unlatch();
        ensure(!timer.pending(), "taken back and pending")?;
        nothing()?;
        timer.raise();
        unlatch();
        ensure(timer.pending(), "a level that is high can be taken back")?;
        latch();
        timer.disable();
        timer.lower();
        ensure(timer.pending(), "gone when disabled, though set")?;
        timer.enable();
        timer.take()?;
        gic_cpu::end(timer.intid);
        nothing()
    })
}

/// The same rules where the end and the deactivation are two steps.
pub fn ended_in_two_steps() -> Result<(), Failure> {
    let split = |on: bool| {
        let control = ICC_CTLR_EL1.get() & !SPLIT;
        ICC_CTLR_EL1.set(control | if on { SPLIT } else { 0 });
        insn::isb();
    };
    with_each(|timer| {
        let split_ends = || {
            timer.raise();
            timer.take()?;
            gic_cpu::end(timer.intid);
            pause();
            nothing()?;
            ensure(timer.active(), "deactivated by its end")?;
            gic_cpu::deactivate(timer.intid);
            timer.take()?;
            timer.lower();
            gic_cpu::end(timer.intid);
            redistributor().set_pending(timer.bit());
            gic_cpu::deactivate(timer.intid);
            timer.take()?;
            gic_cpu::end(timer.intid);
            gic_cpu::deactivate(timer.intid);
            timer.raise();
            timer.lower();
            nothing()
        };
        split(true);
        let result = split_ends();
        split(false);
        result
    })
}

/// Waits once, IRQs masked; whether `timer` had expired by then.
fn sleeps_until(timer: Timer) -> bool {
    insn::wfi();
    timer.expired()
}

/// What is gone ends no wait: it lasts until the next reason to end it. That a
/// wait ends for none is allowed (DDI 0487K.a, D1.7.2), that each does is not
/// what one waits for. What is pending is read before, because a hypervisor may
/// not know of a timer that was turned off before it is asked.
pub fn gone_from_a_later_wait() -> Result<(), Failure> {
    with_each(|timer| {
        let raise = || timer.raise();
        ensure(waits_last(timer, raise)?, "it ended a later wait")?;
        let wait_for_it = || {
            timer.arm(clock::ticks(100));
            while !sleeps_until(timer) {}
        };
        let last = waits_last(timer, wait_for_it)?;
        ensure(last, "after it ended one, it ended a later wait")?;
        timer.arm(clock::ticks(100));
        while !sleeps_until(timer) {}
        timer.lower();
        ensure(!timer.pending(), "pending after a wait, its timer off")?;
        nothing()?;
        unmasked(timer)
    })
}

/// Whether any of some waits lasts until the other timer ends it, each after
/// `begin` has had `timer` expire.
fn waits_last(timer: Timer, begin: impl Fn()) -> Result<bool, Failure> {
    /// How often a wait may end for no reason.
    const TRIES: usize = 5;
    let next = timer.other();
    let mut last = false;
    for _ in 0..TRIES {
        begin();
        timer.lower();
        ensure(!timer.pending(), "pending before a wait, its timer off")?;
        next.arm(clock::ticks(500));
        last |= sleeps_until(next);
        next.lower();
        ensure(!next.pending(), "pending after a wait, its timer off")?;
    }
    Ok(last)
}

/// Waits with IRQs unmasked are ended by what is there, each once.
fn unmasked(timer: Timer) -> Result<(), Failure> {
    let taken = journal(PerCpu::this());
    taken.clear();
    for (count, timer) in [timer, timer.other(), timer].into_iter().enumerate() {
        timer.arm(clock::ticks(200));
        insn::unmask_irq();
        while taken.len() <= count && !timer.expired() {
            insn::wfi();
        }
        let came = clock::wait_for(|| taken.len() > count);
        insn::mask_irq();
        ensure(came, "it did not end an unmasked wait")?;
        ensure(taken.last() == Some(timer.intid), "another one came")?;
        timer.lower();
    }
    ensure(taken.len() == 3, "one came twice")
}

/// What another CPU reads of it is the level.
pub fn seen_from_another() -> Result<(), Failure> {
    /// How far the two are.
    static STEP: AtomicU32 = AtomicU32::new(0);
    const RAISED: u32 = 1;
    const SEEN: u32 = 2;
    const LOWERED: u32 = 3;
    const DONE: u32 = 4;
    fn reached(step: u32) -> bool {
        clock::wait_for(|| STEP.load(Acquire) >= step)
    }
    for enabled in [true, false] {
        STEP.store(0, Release);
        static ENABLED: AtomicBool = AtomicBool::new(false);
        ENABLED.store(enabled, Release);
        crew::on_second(|| {
            let _ = with_each(|timer| {
                if timer.physical {
                    return Ok(());
                }
                if !ENABLED.load(Acquire) {
                    timer.disable();
                }
                timer.raise();
                STEP.store(RAISED, Release);
                reached(SEEN);
                timer.lower();
                STEP.store(LOWERED, Release);
                reached(DONE);
                Ok(())
            });
        });
        let bit = Timer::both()[0].bit();
        let others = interrupts::redistributor(percpu::all()[1]);
        let pending = || others.pending() & bit != 0;
        let high = reached(RAISED) && pending();
        STEP.store(SEEN, Release);
        let low = reached(LOWERED) && !pending();
        STEP.store(DONE, Release);
        crew::wait_for_second();
        ensure(high, "another CPU does not see it pending")?;
        ensure(low, "another CPU sees it pending though its timer is off")?;
    }
    Ok(())
}

/// Whether interrupts are delivered directly.
static DIRECT: AtomicBool = AtomicBool::new(false);

/// Notes how they are delivered.
pub fn begin(direct: bool) {
    DIRECT.store(direct, Release);
}

/// Has them delivered the other way, where there are two.
fn turn_delivery() {
    if hypervisor::present() {
        let direct = !DIRECT.load(Acquire);
        hypervisor::set_deliver(match direct {
            true => Deliver::Direct,
            false => Deliver::Inject,
        });
        DIRECT.store(direct, Release);
    }
}

/// Whoever delivers, and also if that changes while it is pending.
pub fn handed_over() -> Result<(), Failure> {
    let before = DIRECT.load(Acquire);
    let result = with_each(hand_over);
    if DIRECT.load(Acquire) != before {
        turn_delivery();
    }
    result
}

fn hand_over(timer: Timer) -> Result<(), Failure> {
    let latch = || redistributor().set_pending(timer.bit());
    timer.raise();
    turn_delivery();
    ensure(timer.pending(), "lost by a change of the delivery")?;
    timer.lower();
    ensure(!timer.pending(), "kept by a change of the delivery")?;
    nothing()?;
    timer.raise();
    turn_delivery();
    timer.lower();
    nothing()?;
    for disabled in [false, true] {
        latch();
        turn_delivery();
        if disabled {
            timer.disable();
        }
        turn_delivery();
        ensure(timer.pending(), "what was set is lost")?;
        turn_delivery();
        timer.enable();
        timer.take()?;
        gic_cpu::end(timer.intid);
        nothing()?;
        turn_delivery();
    }
    Ok(())
}
