// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the progress and the request of the soak.

use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use guest_kernel_shim::clock;
use guest_kernel_shim::percpu::PerCpu;
use plan::SoakFault;
use platform::MAX_CPUS;
use sched::random::Random;

use super::violation::SEED;

/// Number of wake-ups between two quiescent points.
pub const EPOCH: u64 = 2000;
/// The requested fault of the guest, as its index in the list + 1; 0 if none.
pub static FAULT: AtomicU32 = AtomicU32::new(0);
pub static OPERATIONS: AtomicBool = AtomicBool::new(false);
/// The running epoch, counted from 0, and the number of epochs.
pub static EPOCHS: AtomicU64 = AtomicU64::new(0);
pub static NUMBER: AtomicU64 = AtomicU64::new(0);
/// Number of steps that each CPU has begun.
pub static STEPS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
pub static COUNTS_INSTRUCTIONS: AtomicBool = AtomicBool::new(false);

/// Whether `fault` is requested.
pub fn is_requested(fault: SoakFault) -> bool {
    FAULT.load(Relaxed) == 1 + fault as u32
}

/// Waits until `reached` returns true, with a time limit that suffices on any machine; returns whether
/// it did. Where a tick is an instruction, no CPU is slow: a CPU that is late has not been woken.
pub fn wait_for(reached: impl Fn() -> bool) -> bool {
    let limit = if COUNTS_INSTRUCTIONS.load(Relaxed) {
        clock::us_to_ticks(200_000)
    } else {
        20 * clock::frequency()
    };
    clock::wait_at_most(limit, reached)
}

/// Returns the number of this CPU's next step, and the generator of its draws.
pub fn next(me: &PerCpu) -> (u64, Random) {
    let step = STEPS[me.index].fetch_add(1, Relaxed);
    let seed = SEED.load(Relaxed);
    (step, Random::at(seed, me.index as u64, step))
}

/// Whether this epoch has operations; some epochs have none, because an operation's interrupt could
/// hide the loss of a wake-up.
pub fn has_operations() -> bool {
    OPERATIONS.load(Relaxed) && NUMBER.load(Acquire) % 4 != 3
}
