// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times that are drawn: of a device, and from one request to the next.

use plan::Spread;
use sched::random::Random;
use sched::spread;

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
