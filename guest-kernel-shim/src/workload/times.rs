// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws times: how long a device takes, and the time from one request to the next.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use plan::Spread;
use sched::random::Random;
use sched::spread;

/// Seed from which times are drawn: `rouse.seed`.
static SEED: AtomicU64 = AtomicU64::new(1);

/// Number of wake-ups of the cell before the block.
static DONE: AtomicU64 = AtomicU64::new(0);

/// Sets the seed from which the times of a block are drawn, after `done` earlier wake-ups of its
/// cell. The first CPU does this before it posts the block, so the other CPUs see it.
pub fn set_seed(seed: u64, done: u32) {
    SEED.store(seed, Relaxed);
    DONE.store(done.into(), Relaxed);
}

/// Returns the random numbers for the times of stream `stream`. The numbers differ between the
/// blocks of a cell, but are the same in all cells.
pub fn random_stream(stream: u64) -> Random {
    Random::at(SEED.load(Relaxed), stream, DONE.load(Relaxed))
}

/// Times that follow a cell's distribution.
pub struct Times {
    /// Random numbers for the draws.
    pub random: Random,
    /// The distribution of the times.
    pub spread: Spread,
    /// The mean of the times, in ticks.
    pub mean: u64,
}

impl Times {
    /// Draws the next time, in ticks.
    pub fn draw(&mut self) -> u64 {
        match self.spread {
            Spread::Fixed => self.mean,
            Spread::Uniform => spread::uniform(self.mean, self.random.draw()),
            Spread::Exponential => spread::exponential(self.mean, self.random.draw()),
        }
    }
}
