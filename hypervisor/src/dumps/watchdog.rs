// SPDX-License-Identifier: MIT OR Apache-2.0
//! A watchdog over wake-ups: the guest shows where each vCPU counts what it received,
//! and EL2 looks there now and then. If no count moves, a wake-up was lost: the machine
//! stops and shows everything.
//!
//! It looks from the first CPU, on [`own_timer`], so that CPU has to be one
//! whose interrupts come to EL2.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::cpu::percpu::PerCpu;
use crate::dumps::own_timer::NEVER;
use crate::dumps::{dump, own_timer, watch_points};
use crate::machine::vm::vm;

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
    NEXT.store(own_timer::after(period), Relaxed);
    PERIOD.store(period, Release);
    own_timer::review(PerCpu::this());
    Some(())
}

/// When `cpu` has to look next.
pub fn next(cpu: &PerCpu) -> u64 {
    if looks(cpu) {
        NEXT.load(Relaxed)
    } else {
        NEVER
    }
}

/// Whether `cpu` looks.
fn looks(cpu: &PerCpu) -> bool {
    PERIOD.load(Acquire) != 0 && core::ptr::eq(cpu, vm().cpus[0])
}

/// Whether `cpu` has to look now, which it says once.
pub fn is_due(cpu: &PerCpu, now: u64) -> bool {
    let due = now >= next(cpu);
    if due {
        NEXT.store(wait::target::after(now, PERIOD.load(Relaxed)), Relaxed);
    }
    due
}

/// Stops the machine if nothing has moved since the last look.
pub fn look() {
    let sum = watch_points::progress();
    if LAST.swap(sum, Relaxed) == sum {
        dump::fail(format_args!("wake-up lost:{}", watch_points::Stuck));
    }
}
