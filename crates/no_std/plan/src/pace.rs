// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the wake-ups of a cell are divided among its passes, and when it ends.
//!
//! A cell ends when it is [settled](End::Settled), has its
//! [samples](End::Samples), or has used up its [budget](End::Budget) of time.
//!
//! The budget never depends on measured values but on how long a measurement takes, and
//! it applies before the wake-ups, not among them: a first short block measures the cost
//! of one, and that decides once how many each pass makes. So all passes have equally
//! many, forwards and backwards ones alike, and no sample is taken or dropped because of
//! its value. Only a cell whose cost grows later makes its later passes shorter.

use crate::{Cell, End, Plan, Workload};

/// Interleaved passes over the cells; the wake-ups of a cell are divided
/// among them. Passes run forwards, backwards, backwards, forwards
/// ([`is_forwards`]), so that a drift of the machine meets every cell alike.
pub const PASSES: u32 = 4;

/// Whether pass `pass` runs the cells forwards.
#[must_use]
pub const fn is_forwards(pass: u32) -> bool {
    matches!(pass % 4, 0 | 3)
}

/// Passes after which a cell can be found settled: as many forwards as backwards.
pub const BALANCED: u32 = 2;

/// Wake-ups of the block that measures the cost of one: with one of each other pass enough for
/// a median, whatever each costs.
const FIRST: u32 = 20;

/// Time that a cell may take unless some is named, milliseconds of the guest, where
/// it counts instructions: one is 10^6 of them, which take an emulator long.
const MS_OF_INSTRUCTIONS: u32 = 10;
/// Likewise where it counts time.
const MS_OF_TIME: u32 = 500;

/// Bounds of a cell's wake-ups and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wake-ups at most.
    pub iterations: u32,
    /// It may end before, once it is settled.
    pub settle: bool,
    /// Ticks that it may take besides the pauses that were asked for; 0 for no bound.
    pub budget: u64,
    /// Ticks of such a pause.
    pub pause: u64,
    /// Wake-ups that a block makes besides those that were asked for.
    pub unrecorded: u32,
}

impl Limits {
    /// Computes the limits of `cell` where the counter has `frequency` and counts `instructions`,
    /// or time.
    #[must_use]
    pub fn of(plan: &Plan, cell: &Cell, frequency: u64, instructions: bool) -> Self {
        let ticks = |us: u64| (u128::from(us) * u128::from(frequency) / 1_000_000) as u64;
        let default = if instructions {
            MS_OF_INSTRUCTIONS
        } else {
            MS_OF_TIME
        };
        let default = default * cell.workload.times_as_long();
        let ms = plan.cell_ms.unwrap_or(default);
        Self {
            iterations: plan.iterations,
            settle: plan.settle && !plan.raw,
            budget: ticks(u64::from(ms) * 1000),
            pause: ticks(cell.pause_us()),
            unrecorded: cell.workload.unrecorded(),
        }
    }

    /// How many wake-ups pass `pass` makes if time does not matter.
    #[must_use]
    pub const fn share(&self, pass: u32) -> u32 {
        self.iterations / PASSES + (pass < self.iterations % PASSES) as u32
    }
}

/// How far a cell is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Wake-ups so far.
    pub done: u32,
    /// Passes that are complete.
    pub passes: u32,
    /// Why it has ended, if it has.
    pub ended: Option<End>,
    /// Wake-ups of this pass so far.
    in_pass: u32,
    /// Ticks so far, pauses left out.
    used: u64,
    /// Wake-ups of a pass at most, once that is known.
    per_pass: Option<u32>,
}

impl Pace {
    /// How many wake-ups the next block makes; `None` when the pass is over. Each
    /// pass makes one at least.
    #[must_use]
    pub fn next(&self, limits: &Limits) -> Option<u32> {
        let left = limits.share(self.passes).saturating_sub(self.in_pass);
        if left == 0 || self.ended.is_some() {
            return None;
        }
        if limits.budget == 0 {
            return Some(left);
        }
        let Some(per_pass) = self.per_pass else {
            return Some(left.min(FIRST));
        };
        // One block for each pass, or the rest of it after the one that measured the cost.
        if self.in_pass > 0 && (self.passes > 0 || self.in_pass > FIRST) {
            return None;
        }
        let allowed = limits.budget * u64::from(self.passes + 1) / u64::from(PASSES);
        let fits = self.fitting(allowed.saturating_sub(self.used));
        let count = left
            .min(fits)
            .min(per_pass.saturating_sub(self.in_pass))
            .max(u32::from(self.in_pass == 0));
        (count > 0).then_some(count)
    }

    /// Notes a block of `count` wake-ups that took `ticks`.
    pub fn add(&mut self, limits: &Limits, count: u32, ticks: u64) {
        self.done += count;
        self.in_pass += count;
        let pauses = u64::from(count) + u64::from(limits.unrecorded);
        let paused = limits.pause.saturating_mul(pauses);
        self.used += ticks.saturating_sub(paused);
        if self.per_pass.is_none() {
            self.per_pass = Some(self.fitting(limits.budget / u64::from(PASSES)).max(1));
        }
    }

    /// Ends the pass. `repeats`: it has the same distribution as the earlier ones.
    pub fn end_pass(&mut self, limits: &Limits, repeats: bool) {
        self.passes += 1;
        self.in_pass = 0;
        self.ended = if self.passes == PASSES && self.done >= limits.iterations {
            Some(End::Samples)
        } else if self.passes == PASSES {
            Some(End::Budget)
        } else if limits.settle && self.passes == BALANCED && repeats {
            Some(End::Settled)
        } else {
            None
        };
    }

    /// How many wake-ups fit into `ticks`, at what they cost so far.
    fn fitting(&self, ticks: u64) -> u32 {
        let cost = (self.used / u64::from(self.done.max(1))).max(1);
        (ticks / cost).try_into().unwrap_or(u32::MAX)
    }
}

impl Cell {
    /// A guess of a wake-up's time, nanoseconds: the pauses that were asked for,
    /// the exit latency that is added where governors may choose a deep state, and
    /// its path. The path has some hundred instructions, which an emulator executes
    /// several times as fast as those of pauses, mostly YIELD.
    fn guess_ns(&self) -> u64 {
        const PATH: u64 = 50;
        const PATH_OF_LINUX: u64 = 20_000;
        let path = if self.workload.is_linux() {
            PATH_OF_LINUX
        } else {
            PATH
        };
        let poll_us = match self.workload {
            Workload::Overshoot => self.poll_limit_us,
            Workload::Stream => self.event_stream_us,
            _ => 0,
        };
        path + 1000
            * (self.pause_us()
                + u64::from(self.states.leaving_us(self.standby_us))
                + u64::from(poll_us))
    }

    /// A guess of the guest's time that a pass over it takes, microseconds: what
    /// progress is weighed by before anything has been measured. At least 1.
    #[must_use]
    pub fn guess_us(&self, limits: &Limits, frequency: u64) -> u64 {
        /// Time to begin and to report a pass.
        const BLOCK_US: u64 = 60;
        let ns =
            |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(frequency.max(1))) as u64;
        let share = u64::from(limits.share(0));
        let (all, paused) = (self.guess_ns() * share, ns(limits.pause) * share);
        let bound = match limits.budget {
            0 => u64::MAX,
            budget => paused + ns(budget) / u64::from(PASSES),
        };
        BLOCK_US + all.min(bound) / 1000
    }
}

#[cfg(test)]
mod tests;
