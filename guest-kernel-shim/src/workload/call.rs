// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls a function on other CPUs and waits until it has run, like `smp_call_function_single`. The
//! function records when it ran.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use arch::insn;
use wait::request::{CALL, RESCHED};

use crate::clock;
use crate::percpu::PerCpu;

/// The calls of a block, on separate cache lines.
#[repr(C, align(64))]
struct Calls {
    /// Number of calls that were served.
    served: AtomicU32,
    /// When the last call began, in ticks.
    at: AtomicU64,
    expected: Expected,
}

/// Number of calls that each receiver gets before it is done. All receivers read this number, and nothing changes it
/// meanwhile: on a line that they write to, the number would move from cache to cache.
#[repr(align(64))]
struct Expected(AtomicU32);

static CALLS: Calls = Calls {
    served: AtomicU32::new(0),
    at: AtomicU64::new(0),
    expected: Expected(AtomicU32::new(0)),
};

/// Prepares for `count` calls to each receiver; from the last one on, each call also wakes the
/// receiver's task.
pub fn prepare_calls(count: u32) {
    CALLS.served.store(0, Relaxed);
    CALLS.expected.0.store(count, Release);
    for cpu in crate::percpu::online() {
        cpu.served.store(0, Relaxed);
    }
}

/// Serves the request if it is still there; the interrupt handler calls this.
#[inline(always)]
pub fn serve_request(cpu: &PerCpu) {
    if cpu.request.take(CALL) != 0 {
        called_function(cpu);
    }
}

/// The function that is called.
#[inline(always)]
pub fn called_function(cpu: &PerCpu) {
    CALLS.at.store(clock::now(), Relaxed);
    let served = cpu.served.load(Relaxed) + 1;
    cpu.served.store(served, Relaxed);
    if served >= CALLS.expected.0.load(Acquire) {
        // This was the last call, so this CPU's task can continue.
        cpu.request.wake(RESCHED, false);
        cpu.interrupted.store(true, Relaxed);
    }
    CALLS.served.fetch_add(1, AcqRel);
}

/// Waits until `total` calls have been served, and returns when the last of them began.
#[inline(always)]
pub fn wait_for_calls(total: u32) -> u64 {
    while CALLS.served.load(Acquire) != total {
        insn::yield_now();
    }
    CALLS.at.load(Relaxed)
}
