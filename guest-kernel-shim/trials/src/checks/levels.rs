// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the timers' interrupts follow the timers: they are level-sensitive (DDI 0487K.a, D12.2.4), so one is
//! pending while its timer's condition holds, and otherwise only if software made it so (IHI 0069H, 4.1 and 12.11).
//!
//! Each check is made with each timer. IRQs are masked, and the checks themselves acknowledge
//! pending interrupts, so that each interrupt is seen exactly when it comes.

mod delivery;
mod timer;
mod waits;

pub use delivery::{begin, handed_over};
pub use timer::{Timer, nothing, redistributor, with_each};
pub use waits::gone_from_a_later_wait;

use arch::regs::ICC_CTLR_EL1;
use arch::{gic_cpu, insn};
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};

use super::outcome::{Failure, ensure};
use guest_kernel_shim::interrupts::{self, journal};
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::{clock, workers};
use timer::pause;

/// ICC_CTLR_EL1.EOImode.
const SPLIT: u64 = 1 << 1;

/// Checks that the interrupt of a timer that was turned off is gone.
pub fn gone_with_the_level() -> Result<(), Failure> {
    with_each(|timer| {
        timer.raise();
        ensure(timer.pending(), "not shown as pending")?;
        timer.lower();
        ensure(!timer.pending(), "shown as pending though its timer is off")?;
        nothing()?;
        // The interrupt is not taken either.
        timer.raise();
        timer.lower();
        ensure(!timer.pending(), "pending again")?;
        insn::unmask_irq();
        pause();
        insn::mask_irq();
        ensure(journal(PerCpu::this()).count() == 0, "it was taken")
    })
}

/// Checks that this also holds if only the acknowledge reads the state.
pub fn gone_without_a_look() -> Result<(), Failure> {
    with_each(|timer| {
        for _ in 0..3 {
            timer.raise();
            timer.lower();
            nothing()?;
        }
        // The other timer's interrupt comes first, and this timer's line changes while that
        // interrupt is handled.
        timer.other().raise();
        timer.raise();
        timer.lower();
        timer.other().take()?;
        timer.other().lower();
        gic_cpu::end(timer.other().intid);
        nothing()
    })
}

/// Checks that a read returns the level, whether the interrupt is enabled or not, and that it comes if that is high.
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

/// Checks that a level that stays high beyond the end of its interrupt causes the next interrupt,
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

/// Checks that an interrupt that software made pending stays so, whatever the level, until it is taken.
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
        // The level comes and goes, but the pending state stays; one acknowledge serves level and pending state.
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
        // The interrupt is made pending while it is active, by the level or by software.
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
        // The pending state is cleared through a register, which does not affect a level.
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

/// Sets ICC_CTLR_EL1.EOImode.
pub fn split(on: bool) {
    let control = ICC_CTLR_EL1.get() & !SPLIT;
    ICC_CTLR_EL1.set(control | if on { SPLIT } else { 0 });
    insn::isb();
}

/// Checks that the rules also hold if the end and the deactivation are two steps.
pub fn ended_in_two_steps() -> Result<(), Failure> {
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

/// Checks that another CPU that reads the state finds the level.
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
        workers::on_second(|| {
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
        workers::wait_for_second();
        ensure(high, "another CPU does not see it pending")?;
        ensure(low, "another CPU sees it pending though its timer is off")?;
    }
    Ok(())
}
