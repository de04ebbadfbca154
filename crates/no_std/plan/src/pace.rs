// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the wake-ups of a cell are divided among its passes, and when the cell ends.
//!
//! A cell ends when it is [settled](End::Settled), has its
//! [samples](End::Samples), or has used up its [budget](End::Budget) of time.
//!
//! The budget depends on how long a measurement takes, never on measured values, and it applies
//! before the wake-ups are made, not while they are made. A first short block measures the cost of one wake-up, which
//! decides once and for all how many wake-ups each pass makes. So all passes, forwards or backwards, have
//! equally many, and no sample is taken or dropped because of its value. Only a cell whose cost
//! grows later has shorter later passes.

use crate::{Cell, End, Plan, Workload};

/// Number of interleaved passes over the cells; the wake-ups of a cell are divided among them. Passes run
/// forwards, backwards, backwards, forwards ([`is_forwards`]), so that a drift of the machine
/// affects every cell equally.
pub const PASSES: u32 = 4;

/// Whether pass `pass` runs the cells forwards.
#[must_use]
pub const fn is_forwards(pass: u32) -> bool {
    matches!(pass % 4, 0 | 3)
}

/// Passes after which a cell can count as settled: as many forwards as backwards.
pub const BALANCED: u32 = 2;

/// Default wake-ups of the first block, which measures the cost of a wake-up. These wake-ups, and one
/// from each further pass, are enough for a median, whatever a wake-up costs.
const FIRST: u32 = 20;

/// Default time of a cell in guest milliseconds, if its counter counts instructions: a millisecond is
/// then 10^6 instructions, which an emulator runs slowly.
const MS_OF_INSTRUCTIONS: u32 = 10;
/// Default time of a cell in milliseconds, if the counter counts time.
const MS_OF_TIME: u32 = 500;

/// Bounds of a cell's wake-ups and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most wake-ups.
    pub iterations: u32,
    /// Whether the cell may end early, once it is settled.
    pub settle: bool,
    /// Ticks that the cell may take besides the requested pauses; 0 for no bound.
    pub budget: u64,
    /// Ticks of the pause that is requested with each wake-up.
    pub pause: u64,
    /// Wake-ups that a block makes besides the requested ones.
    pub unrecorded: u32,
    /// Wake-ups of the block that measures the cost of a wake-up.
    pub first: u32,
}

impl Limits {
    /// Computes the limits of `cell` for a counter of `frequency` that counts `instructions` or
    /// time.
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
        let iterations = match cell.workload.is_a_run() && plan.settle {
            true => 1,
            false => plan.iterations,
        };
        Self {
            iterations,
            first: if cell.workload.is_a_run() { 1 } else { FIRST },
            settle: plan.settle && !plan.raw,
            budget: ticks(u64::from(ms) * 1000),
            pause: ticks(cell.pause_us()),
            unrecorded: cell.workload.unrecorded(),
        }
    }

    /// Returns how many wake-ups pass `pass` makes if time does not limit them.
    #[must_use]
    pub const fn share(&self, pass: u32) -> u32 {
        self.iterations / PASSES + (pass < self.iterations % PASSES) as u32
    }
}

/// Progress of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Wake-ups so far.
    pub done: u32,
    /// Passes that are complete.
    pub passes: u32,
    /// Why the cell has ended, if it has.
    pub ended: Option<End>,
    /// Wake-ups of the pass so far.
    in_pass: u32,
    /// Ticks so far, without pauses.
    used: u64,
    /// The most wake-ups of a pass, once their cost is known.
    per_pass: Option<u32>,
}

