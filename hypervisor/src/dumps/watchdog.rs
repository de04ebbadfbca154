// SPDX-License-Identifier: MIT OR Apache-2.0
//! A watchdog over wake-ups: the guest shows where each vCPU counts what it received,
//! and EL2 looks there now and then. If no count moves, a wake-up was lost: the machine
//! stops and shows everything.
//!
//! It looks from the first CPU, on EL2's own timer, so that CPU has to be one
//! whose interrupts come to EL2.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use aarch64_cpu::registers::{CNTPCT_EL0, Readable};
use arch::insn;
use arch::regs::{CNTHP_CTL_EL2, CNTHP_CVAL_EL2};

use crate::cpu::percpu::PerCpu;
use crate::dumps::{dump, watch_points};
use crate::machine::vm::vm;

/// CNTHP_CTL_EL2.ENABLE.
const TIMER_ON: u64 = 1;

/// Ticks between two looks; 0 is off.
static PERIOD: AtomicU64 = AtomicU64::new(0);
/// When the next look is due, ticks of the physical count.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// Sum of all progress at the last look.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Watches the points at guest physical `address`, one per vCPU, every
/// `period` ticks; 0 ends it. `None` if they are not in RAM.
pub fn watch(address: u64, period: u64) -> Option<()> {
    watch_points::place(address)?;
    LAST.store(u64::MAX, Relaxed);
    NEXT.store(CNTPCT_EL0.get() + period, Relaxed);
    PERIOD.store(period, Release);
    rearm(None);
    Some(())
}

/// Sets this CPU's EL2 timer for `deadline`, or for the next look if it has
/// one, or off.
pub fn rearm(deadline: Option<u64>) {
    let period = PERIOD.load(Acquire);
    let mine = period != 0 && core::ptr::eq(PerCpu::this(), vm().cpus[0]);
    let look = mine.then(|| NEXT.load(Relaxed));
    // Whichever comes first: a guest that waits with deadlines again and again
    // must not put the look off.
    match deadline.into_iter().chain(look).min() {
        Some(at) => {
            CNTHP_CVAL_EL2.set(at);
            CNTHP_CTL_EL2.set(TIMER_ON);
        }
        None => CNTHP_CTL_EL2.set(0),
    }
    insn::isb();
}

/// EL2's timer has expired: looks, if this CPU is the one that does.
pub fn expired(cpu: &PerCpu) {
    let period = PERIOD.load(Relaxed);
    let mine = period != 0 && core::ptr::eq(cpu, vm().cpus[0]);
    let due = mine && CNTPCT_EL0.get() >= NEXT.load(Relaxed);
    if due {
        NEXT.store(CNTPCT_EL0.get() + period, Relaxed);
    }
    rearm(None);
    if !due {
        return;
    }
    let sum = watch_points::progress();
    if LAST.swap(sum, Relaxed) == sum {
        dump::fail(format_args!("wake-up lost:{}", watch_points::Stuck));
    }
}
