// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws times: of a device, and from one request to the next.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use plan::Spread;
use sched::random::Random;
use sched::spread;

/// Seed that times are drawn from: `rouse.seed`.
static SEED: AtomicU64 = AtomicU64::new(1);

/// Number of wake-ups of the cell before the block.
static DONE: AtomicU64 = AtomicU64::new(0);

/// Makes the times of a block be drawn from `seed`, after `done` earlier wake-ups of its cell. The
/// first CPU does this before it posts the block, which orders it for the others.
pub fn draw_from(seed: u64, done: u32) {
    SEED.store(seed, Relaxed);
    DONE.store(done.into(), Relaxed);
}

/// Returns the random numbers for the times of stream `stream`: different in each block of a cell,
/// and the same in all cells.
pub fn random(stream: u64) -> Random {
    Random::at(SEED.load(Relaxed), stream, DONE.load(Relaxed))
}

/// Times that follow a cell's distribution.
pub struct Times {
    /// Random numbers for the draws.
    pub random: Random,
    /// Their distribution.
    pub spread: Spread,
    /// Their mean, ticks.
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
