// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's clock: how many instructions of the path come before the CPU's next instruction, and which instructions
//! these are.

use std::sync::Arc;

use crate::Counts;

/// How the path reached a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Via {
    /// The CPU of the previous stretch continued.
    Own,
    /// The CPU found a store of another CPU.
    Store,
    /// The CPU took an interrupt that another CPU had sent.
    Interrupt,
}

impl Via {
    /// All ways in which the path can reach a stretch.
    pub const ALL: [Self; 3] = [Self::Own, Self::Store, Self::Interrupt];
}

/// Instructions that a CPU executed consecutively, without instructions of other CPUs in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The CPU.
    pub cpu: usize,
    /// Number of instructions that all CPUs together had executed before the stretch.
    pub from: u64,
    /// Number of instructions that all CPUs together had executed at the end of the stretch.
    pub to: u64,
    /// How the path reached the stretch.
    pub via: Via,
}

impl Stretch {
    /// Returns the number of instructions in the stretch.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.to - self.from
    }

    /// Whether the stretch has no instructions.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.to == self.from
    }
}

/// The value of a clock. If stretches are kept, also the stretches whose lengths add up to it.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    pub counts: Counts,
    stretches: Vec<Stretch>,
    /// The start of each open sample, in the order of the samples' numbers. Clocks share the starts: a clock is copied
    /// for each store that other CPUs may find, while samples begin rarely.
    starts: Arc<[Start]>,
}

/// The value of a clock at the beginning of a sample. The chain of causes was on one CPU at that time, and the clock
/// belongs to this CPU.
#[derive(Clone, Copy, Debug)]
struct Start {
    /// The number of the sample.
    sample: u64,
    /// Number of instructions that all CPUs together had executed at the beginning.
    at: u64,
    /// The value of the clock.
    counts: Counts,
}

impl Clock {
    /// Records that the newest sample, number `sample`, begins after all CPUs together have executed `at` instructions.
    /// `open` has the numbers of all samples that have begun but not ended, in order.
    pub fn record_sample_begin(&mut self, sample: u64, at: u64, open: &[u64]) {
        let starts = self.starts.iter().copied();
        let starts = starts.filter(|start| open.binary_search(&start.sample).is_ok());
        let counts = self.counts;
        self.starts = starts.chain([Start { sample, at, counts }]).collect();
    }

    /// Returns the counts since the sample began. `None` if the clock contradicts the value at the beginning.
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

    /// Advances the clock by `counts`, which the CPU has executed. Adds them as `stretch`, if stretches are kept.
    pub fn advance(&mut self, counts: Counts, stretch: Option<Stretch>) {
        self.counts = self.counts.plus(counts);
        if let Some(stretch) = stretch {
            push_stretch(&mut self.stretches, stretch);
        }
    }

    /// Subtracts `counts`, the last instructions, which turned out not to have been executed.
    pub fn take_back(&mut self, counts: Counts) {
        self.counts = self.counts.checked_minus(counts).unwrap_or_default();
        cut_last(&mut self.stretches, counts.total());
    }

    /// Continues from `heard`, the clock of another CPU. Adds `since`, this CPU's own instructions since it resumed.
    /// When this CPU resumed, all CPUs together had executed `at` instructions.
    pub fn continue_from(&mut self, heard: &Self, since: Counts, at: u64, via: Via) {
        let own = self.stretches.iter().copied();
        let mut own: Vec<Stretch> = own.filter(|stretch| stretch.from >= at).collect();
        if let Some(first) = own.first_mut() {
            first.via = via;
        }
        let counts = heard.counts.plus(since);
        let starts = self.starts.iter().map(|start| {
            let counts = match heard.start_of_sample(start.sample) {
                // The sample began after the CPU resumed, so the cause happened before the sample.
                _ if start.at > at => counts.minus(self.counts.minus(start.counts)),
                Some(before) => before.counts,
                // The sample began after the cause happened, and before the CPU found it.
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

    /// Returns the later of two clocks. Compares the instructions since the beginning of each of `samples`, one sample
    /// after another, until they differ. If a clock does not have the beginning of a sample, it is older than the
    /// sample.
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

    /// Drops the stretches that ended before all CPUs together had executed `oldest` instructions.
    pub fn forget_stretches(&mut self, oldest: u64) {
        self.stretches.retain(|stretch| stretch.to > oldest);
    }

    /// Returns the last `many` instructions, divided into stretches.
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
        // How the path reached the first returned stretch is not part of the result.
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
