// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times that are drawn: of a device, and from one request to the next.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use plan::Spread;
use sched::random::Random;
use sched::spread;

/// Seed that times are drawn from: `rouse.seed`.
static SEED: AtomicU64 = AtomicU64::new(1);

/// How many wake-ups of the cell came before the block.
static DONE: AtomicU64 = AtomicU64::new(0);

/// Has the times of a block drawn from `seed`, when `done` wake-ups of its cell came
/// before it. The first CPU does it before it posts the block, which orders it for
/// the others.
pub fn draw_from(seed: u64, done: u32) {
    SEED.store(seed, Relaxed);
    DONE.store(done.into(), Relaxed);
}

/// Returns the random numbers for the times of stream `stream`: others in each block of a cell, the
/// same in all cells.
pub fn random(stream: u64) -> Random {
    Random::at(SEED.load(Relaxed), stream, DONE.load(Relaxed))
}

/// Times that follow a cell's distribution.
pub struct Times {
    /// Random numbers that they are drawn from.
    pub random: Random,
    /// How they are distributed.
    pub spread: Spread,
    /// Their mean, ticks.
    pub mean: u64,
}

impl Times {
    /// The next one, ticks.
    pub fn draw(&mut self) -> u64 {
        match self.spread {
            Spread::Fixed => self.mean,
            Spread::Uniform => spread::uniform(self.mean, self.random.draw()),
            Spread::Exponential => spread::exponential(self.mean, self.random.draw()),
        }
    }
}
