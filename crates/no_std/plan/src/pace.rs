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

/// A guess of the guest's time that a pass over a cell takes, microseconds: at least 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassTime {
    /// What is likely.
    pub expected_us: u64,
    /// What it takes if every pause is executed and the cell's time is used up.
    pub most_us: u64,
}

/// An emulator that counts instructions executes a path several times as fast as the pauses, mostly YIELD and reads of
/// the counter, by which times become seconds.
const PATHS_ARE_FASTER: u64 = 6;

impl Cell {
    /// A guess of a wake-up's path without pauses, nanoseconds of the guest.
    fn path_ns(&self, instructions: bool) -> u64 {
        match (self.workload.is_linux(), instructions) {
            (true, _) => 20_000,
            (false, true) => 300,
            (false, false) => 5_000,
        }
    }

    /// How long a wake-up polls although nothing will end the poll but its limit, microseconds.
    fn polled_us(&self) -> u32 {
        match self.workload {
            Workload::Overshoot => self.poll_limit_us,
            Workload::Stream => self.event_stream_us,
            _ => 0,
        }
    }

    /// The part of a pause in which CPUs execute instructions, microseconds: a CPU that halts executes none, and a
    /// counter of instructions skips the time.
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

    /// Guesses the time of a pass over it, where the counter has `frequency` and counts `instructions`, or time.
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
        // The exit latency that is added where governors may choose a deep state.
        let leaving = u64::from(self.states.leaving_us(self.standby_us));
        let path = self.path_ns(instructions) * share / 1000;
        let worked = path.saturating_add((polled + leaving) * share);
        // What lies in a pause is no part of the cell's own time.
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
