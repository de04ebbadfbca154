// SPDX-License-Identifier: MIT OR Apache-2.0
//! EL2's own timer (CNTHP), of which each CPU has one. It ends a wait that has a deadline, and
//! brings the CPU here to look whether something is wrong: [`watchdog`] and [`deadline`] say
//! when. It also ends the slice of a vCPU that has a neighbour, and the neighbour's
//! (`neighbour::turn`). Nothing else sets it.
//!
//! It interrupts a guest whatever that masks, because its interrupt is routed to EL2. A guest
//! that owns its interrupts gets it as one of its own, and hands it on
//! ([`abi::Call::Timer`]). Until the timer expires it costs nothing.

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTPCT_EL0, Readable};
use arch::insn;
use arch::regs::{CNTHP_CTL_EL2, CNTHP_CVAL_EL2};

use crate::cpu::percpu::PerCpu;
use crate::dumps::{deadline, watchdog};

/// CNTHP_CTL_EL2.ENABLE.
const TIMER_ON: u64 = 1;
/// A time that does not come.
pub const NEVER: u64 = u64::MAX;

/// The tick of the physical count that comes so many after now, or [`NEVER`].
pub fn after(ticks: u64) -> u64 {
    wait::target::after(CNTPCT_EL0.get(), ticks)
}

/// Sets this CPU's timer for `until`, or for its next look or the end of its slice if that is
/// earlier, or off. A guest that waits with deadlines again and again does not put the look off.
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

/// Decides when `cpu`, which is the one that runs, looks next.
#[cold]
#[inline(never)]
pub fn review(cpu: &PerCpu) {
    let look = watchdog::next(cpu).min(deadline::next(cpu));
    cpu.look.store(look, Relaxed);
    rearm(None);
}

/// The timer of `cpu`, which is the one that runs, has expired.
#[cold]
#[inline(never)]
pub fn expired(cpu: &PerCpu) {
    let now = CNTPCT_EL0.get();
    if now < cpu.look.load(Relaxed) {
        // It was for a wait, or was set again meanwhile.
        return rearm(None);
    }
    let lost = watchdog::is_due(cpu, now);
    // First of all: what follows may not come back, and others rely on the next look.
    review(cpu);
    deadline::look(cpu, now);
    if lost {
        watchdog::look();
    }
}
