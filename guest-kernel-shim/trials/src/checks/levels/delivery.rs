// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a change of the delivery keeps the level, and the state that software has set.

use arch::gic_cpu;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};
use plan::Deliver;

use super::super::outcome::{Failure, ensure};
use super::timer::{Timer, nothing, redistributor, with_each};
use guest_kernel_shim::hypervisor;

/// Whether interrupts are delivered directly.
static DIRECT: AtomicBool = AtomicBool::new(false);

/// Notes how interrupts are delivered.
pub fn begin(direct: bool) {
    DIRECT.store(direct, Release);
}

/// Switches to the other way of delivery, if there are two ways.
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

/// Checks that the state is kept with each delivery, and also if the delivery changes while an interrupt is pending.
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
