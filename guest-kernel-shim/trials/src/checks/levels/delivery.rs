// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a change of the delivery keeps the level, and the state that software has set.

use arch::gic_cpu;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};
use plan::Deliver;

use super::super::outcome::{Failure, ensure};
use super::timer::{Timer, for_each_timer, none_due, redistributor};
use guest_kernel_shim::hypervisor;

/// Whether interrupts are delivered directly.
static DIRECT: AtomicBool = AtomicBool::new(false);

/// Records how interrupts are delivered.
pub fn note_delivery(direct: bool) {
    DIRECT.store(direct, Release);
}

/// Switches to the other way of delivery, if there are two ways.
fn switch_delivery() {
    if hypervisor::exists() {
        let direct = !DIRECT.load(Acquire);
        hypervisor::set_deliver(match direct {
            true => Deliver::Direct,
            false => Deliver::Inject,
        });
        DIRECT.store(direct, Release);
    }
}

/// Checks that the state is kept with each delivery, and also if the delivery changes while an interrupt is pending.
pub fn kept_over_delivery_switch() -> Result<(), Failure> {
    let before = DIRECT.load(Acquire);
    let result = for_each_timer(check_switch);
    if DIRECT.load(Acquire) != before {
        switch_delivery();
    }
    result
}

fn check_switch(timer: Timer) -> Result<(), Failure> {
    let latch = || redistributor().set_pending(timer.bit());
    timer.raise();
    switch_delivery();
    ensure(timer.pending(), "lost by a change of the delivery")?;
    timer.lower();
    ensure(!timer.pending(), "kept by a change of the delivery")?;
    none_due()?;
    timer.raise();
    switch_delivery();
    timer.lower();
    none_due()?;
    for disabled in [false, true] {
        latch();
        switch_delivery();
        if disabled {
            timer.disable();
        }
        switch_delivery();
        ensure(timer.pending(), "what was set is lost")?;
        switch_delivery();
        timer.enable();
        timer.acknowledge()?;
        gic_cpu::end(timer.intid);
        none_due()?;
        switch_delivery();
    }
    Ok(())
}
