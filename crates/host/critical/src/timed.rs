// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of samples in time, on a machine whose cores run in parallel.
//!
//! It is found backwards, from the last instruction of a sample: before an instruction comes the previous one of its
//! core, except where the core waited for another one. Then the store or the interrupt that ended the wait comes before
//! it, and the path goes on there:
//!
//! - A core that halted (WFI, WFE) waited for the first interrupt that another core sent to it meanwhile. WFE also waits
//!   for the first store to the word that the core loaded last with an exclusive or ordered load.
//! - A core that loads a word by one instruction over and over waited for the first store to that word since its
//!   previous load. It may have paused meanwhile, and gone on too early: a core that prefetches a line to store to it
//!   ends a WFE, too.
//!
//! An instruction of the path takes the time since the one before it, so all together take as long as the sample. The
//! time from a store or an interrupt to the other core's next instruction is kept apart, and so is the time in a halt
//! that no other core ended.

use std::collections::BTreeMap;

use crate::committed::{Marked, Marks};
use crate::cutter::is_for;
use crate::halt::{first_halt, resumes};
use crate::{
    Chart, Core, Counts, Piece, Pieces, Reasons, Sample, Timing, Trace, Traces, Via, Waited,
};

/// Most cycles between two instructions near a WFI that does not halt.
const REST: u64 = 64;
/// Most instructions of a loop that waits for a store, and from a load to the halt that waits for a store.
const LOOP: usize = 64;
/// Most instructions of a loop that pauses, and looks at a clock meanwhile. It stays at its exception level.
const LONG: usize = 512;

/// An instruction of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnPath {
    core: usize,
    at: usize,
    /// The wait that ended before it.
    waited: Option<Waited>,
}

/// Returns the samples of `cores`, which execute the images of `chart`, in cycles of `period` ticks each.
#[must_use]
pub fn timed(cores: &[Core], chart: Chart, period: u64) -> Traces {
    let mut traces = Traces::default();
    let mut first_block = Vec::new();
    for core in cores {
        first_block.push(traces.blocks.len() as u32);
        traces.blocks.extend(core.blocks.iter().cloned());
    }
    let marks = Marks::of(cores, chart);
    let samples = marks.samples();
    traces.traces.extend(samples.iter().map(|marked| {
        let timeline = Timeline {
            cores,
            marks: &marks,
            first_block: &first_block,
            period,
            begin: cores[marked.core].committed[marked.begin].tick,
        };
        timeline.trace(*marked)
    }));
    traces
}

/// The time of a sample.
struct Timeline<'c> {
    cores: &'c [Core],
    marks: &'c Marks<'c>,
    first_block: &'c [u32],
    period: u64,
    /// When it begins.
    begin: u64,
}

