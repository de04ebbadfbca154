// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tasks of a block draw at random: the same again in each run of the same seed.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release};

use sched::random::Random;

/// The seed, and the samples that the cell had before the block.
static SEED: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

/// Begins a block of a cell that has `done` samples, before any of its tasks.
pub fn begin(seed: u64, done: u32) {
    SEED.store(seed, Release);
    DONE.store(done.into(), Release);
}

/// What `stream` of the block draws from: cells that are compared draw the same.
pub fn stream(stream: usize) -> Random {
    Random::at(SEED.load(Acquire), stream as u64, DONE.load(Acquire))
}