impl Pace {
    /// Returns how many wake-ups the next block makes; `None` when the pass is over. Each pass makes at
    /// least one wake-up.
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
            return Some(left.min(limits.first));
        };
        // A pass is one block, except that the first pass has a block that measures the cost and
        // one for the rest.
        if self.in_pass > 0 && (self.passes > 0 || self.in_pass > limits.first) {
            return None;
        }
        let allowed = limits.budget * u64::from(self.passes + 1) / u64::from(PASSES);
        let fits = self.how_many_fit(allowed.saturating_sub(self.used));
        let count = left
            .min(fits)
            .min(per_pass.saturating_sub(self.in_pass))
            .max(u32::from(self.in_pass == 0));
        (count > 0).then_some(count)
    }

    /// Records a block of `count` wake-ups that took `ticks`.
    pub fn add(&mut self, limits: &Limits, count: u32, ticks: u64) {
        self.done += count;
        self.in_pass += count;
        let pauses = u64::from(count) + u64::from(limits.unrecorded);
        let paused = limits.pause.saturating_mul(pauses);
        self.used += ticks.saturating_sub(paused);
        if self.per_pass.is_none() {
            self.per_pass = Some(self.how_many_fit(limits.budget / u64::from(PASSES)).max(1));
        }
    }

    /// Ends the pass. `repeats` is true if the pass has the same distribution as the earlier passes.
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

    /// Returns how many wake-ups fit into `ticks` at their cost so far.
    fn how_many_fit(&self, ticks: u64) -> u32 {
        let cost = (self.used / u64::from(self.done.max(1))).max(1);
        (ticks / cost).try_into().unwrap_or(u32::MAX)
    }
}

/// An estimate of the guest time that a pass over a cell takes, in microseconds: at least 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassTime {
    /// The likely time.
    pub expected_us: u64,
    /// The time if every pause is executed and the cell's time is used up.
    pub most_us: u64,
}

/// An emulator that counts instructions executes a path several times as fast as a pause, which is mostly YIELD and
/// reads of the counter. The pauses set the scale from guest time to seconds, so an estimate divides the time of a
/// path by this factor.
const PATHS_ARE_FASTER: u64 = 6;

impl Cell {
    /// Returns an estimate of a wake-up's path without pauses, in nanoseconds of the guest.
    fn path_ns(&self, instructions: bool) -> u64 {
        match (self.workload.is_linux(), instructions) {
            (true, _) => 20_000,
            (false, true) => 300,
            (false, false) => 5_000,
        }
    }

    /// Returns how long a wake-up polls when only the limit can end the poll, in microseconds.
    fn polled_us(&self) -> u32 {
        match self.workload {
            Workload::Overshoot => self.poll_limit_us,
            Workload::Stream => self.event_stream_us,
            _ => 0,
        }
    }

    /// Returns the part of a pause in which CPUs execute instructions, in microseconds: a CPU that halts
    /// executes none, and an instruction counter skips that time.
    fn executed_pause_us(&self) -> u64 {
        let all = self.pause_us();
        let idles = self.workload.has_tasks() || self.workload.is_linux();
        if !idles || !self.halts() || !self.idle_poll.is_empty() {
            return all;
        }
        let guest = if self.has_limit() {
            self.poll_limit_us
        } else {
            0
        };
        let host = if self.host_polls() {
            self.host_poll_us
        } else {
            0
        };
        all.min(u64::from(self.service_us) + u64::from(guest) + u64::from(host))
    }

    /// Estimates the time of a pass over the cell for a counter of `frequency` that counts
    /// `instructions` or time.
    #[must_use]
    pub fn pass_time(&self, limits: &Limits, frequency: u64, instructions: bool) -> PassTime {
        /// Time to begin and to report a pass.
        const BLOCK_US: u64 = 60;
        let us = |ticks: u64| (u128::from(ticks) * 1_000_000 / u128::from(frequency.max(1))) as u64;
        let share = u64::from(limits.share(0));
        let budget = match limits.budget {
            0 => u64::MAX,
            budget => us(budget) / u64::from(PASSES),
        };
        let (pause, polled) = (self.pause_us(), u64::from(self.polled_us()));
        // The additional exit latency where governors may choose a deep state.
        let leaving = u64::from(self.states.slow_exit_us(self.standby_us));
        let path = self.path_ns(instructions) * share / 1000;
        let worked = path.saturating_add((polled + leaving) * share);
        // Time within a pause is not part of the cell's own time.
        let likely = path.min(budget) + leaving.min(pause) * share;
        let (likely, paused) = match instructions {
            true => (likely / PATHS_ARE_FASTER, self.executed_pause_us()),
            false => (path.min(budget), pause),
        };
        PassTime {
            expected_us: BLOCK_US + likely + (polled * share).min(budget) + paused * share,
            most_us: BLOCK_US
                + pause * share
                + match limits.budget {
                    0 => worked,
                    _ => budget,
                },
        }
    }
}

#[cfg(test)]
mod tests;