impl Timeline<'_> {
    fn trace(&self, marked: Marked) -> Trace {
        let path = self.path(marked);
        let end = self.cores[marked.core].committed[marked.end].tick;
        let pieces = self.pieces(&path, end);
        let total = |on_path: bool| {
            let pieces = pieces.iter();
            let pieces = pieces.filter(|piece| piece.path.is_some() || !on_path);
            pieces.fold(Counts::default(), |mut sum, piece| {
                sum.levels[usize::from(self.level(piece))] += piece.cost();
                sum
            })
        };
        let sample = Sample {
            value: (end - self.begin) / self.period,
            path: total(true),
            work: total(false),
            ..Sample::default()
        };
        Trace {
            cell: marked.cell,
            times: 1,
            sample,
            pieces,
        }
    }

    fn level(&self, piece: &Piece) -> u8 {
        let core = usize::from(piece.cpu);
        let block = piece.block - self.first_block[core];
        self.cores[core].blocks[block as usize].level
    }

    /// Returns the path, without the instruction that began the sample.
    fn path(&self, marked: Marked) -> Vec<OnPath> {
        let mut path = Vec::new();
        let (mut core, mut at) = (marked.core, marked.end);
        while self.cores[core].committed[at].tick > self.begin {
            let cause = self.cause(core, at);
            path.push(OnPath {
                core,
                at,
                waited: match cause {
                    Some((via, ..)) => Some(Waited::For(via)),
                    None => self.rests(core, at).then_some(Waited::Halted),
                },
            });
            match cause {
                Some((_, other, release)) => (core, at) = (other, release),
                None if at == 0 => break,
                None => at -= 1,
            }
        }
        path.reverse();
        path
    }

    /// Returns the WFI or WFE by which a core halts between the previous instruction and this one: it is near, and no
    /// pause near is longer.
    fn halts(&self, core: usize, at: usize) -> Option<u32> {
        let committed = &self.cores[core].committed;
        let is_halt = |n: &usize| self.marks.reasons(core, *n).has(Reasons::HALT);
        let halt = (first_halt(at)..=at).rfind(is_halt)?;
        let resumed = resumes(halt, committed.len(), |n| committed[n].tick);
        let one = &committed[halt];
        let block = &self.cores[core].blocks[one.block as usize];
        (resumed == Some(at)).then(|| block.words[usize::from(one.index)])
    }

    /// Whether a core halts for some time before an instruction. A WFI with an interrupt that is pending does not.
    fn rests(&self, core: usize, at: usize) -> bool {
        let committed = &self.cores[core].committed;
        let long = |at: usize| committed[at].tick - committed[at - 1].tick > REST * self.period;
        self.halts(core, at).is_some() && long(at)
    }

    /// Returns the core and the instruction that ended the wait before an instruction, if it was one.
    fn cause(&self, core: usize, at: usize) -> Option<(Via, usize, usize)> {
        let this = &self.cores[core];
        let now = this.committed[at].tick;
        if let Some(halt) = self.halts(core, at) {
            let since = this.committed[at - 1].tick;
            let watched = self.watched(core, at).filter(|_| is_event_wait(halt));
            let store = watched.and_then(|word| self.first_store(core, word, since, now));
            let send = self.first_send(core, since, now);
            let first = [(Via::Interrupt, send), (Via::Store, store)].into_iter();
            let first =
                first.filter_map(|(via, found)| found.map(|(tick, n, at)| (tick, via, n, at)));
            return first
                .min_by_key(|(tick, ..)| *tick)
                .map(|(_, via, n, at)| (via, n, at));
        }
        let word = self.loaded(core, at)?;
        // Few words are stored to by another core at all.
        self.first_store(core, word, self.begin, now)?;
        let before = self.loaded_before(core, at, word)?;
        let since = this.committed[before].tick;
        let (_, other, release) = self.first_store(core, word, since, now)?;
        Some((Via::Store, other, release))
    }

    /// Returns the previous load of `word` by the same instruction, if both are of a loop that waits.
    fn loaded_before(&self, core: usize, at: usize, word: u64) -> Option<usize> {
        let here = self.place(core, at);
        let mut paused = false;
        for before in (at.saturating_sub(LONG)..at).rev() {
            paused |= self.marks.reasons(core, before).has(Reasons::PAUSE);
            let place = self.place(core, before);
            if place.0 != here.0 {
                return None;
            }
            if place == here {
                let waits = paused || at - before <= LOOP;
                return (waits && self.loaded(core, before) == Some(word)).then_some(before);
            }
        }
        None
    }

    /// Returns level and address of an instruction.
    fn place(&self, core: usize, at: usize) -> (u8, u64) {
        let one = &self.cores[core].committed[at];
        let block = &self.cores[core].blocks[one.block as usize];
        (block.level, block.address + 4 * u64::from(one.index))
    }

    /// Returns the word that an instruction loads.
    fn loaded(&self, core: usize, at: usize) -> Option<u64> {
        let this = &self.cores[core];
        let found = this.loads.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(this.loads[found].1)
    }

    /// Returns the word that a core loaded last with an exclusive or ordered load before it halted.
    fn watched(&self, core: usize, at: usize) -> Option<u64> {
        let mut near = (at.saturating_sub(LOOP)..at).rev();
        near.find_map(|n| {
            let loads = self.marks.reasons(core, n).has(Reasons::SYNC);
            loads.then(|| self.loaded(core, n)).flatten()
        })
    }

    /// Returns time, core and instruction of the first store of another core to `word`, after `since` and before `now`.
    fn first_store(
        &self,
        core: usize,
        word: u64,
        since: u64,
        now: u64,
    ) -> Option<(u64, usize, usize)> {
        let others = self.cores.iter().enumerate().filter(|(n, _)| *n != core);
        let stores = others.filter_map(|(n, other)| {
            let tick = |at: usize| other.committed[at].tick;
            let first = other
                .stores
                .partition_point(|(to, at)| (*to, tick(*at)) <= (word, since));
            let (to, at) = *other.stores.get(first)?;
            (to == word && tick(at) < now).then(|| (tick(at), n, at))
        });
        stores.min()
    }

    /// Returns time, core and instruction of the first interrupt that another core sent to `core`, after `since` and
    /// before `now`. A write of the register that trapped has sent nothing: the level below sends.
    fn first_send(&self, core: usize, since: u64, now: u64) -> Option<(u64, usize, usize)> {
        let others = self.cores.iter().enumerate().filter(|(n, _)| *n != core);
        let sends = others.filter_map(|(n, other)| {
            let tick = |at: usize| other.committed[at].tick;
            let first = other.sends.partition_point(|(at, _)| tick(*at) <= since);
            let sends = other.sends[first..].iter();
            let mut sends = sends.take_while(|(at, _)| tick(*at) < now);
            let found = sends.find(|(_, value)| is_for(*value, core as u64));
            found.map(|(at, _)| (tick(*at), n, *at))
        });
        sends.min()
    }

    /// Returns the cycles from the beginning to `tick`.
    fn cycles(&self, tick: u64) -> u64 {
        tick.saturating_sub(self.begin) / self.period
    }

    fn piece(&self, core: usize, at: usize, path: Option<Via>, timing: Timing) -> Piece {
        let one = &self.cores[core].committed[at];
        Piece {
            block: self.first_block[core] + one.block,
            first: one.index,
            end: one.index + 1,
            cpu: core as u16,
            path,
            timing: Some(timing),
        }
    }

    /// Returns the parts of the path, by core and instruction.
    fn timings(&self, path: &[OnPath]) -> BTreeMap<(usize, usize), Timing> {
        let mut before = 0;
        let timing = |one: &OnPath| {
            let tick = self.cores[one.core].committed[one.at].tick;
            let cycles = self.cycles(tick).max(before) - before;
            let timing = Timing {
                at: before,
                cycles,
                waited: one.waited,
            };
            before += cycles;
            ((one.core, one.at), timing)
        };
        path.iter().map(timing).collect()
    }

    /// Returns the timing of an instruction off the path: the time since the previous one of its core, except for a
    /// halt.
    fn timing_off_path(&self, core: usize, at: usize) -> Timing {
        let committed = &self.cores[core].committed;
        let before = at
            .checked_sub(1)
            .map_or(self.begin, |at| committed[at].tick);
        let since = self.cycles(before);
        Timing {
            at: since,
            cycles: match self.rests(core, at) {
                true => 0,
                false => self.cycles(committed[at].tick) - since,
            },
            waited: None,
        }
    }

    /// Returns what the cores execute until `end`: runs of one core, on or off the path, in the order in which they
    /// begin.
    fn pieces(&self, path: &[OnPath], end: u64) -> Pieces {
        let on_path = self.timings(path);
        let mut runs: Vec<Pieces> = Vec::new();
        for (core, all) in self.cores.iter().enumerate() {
            let from = all.committed.partition_point(|one| one.tick <= self.begin);
            let to = all.committed.partition_point(|one| one.tick <= end);
            let mut last = None;
            for at in from..to {
                let timing = on_path.get(&(core, at)).copied();
                let via = timing.map(|timing| match timing.waited {
                    Some(Waited::For(via)) => via,
                    Some(Waited::Halted) | None => Via::Own,
                });
                let timing = timing.unwrap_or_else(|| self.timing_off_path(core, at));
                let piece = self.piece(core, at, via, timing);
                let goes_on = last == Some(via.is_some()) && matches!(via, Some(Via::Own) | None);
                match runs.last_mut().filter(|_| goes_on) {
                    Some(run) => run.push(piece),
                    None => runs.push(vec![piece]),
                }
                last = Some(via.is_some());
            }
        }
        runs.sort_by_key(|run| run[0].timing.map(|timing| timing.at));
        runs.concat()
    }
}

/// Whether an instruction is WFE or WFET, which a store to the monitored word ends, unlike WFI (DDI 0487K.a, C6.2 and
/// D1.7.1).
const fn is_event_wait(word: u32) -> bool {
    word == 0xd503_205f || word & !0x1f == 0xd503_1000
}

#[cfg(test)]
mod tests;
