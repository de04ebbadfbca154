// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches for lost wake-ups: the guest names the addresses at which vCPUs count their received events, and EL2
//! reads the counts periodically. If no count changes, a wake-up was lost: EL2 stops the machine and prints
//! everything.
//!
//! The first CPU does the checks, when [`own_timer`] expires, so EL2 has to take the interrupts of that
//! CPU.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::cpu::percpu::PerCpu;
use crate::dumps::own_timer::NEVER;
use crate::dumps::{dump, own_timer, watch_points};
use crate::machine::vm::vm;

/// Ticks between two checks; 0 if there are no checks.
static PERIOD: AtomicU64 = AtomicU64::new(0);
/// When the next check is due, in ticks of the physical count.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// Sum of the counts of all vCPUs at the last check.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Checks the watch points at guest physical `address`, one per vCPU, every `period` ticks; period
/// 0 ends the checks. Returns `None` if the points are not in RAM.
pub fn set_watch(address: u64, period: u64) -> Option<()> {
    watch_points::set_points(address)?;
    LAST.store(u64::MAX, Relaxed);
    NEXT.store(own_timer::count_after(period), Relaxed);
    PERIOD.store(period, Release);
    own_timer::review_next_check(PerCpu::this());
    Some(())
}

/// Returns the time of `cpu`'s next check.
pub fn next_check(cpu: &PerCpu) -> u64 {
    if has_to_check(cpu) {
        NEXT.load(Relaxed)
    } else {
        NEVER
    }
}

/// Whether `cpu` is the CPU that checks.
fn has_to_check(cpu: &PerCpu) -> bool {
    PERIOD.load(Acquire) != 0 && core::ptr::eq(cpu, vm().cpus[0])
}

/// Whether `cpu` has to check now; true only once per check.
pub fn is_due(cpu: &PerCpu, now: u64) -> bool {
    let due = now >= next_check(cpu);
    if due {
        NEXT.store(wait::target::after(now, PERIOD.load(Relaxed)), Relaxed);
    }
    due
}

/// Stops the machine if no count has changed since the last check.
pub fn stop_if_lost() {
    let sum = watch_points::total_events();
    if LAST.swap(sum, Relaxed) == sum {
        dump::fail(format_args!("wake-up lost:{}", watch_points::Stuck));
    }
}
