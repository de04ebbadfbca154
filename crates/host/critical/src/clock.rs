// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's clock: how many instructions are before its next one on the path, and which.

use std::sync::Arc;

use crate::Counts;

/// How the path came to a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Via {
    /// The CPU went on.
    Own,
    /// The CPU found another CPU's store.
    Store,
    /// The CPU took another CPU's interrupt.
    Interrupt,
}

impl Via {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::Own, Self::Store, Self::Interrupt];
}

/// Instructions that a CPU executed without another one in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The CPU.
    pub cpu: usize,
    /// Instructions that all CPUs had executed before.
    pub from: u64,
    /// Instructions that all CPUs had executed by its end.
    pub to: u64,
    /// How the path came to it.
    pub via: Via,
}

impl Stretch {
    /// Returns the number of its instructions.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.to - self.from
    }

    /// Whether it has no instructions.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.to == self.from
    }
}

/// The value of a clock, and the stretches that add up to it, if they are kept.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    pub counts: Counts,
    stretches: Vec<Stretch>,
    /// Of each open sample, in the order of their numbers. Clocks are copied for each store that others may find;
    /// beginnings are rare.
    starts: Arc<[Start]>,
}

/// Where a clock stood when a sample began, on whichever CPU its chain was then.
#[derive(Clone, Copy, Debug)]
struct Start {
    /// Number of the sample.
    sample: u64,
    /// Instructions that all CPUs had executed.
    at: u64,
    /// The clock.
    counts: Counts,
}

impl Clock {
    /// Sample number `sample`, the newest, begins after all CPUs have executed `at` instructions; `open` are the numbers
    /// of the samples that have begun and not ended, in order.
    pub fn begins(&mut self, sample: u64, at: u64, open: &[u64]) {
        let starts = self.starts.iter().copied();
        let starts = starts.filter(|start| open.binary_search(&start.sample).is_ok());
        let counts = self.counts;
        self.starts = starts.chain([Start { sample, at, counts }]).collect();
    }

    /// Returns the counts since this sample began. `None` if the clock contradicts its beginning.
    pub fn since(&self, sample: u64) -> Option<Counts> {
        let start = self.start(sample).map(|start| start.counts);
        self.counts.checked_since(start.unwrap_or_default())
    }

    fn start(&self, sample: u64) -> Option<&Start> {
        let place = self
            .starts
            .binary_search_by_key(&sample, |start| start.sample);
        place.ok().map(|place| &self.starts[place])
    }

    /// The CPU has executed `counts`, which are a stretch of those of all CPUs.
    pub fn advance(&mut self, counts: Counts, stretch: Option<Stretch>) {
        self.counts = self.counts.plus(counts);
        if let Some(stretch) = stretch {
            push(&mut self.stretches, stretch);
        }
    }

    /// Takes back the last instructions, which were not executed.
    pub fn take_back(&mut self, counts: Counts) {
        self.counts = self.counts.checked_since(counts).unwrap_or_default();
        cut(&mut self.stretches, counts.total());
    }

    /// Goes on from the `heard` clock, and keeps the instructions `since` the CPU resumed at `at`.
    pub fn follow(&mut self, heard: &Self, since: Counts, at: u64, via: Via) {
        let own = self.stretches.iter().copied();
        let mut own: Vec<Stretch> = own.filter(|stretch| stretch.from >= at).collect();
        if let Some(first) = own.first_mut() {
            first.via = via;
        }
        let counts = heard.counts.plus(since);
        let starts = self.starts.iter().map(|start| {
            let counts = match heard.start(start.sample) {
                // Began after the CPU resumed: the cause is older.
                _ if start.at > at => counts.since(self.counts.since(start.counts)),
                Some(before) => before.counts,
                // Began while the cause was on its way.
                None => heard.counts,
            };
            Start { counts, ..*start }
        });
        self.starts = starts.collect();
        self.counts = counts;
        self.stretches.clone_from(&heard.stretches);
        own.into_iter()
            .for_each(|one| push(&mut self.stretches, one));
    }

    /// Returns the later of two clocks in the time of the first of these samples in which one is later. A clock without
    /// the beginning of a sample is older than it.
    pub fn later(self, other: &Self, samples: &[u64]) -> Self {
        let reach = |clock: &Self| -> (Vec<u64>, u64) {
            let each = samples.iter().map(|&sample| clock.reach(sample));
            (each.collect(), clock.counts.total())
        };
        match reach(&self) < reach(other) {
            true => other.clone(),
            false => self,
        }
    }

    fn reach(&self, sample: u64) -> u64 {
        let start = self.start(sample);
        let since = start.and_then(|start| self.counts.checked_since(start.counts));
        since.map_or(0, |counts| counts.total())
    }

    /// Forgets the stretches that ended before all CPUs had executed `oldest` instructions.
    pub fn forget(&mut self, oldest: u64) {
        self.stretches.retain(|stretch| stretch.to > oldest);
    }

    /// Returns the last stretches, which have `many` instructions.
    pub fn last(&self, many: u64) -> Vec<Stretch> {
        let mut left = many;
        let mut last = Vec::new();
        for stretch in self.stretches.iter().rev() {
            if left == 0 {
                break;
            }
            let take = stretch.len().min(left);
            last.push(Stretch {
                from: stretch.to - take,
                ..*stretch
            });
            left -= take;
        }
        // The cause of the first stretch is before all of them.
        if let Some(first) = last.last_mut() {
            first.via = Via::Own;
        }
        last.reverse();
        last
    }
}

/// Adds a stretch, or extends the last one if `new` continues it.
pub fn push(stretches: &mut Vec<Stretch>, new: Stretch) {
    match stretches.last_mut() {
        _ if new.is_empty() => {}
        Some(last) if last.cpu == new.cpu && last.to == new.from && new.via == Via::Own => {
            last.to = new.to;
        }
        _ => stretches.push(new),
    }
}

/// Removes the last `many` instructions.
pub fn cut(stretches: &mut Vec<Stretch>, mut many: u64) {
    while many != 0
        && let Some(last) = stretches.last_mut()
    {
        let take = last.len().min(many);
        last.to -= take;
        many -= take;
        if last.is_empty() {
            stretches.pop();
        }
    }
}
