// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times that are drawn: of a device, and from one request to the next.

use plan::Spread;
use sched::random::Random;
use sched::spread;
use spin::once::Once;

/// What times are drawn from: `rouse.seed`.
static SEED: Once<u64> = Once::new();

/// Has all times drawn from `seed`, from now on.
pub fn draw_from(seed: u64) {
    SEED.call_once(|| seed);
}

/// What the times of stream `stream` are drawn from: the same in every block of every
/// cell.
pub fn random(stream: u64) -> Random {
    Random::at(SEED.get().copied().unwrap_or(1), stream, 0)
}

/// Times that are distributed as a cell says.
pub struct Times {
    /// What they are drawn from.
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
