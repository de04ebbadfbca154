// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the two timers of EL1. The handler masks an expired timer, so each expiry causes one interrupt.

use aarch64_cpu::registers::{
    CNTP_CTL_EL0, CNTP_CVAL_EL0, CNTPCT_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, CNTVCT_EL0, Readable,
    Writeable,
};
use arch::insn;

use crate::soak::books;
use guest_kernel_shim::clock;
use guest_kernel_shim::percpu::PerCpu;
use sched::random::Random;

/// Index of the virtual timer among a CPU's channels.
pub const VIRTUAL: usize = 0;
/// Index of the physical timer.
pub const PHYSICAL: usize = 1;

/// Longest time to the expiry, in microseconds. If the timer counts the host's time, a CPU executes little code
/// in this time, so expiries in the past also occur.
const LONGEST_US: u32 = 50;

/// CNTV_CTL_EL0, CNTP_CTL_EL0: ENABLE.
const ENABLE: u64 = 1;

/// Makes `timer` expire after a while, or at once.
pub fn arm(me: &PerCpu, timer: usize, random: &mut Random) {
    let after = random.below(clock::us_to_ticks(LONGEST_US));
    let merge = random.one_in(16);
    // IRQs are masked, because an expiry between recording and setting would be mistaken for the new expiry.
    insn::mask_irq();
    if books::books_of(me).timer[timer].note_send(merge) {
        if timer == VIRTUAL {
            CNTV_CVAL_EL0.set(CNTVCT_EL0.get() + after);
            CNTV_CTL_EL0.set(ENABLE);
        } else {
            CNTP_CVAL_EL0.set(CNTPCT_EL0.get() + after);
            CNTP_CTL_EL0.set(ENABLE);
        }
        insn::isb();
    }
    insn::unmask_irq();
}

/// Stops `timer`; the interrupt of an earlier expiry may still arrive.
pub fn stop(me: &PerCpu, timer: usize) {
    insn::mask_irq();
    books::books_of(me).timer[timer].note_withdrawal();
    if timer == VIRTUAL {
        CNTV_CTL_EL0.set(0);
    } else {
        CNTP_CTL_EL0.set(0);
    }
    insn::isb();
    insn::unmask_irq();
}
