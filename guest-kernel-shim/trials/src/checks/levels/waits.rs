// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a pending interrupt ends a wait, and that a withdrawn interrupt never does.

use arch::insn;

use super::super::outcome::{Failure, ensure};
use super::timer::{Timer, for_each_timer, none_due};
use guest_kernel_shim::clock;
use guest_kernel_shim::interrupts::journal;
use guest_kernel_shim::percpu::PerCpu;

/// Waits once, with IRQs masked; returns whether `timer` had expired by then.
fn sleeps_until(timer: Timer) -> bool {
    insn::wfi();
    timer.has_expired()
}

/// Checks that a withdrawn interrupt ends no wait: the wait lasts until there is another reason to end it. A wait may
/// end without a reason (DDI 0487K.a, D1.7.2), but no code relies on such an end. The pending state is read first,
/// because a hypervisor may notice only at that read that a timer was turned off.
pub fn gone_from_a_later_wait() -> Result<(), Failure> {
    for_each_timer(|timer| {
        let raise = || timer.raise();
        ensure(waits_last(timer, raise)?, "it ended a later wait")?;
        let wait_for_it = || {
            timer.arm(clock::us_to_ticks(100));
            while !sleeps_until(timer) {}
        };
        let last = waits_last(timer, wait_for_it)?;
        ensure(last, "after it ended one, it ended a later wait")?;
        timer.arm(clock::us_to_ticks(100));
        while !sleeps_until(timer) {}
        timer.lower();
        ensure(!timer.pending(), "pending after a wait, its timer off")?;
        none_due()?;
        ends_one_wait(timer)
    })
}

/// Waits several times; before each wait, `begin` makes `timer` expire. Returns whether any of
/// these waits lasts until the guest's other timer ends it.
fn waits_last(timer: Timer, begin: impl Fn()) -> Result<bool, Failure> {
    /// Number of times that a wait may end for no reason.
    const TRIES: usize = 5;
    let next = timer.other();
    let mut last = false;
    for _ in 0..TRIES {
        begin();
        timer.lower();
        ensure(!timer.pending(), "pending before a wait, its timer off")?;
        next.arm(clock::us_to_ticks(500));
        last |= sleeps_until(next);
        next.lower();
        ensure(!next.pending(), "pending after a wait, its timer off")?;
    }
    Ok(last)
}

/// Checks that an interrupt that is taken once IRQs are unmasked ends exactly one wait. IRQs are masked from
/// the check to the wait: otherwise an interrupt in between would be taken, and nothing would end the wait.
fn ends_one_wait(timer: Timer) -> Result<(), Failure> {
    let taken = journal(PerCpu::this());
    taken.clear();
    for (count, timer) in [timer, timer.other(), timer].into_iter().enumerate() {
        timer.arm(clock::us_to_ticks(200));
        while taken.count() <= count && !timer.has_expired() {
            insn::wfi();
            insn::unmask_irq();
            insn::isb();
            insn::mask_irq();
        }
        insn::unmask_irq();
        let came = clock::wait_for(|| taken.count() > count);
        insn::mask_irq();
        ensure(came, "it did not end an unmasked wait")?;
        ensure(taken.last() == Some(timer.intid), "another one came")?;
        timer.lower();
    }
    ensure(taken.count() == 3, "one came twice")
}
