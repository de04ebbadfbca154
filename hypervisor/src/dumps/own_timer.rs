// SPDX-License-Identifier: MIT OR Apache-2.0
//! EL2's own timer (CNTHP), one on each CPU. The timer ends a wait that has a deadline, and brings the CPU to
//! EL2 to check for failures at the times that [`watchdog`] and [`deadline`] set. The timer also ends the
//! slice of a vCPU that has a neighbour, and the neighbour's slice (`neighbour::turn`). No other module sets
//! it.
//!
//! The timer interrupts a guest whatever the guest masks, because the interrupt is routed to EL2. A guest that owns its
//! interrupts takes this interrupt like its own, and passes it on to EL2 ([`abi::Call::Timer`]). Until the timer
//! expires, it costs nothing.

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTPCT_EL0, Readable};
use arch::insn;
use arch::regs::{CNTHP_CTL_EL2, CNTHP_CVAL_EL2};

use crate::cpu::percpu::PerCpu;
use crate::dumps::{deadline, watchdog};

/// CNTHP_CTL_EL2.ENABLE.
const TIMER_ON: u64 = 1;
/// A count that the counter never reaches.
pub const NEVER: u64 = u64::MAX;

/// Returns the physical count `ticks` from now, or [`NEVER`].
pub fn count_after(ticks: u64) -> u64 {
    wait::target::after(CNTPCT_EL0.get(), ticks)
}

/// Sets this CPU's timer for the earliest of three times: `until`, the CPU's next check, and the end of its slice.
/// Turns the timer off if none is set. A guest that waits with deadlines again and again does not delay the check.
pub fn rearm(until: Option<u64>) {
    let cpu = PerCpu::this();
    let first = cpu.look.load(Relaxed).min(cpu.slice_end.load(Relaxed));
    match until.map_or(first, |until| until.min(first)) {
        NEVER => CNTHP_CTL_EL2.set(0),
        at => {
            CNTHP_CVAL_EL2.set(at);
            CNTHP_CTL_EL2.set(TIMER_ON);
        }
    }
    insn::isb();
}

/// Decides when `cpu`, which is the running CPU, next checks for failures.
#[cold]
#[inline(never)]
pub fn review_next_check(cpu: &PerCpu) {
    let look = watchdog::next_check(cpu).min(deadline::next_check(cpu));
    cpu.look.store(look, Relaxed);
    rearm(None);
}

/// Handles the expiry of the timer of `cpu`, the running CPU.
#[cold]
#[inline(never)]
pub fn handle_expiry(cpu: &PerCpu) {
    let now = CNTPCT_EL0.get();
    if now < cpu.look.load(Relaxed) {
        // The timer was set for a wait, or has been set again meanwhile.
        return rearm(None);
    }
    let lost = watchdog::is_due(cpu, now);
    // The next check is decided first: the calls below may not return, and other CPUs rely on this CPU's next check.
    review_next_check(cpu);
    deadline::end_if_over(cpu, now);
    if lost {
        watchdog::stop_if_lost();
    }
}
