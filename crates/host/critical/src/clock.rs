// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's clock: how many instructions precede its next one on the path, and which instructions these are.

use std::sync::Arc;

use crate::Counts;

/// How the path came to a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Via {
    /// The CPU of the stretch before continued.
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

/// Instructions that a CPU executed without an instruction of another CPU in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The CPU.
    pub cpu: usize,
    /// Number of instructions that all CPUs had executed before it.
    pub from: u64,
    /// Number of instructions that all CPUs had executed by its end.
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
    /// The start of each open sample, in the order of the samples' numbers. The starts are shared, because a clock is
    /// copied for each store that other CPUs may find, and samples begin rarely.
    starts: Arc<[Start]>,
}

/// The value of a clock when a sample began, on whichever CPU the clock's chain of causes was at that time.
#[derive(Clone, Copy, Debug)]
struct Start {
    /// Number of the sample.
    sample: u64,
    /// Number of instructions that all CPUs had executed.
    at: u64,
    /// The value of the clock.
    counts: Counts,
}

impl Clock {
    /// Records that sample number `sample`, the newest, begins after all CPUs have executed `at` instructions; `open`
    /// are the numbers of the samples that have begun and not ended, in order.
    pub fn record_sample_begin(&mut self, sample: u64, at: u64, open: &[u64]) {
        let starts = self.starts.iter().copied();
        let starts = starts.filter(|start| open.binary_search(&start.sample).is_ok());
        let counts = self.counts;
        self.starts = starts.chain([Start { sample, at, counts }]).collect();
    }

    /// Returns the counts since this sample began. `None` if the clock contradicts its beginning.
    pub fn counts_since(&self, sample: u64) -> Option<Counts> {
        let start = self.start_of_sample(sample).map(|start| start.counts);
        self.counts.checked_minus(start.unwrap_or_default())
    }

    fn start_of_sample(&self, sample: u64) -> Option<&Start> {
        let place = self
            .starts
            .binary_search_by_key(&sample, |start| start.sample);
        place.ok().map(|place| &self.starts[place])
    }

    /// Advances the clock by `counts`, which its CPU has executed, and adds them as `stretch` if stretches are kept.
    pub fn advance(&mut self, counts: Counts, stretch: Option<Stretch>) {
        self.counts = self.counts.plus(counts);
        if let Some(stretch) = stretch {
            push_stretch(&mut self.stretches, stretch);
        }
    }

    /// Subtracts the last instructions, `counts`, which turned out not to have been executed.
    pub fn take_back(&mut self, counts: Counts) {
        self.counts = self.counts.checked_minus(counts).unwrap_or_default();
        cut_last(&mut self.stretches, counts.total());
    }

    /// Continues from the clock `heard`, and keeps the instructions that the CPU has executed `since` it resumed at
    /// `at`.
    pub fn continue_from(&mut self, heard: &Self, since: Counts, at: u64, via: Via) {
        let own = self.stretches.iter().copied();
        let mut own: Vec<Stretch> = own.filter(|stretch| stretch.from >= at).collect();
        if let Some(first) = own.first_mut() {
            first.via = via;
        }
        let counts = heard.counts.plus(since);
        let starts = self.starts.iter().map(|start| {
            let counts = match heard.start_of_sample(start.sample) {
                // The sample began after the CPU resumed, so the cause is older than the sample.
                _ if start.at > at => counts.minus(self.counts.minus(start.counts)),
                Some(before) => before.counts,
                // The sample began while the cause was on its way.
                None => heard.counts,
            };
            Start { counts, ..*start }
        });
        self.starts = starts.collect();
        self.counts = counts;
        self.stretches.clone_from(&heard.stretches);
        own.into_iter()
            .for_each(|one| push_stretch(&mut self.stretches, one));
    }

    /// Returns the later of two clocks. Compares the instructions since the beginning of each of `samples` in turn, and
    /// the first difference decides. A clock without the beginning of a sample is older than the sample.
    pub fn later_clock(self, other: &Self, samples: &[u64]) -> Self {
        let reach = |clock: &Self| -> (Vec<u64>, u64) {
            let each = samples.iter().map(|&sample| clock.total_since(sample));
            (each.collect(), clock.counts.total())
        };
        match reach(&self) < reach(other) {
            true => other.clone(),
            false => self,
        }
    }

    fn total_since(&self, sample: u64) -> u64 {
        let start = self.start_of_sample(sample);
        let since = start.and_then(|start| self.counts.checked_minus(start.counts));
        since.map_or(0, |counts| counts.total())
    }

    /// Forgets the stretches that ended before all CPUs had executed `oldest` instructions.
    pub fn forget_stretches(&mut self, oldest: u64) {
        self.stretches.retain(|stretch| stretch.to > oldest);
    }

    /// Returns the last `many` instructions, as stretches.
    pub fn last_stretches(&self, many: u64) -> Vec<Stretch> {
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
        // The cause of the first stretch is before the returned stretches.
        if let Some(first) = last.last_mut() {
            first.via = Via::Own;
        }
        last.reverse();
        last
    }
}

/// Adds a stretch, or extends the last one if `new` continues it.
pub fn push_stretch(stretches: &mut Vec<Stretch>, new: Stretch) {
    match stretches.last_mut() {
        _ if new.is_empty() => {}
        Some(last) if last.cpu == new.cpu && last.to == new.from && new.via == Via::Own => {
            last.to = new.to;
        }
        _ => stretches.push(new),
    }
}

/// Removes the last `many` instructions from `stretches`.
pub fn cut_last(stretches: &mut Vec<Stretch>, mut many: u64) {
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
