// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the timers' interrupts follow the timers. These interrupts are level-sensitive (DDI 0487K.a, D12.2.4): one
//! is pending while its timer's condition holds, and otherwise only if software made it pending (IHI 0069H, 4.1 and 12.11).
//!
//! Each check is made with each timer. IRQs are masked, and the checks themselves acknowledge
//! pending interrupts, so that each interrupt is seen exactly when it comes.

mod delivery;
mod timer;
mod waits;

pub use delivery::{kept_over_delivery_switch, note_delivery};
pub use timer::{Timer, acknowledge, for_each_timer, none_due, redistributor};
pub use waits::gone_from_a_later_wait;

use arch::regs::ICC_CTLR_EL1;
use arch::{gic_cpu, insn};
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};

use super::outcome::{Failure, ensure};
use guest_kernel_shim::interrupts::{self, journal};
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::{clock, workers};
use timer::spin_briefly;

/// ICC_CTLR_EL1.EOImode.
const SPLIT: u64 = 1 << 1;

/// Checks that the interrupt of a timer is no longer pending after the timer was turned off.
pub fn gone_with_the_level() -> Result<(), Failure> {
    for_each_timer(|timer| {
        timer.raise();
        ensure(timer.pending(), "not shown as pending")?;
        timer.lower();
        ensure(!timer.pending(), "shown as pending though its timer is off")?;
        none_due()?;
        // The interrupt must not be taken either.
        timer.raise();
        timer.lower();
        ensure(!timer.pending(), "pending again")?;
        insn::unmask_irq();
        spin_briefly();
        insn::mask_irq();
        ensure(journal(PerCpu::this()).count() == 0, "it was taken")
    })
}

/// Checks that the interrupt is not taken even if no read of its state precedes the acknowledge.
pub fn gone_without_a_look() -> Result<(), Failure> {
    for_each_timer(|timer| {
        for _ in 0..3 {
            timer.raise();
            timer.lower();
            none_due()?;
        }
        // The other timer's interrupt is taken first, and this timer's line changes while that interrupt is
        // handled.
        timer.other().raise();
        timer.raise();
        timer.lower();
        timer.other().acknowledge()?;
        timer.other().lower();
        gic_cpu::end(timer.other().intid);
        none_due()
    })
}

/// Checks that a read returns the level, enabled or not, and that a raised interrupt is taken once it is enabled.
pub fn disabled_follows_the_level() -> Result<(), Failure> {
    for_each_timer(|timer| {
        timer.raise();
        timer.disable();
        ensure(timer.pending(), "not shown as pending when disabled")?;
        none_due()?;
        timer.lower();
        ensure(!timer.pending(), "disabled, off, and shown as pending")?;
        timer.enable();
        none_due()?;
        timer.raise();
        timer.disable();
        timer.lower();
        timer.enable();
        none_due()?;
        timer.disable();
        timer.raise();
        ensure(timer.pending(), "not pending, as it was disabled before")?;
        timer.enable();
        timer.acknowledge()?;
        timer.lower();
        gic_cpu::end(timer.intid);
        Ok(())
    })
}

/// Checks that a level that stays high after the end of its interrupt causes further interrupts
/// until the level is low.
pub fn held_over_the_end() -> Result<(), Failure> {
    for_each_timer(|timer| {
        for looks in [true, false] {
            timer.raise();
            for _ in 0..3 {
                timer.acknowledge()?;
                if looks {
                    ensure(timer.active(), "not shown as active")?;
                    ensure(timer.pending(), "not active and pending")?;
                }
                none_due()?;
                gic_cpu::end(timer.intid);
                spin_briefly();
            }
            timer.lower();
            ensure(!looks || !timer.pending(), "pending after its last end")?;
            none_due()?;
        }
        Ok(())
    })
}

