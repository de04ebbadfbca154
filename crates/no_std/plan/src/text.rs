// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan as boot arguments, and back.

use core::fmt;

pub use crate::error::Error;
use crate::value::{read_number, read_switch};
use crate::{PASSES, PREFIX, Plan, Shard, magnitude};

/// The most wake-ups per cell: a bucket of the histogram counts up to 2^32.
const MAX_ITERATIONS: u32 = 1_000_000_000;
/// Longest time of a cell, in milliseconds: an hour.
const MAX_CELL_MS: u32 = 3_600_000;

impl Plan {
    /// Names of a plan's arguments besides its dimensions.
    pub const OTHERS: &'static [&'static str] = &[
        "stages",
        "iterations",
        "max-iterations",
        "cell-ms",
        "shard",
        "part",
        "raw",
        "compact",
        "cycles",
        "assume-caches",
        "event-loses-irq",
    ];

    /// Sets dimension `key` to the comma-separated `values`, or one of
    /// [`Self::OTHERS`]. `all` means every word except the members of a family like
    /// `governor:menu`; `governor:all` means those members.
    ///
    /// # Errors
    /// Returns an [`Error`] that names the mistake.
    pub fn set<'a>(&mut self, key: &'a str, values: &'a str) -> Result<(), Error<'a>> {
        match key {
            "stages" => self.stages.read(key, values, ())?,
            // `iterations` asks for exactly that number; `max-iterations` allows fewer.
            "iterations" | "max-iterations" => {
                self.iterations = read_number(key, values, PASSES, MAX_ITERATIONS)?;
                self.settle = key == "max-iterations";
            }
            "cell-ms" => self.cell_ms = Some(read_number(key, values, 0, MAX_CELL_MS)?),
            "shard" => self.shard = read_shard(values)?,
            "part" => self.part = read_shard(values)?,
            "raw" => self.raw = read_switch(key, values)?,
            "compact" => self.compact = read_switch(key, values)?,
            "cycles" => self.cycles = read_switch(key, values)?,
            "assume-caches" => self.assume_caches = read_switch(key, values)?,
            "event-loses-irq" => self.event_loses_irq = read_switch(key, values)?,
            _ => {
                return self
                    .lists
                    .set(key, values)
                    .unwrap_or_else(|| Err(Error::unknown_key(key)));
            }
        }
        Ok(())
    }
}

fn read_shard(word: &str) -> Result<Shard, Error<'_>> {
    let (index, of) = word.split_once('/').unwrap_or((word, ""));
    // If the word is not a number, 1 is as near as any other number.
    let within = |word, max: u32| {
        let value = magnitude(word).unwrap_or(1).clamp(1, max.into());
        u32::try_from(value).unwrap_or(max)
    };
    let parts = within(of, Shard::MOST);
    let nearest = Shard {
        index: within(index, parts),
        of: parts,
    };
    let (index, of): (Option<u32>, Option<u32>) = (index.parse().ok(), of.parse().ok());
    if (index, of) == (Some(nearest.index), Some(nearest.of)) {
        Ok(nearest)
    } else {
        Err(Error::Shard { word, nearest })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// Prints the differences from the default, in the form that
/// [`Arguments::parse`](crate::Arguments::parse) reads.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lists.print_arguments(f)?;
        self.stages.print_argument(f, "stages")?;
        let iterations = if self.settle {
            "max-iterations"
        } else {
            "iterations"
        };
        write!(f, "{PREFIX}{iterations}={}", self.iterations)?;
        if let Some(ms) = self.cell_ms {
            write!(f, " {PREFIX}cell-ms={ms}")?;
        }
        for (name, part) in [("shard", self.shard), ("part", self.part)] {
            if part != Shard::WHOLE {
                write!(f, " {PREFIX}{name}={part}")?;
            }
        }
        let switches = [
            ("compact", self.compact),
            ("raw", self.raw),
            ("cycles", self.cycles),
            ("assume-caches", self.assume_caches),
            ("event-loses-irq", self.event_loses_irq),
        ];
        let on = switches.into_iter().filter(|(_, on)| *on);
        on.map(|(key, _)| key)
            .try_for_each(|key| write!(f, " {PREFIX}{key}"))
    }
}