/// Checks that the virtual timer, which handlers of this guest set, interrupts again if it expires before its handler ends
/// the interrupt.
pub fn expired_before_the_end() -> Result<(), Failure> {
    /// How often the handler sets the timer again.
    const AGAIN: u32 = 3;
    static LEFT: AtomicU32 = AtomicU32::new(0);
    fn set_again(_: &PerCpu, intid: u32) {
        if let Some(left) = LEFT.load(Acquire).checked_sub(1) {
            LEFT.store(left, Release);
            let timers = Timer::both().into_iter();
            timers
                .filter(|timer| timer.intid == intid)
                .for_each(Timer::raise);
        }
    }
    for_each_timer(|timer| {
        if timer.physical {
            return Ok(());
        }
        LEFT.store(AGAIN, Release);
        interrupts::set_listener(Some(set_again));
        timer.raise();
        insn::unmask_irq();
        // This wait does not access the interrupt controller: an access could make the controller look at the level.
        let taken = || journal(PerCpu::this()).count();
        clock::wait_at_most(clock::us_to_ticks(200_000), || {
            taken() == AGAIN as usize + 1
        });
        insn::mask_irq();
        interrupts::set_listener(None);
        ensure(taken() == AGAIN as usize + 1, "not taken again")
    })
}

/// Checks that an interrupt that software made pending stays pending, whatever the level, until it is taken.
pub fn latched_by_software() -> Result<(), Failure> {
    for_each_timer(|timer| {
        let latch = || redistributor().set_pending(timer.bit());
        let unlatch = || redistributor().clear_pending(timer.bit());
        latch();
        ensure(timer.pending(), "set pending and not shown")?;
        timer.acknowledge()?;
        ensure(timer.active(), "taken and not active")?;
        ensure(!timer.pending(), "taken and still pending")?;
        gic_cpu::end(timer.intid);
        none_due()?;
        // The level rises and falls, but the pending state stays; one acknowledge serves both level and pending state.
        for both in [false, true] {
            latch();
            timer.raise();
            if !both {
                timer.lower();
            }
            ensure(timer.pending(), "gone with the level though set")?;
            timer.acknowledge()?;
            timer.lower();
            gic_cpu::end(timer.intid);
            none_due()?;
        }
        // The interrupt is made pending while it is active, by the level or by software.
        for raised in [true, false] {
            if raised {
                timer.raise();
            } else {
                latch();
            }
            timer.acknowledge()?;
            timer.lower();
            latch();
            ensure(timer.pending() && timer.active(), "not active and pending")?;
            gic_cpu::end(timer.intid);
            timer.acknowledge()?;
            timer.raise();
            gic_cpu::end(timer.intid);
            timer.acknowledge()?;
            timer.lower();
            gic_cpu::end(timer.intid);
            none_due()?;
        }
        // The pending state is cleared through a register, which does not affect a level.
        latch();
        unlatch();
        ensure(!timer.pending(), "taken back and pending")?;
        none_due()?;
        timer.raise();
        unlatch();
        ensure(timer.pending(), "a level that is high can be taken back")?;
        latch();
        timer.disable();
        timer.lower();
        ensure(timer.pending(), "gone when disabled, though set")?;
        timer.enable();
        timer.acknowledge()?;
        gic_cpu::end(timer.intid);
        none_due()
    })
}

/// Sets ICC_CTLR_EL1.EOImode.
pub fn set_eoi_mode(on: bool) {
    let control = ICC_CTLR_EL1.get() & !SPLIT;
    ICC_CTLR_EL1.set(control | if on { SPLIT } else { 0 });
    insn::isb();
}

/// Checks that the rules also hold if the priority drop and the deactivation are two steps.
pub fn ended_in_two_steps() -> Result<(), Failure> {
    for_each_timer(|timer| {
        let split_ends = || {
            timer.raise();
            timer.acknowledge()?;
            gic_cpu::end(timer.intid);
            spin_briefly();
            none_due()?;
            ensure(timer.active(), "deactivated by its end")?;
            gic_cpu::deactivate(timer.intid);
            timer.acknowledge()?;
            timer.lower();
            gic_cpu::end(timer.intid);
            redistributor().set_pending(timer.bit());
            gic_cpu::deactivate(timer.intid);
            timer.acknowledge()?;
            gic_cpu::end(timer.intid);
            gic_cpu::deactivate(timer.intid);
            timer.raise();
            timer.lower();
            none_due()
        };
        set_eoi_mode(true);
        let result = split_ends();
        set_eoi_mode(false);
        result
    })
}

/// Checks that another CPU that reads the state sees the level.
pub fn seen_from_another() -> Result<(), Failure> {
    /// The step that the two CPUs have reached.
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
        workers::run_on_2nd(|| {
            let _ = for_each_timer(|timer| {
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
        workers::wait_for_second();
        ensure(high, "another CPU does not see it pending")?;
        ensure(low, "another CPU sees it pending though its timer is off")?;
    }
    Ok(())
}
