// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paths of samples, measured in time, on a machine whose cores run in parallel.
//!
//! The path is found backwards, starting at the last instruction of a sample. An instruction's predecessor on the path
//! is usually the same core's previous instruction. If the core waited for another core before the instruction, the
//! path continues at the store or the interrupt that ended the wait:
//!
//! - A core that halted (WFI, WFE) waited for the first interrupt that another core sent to it during the halt. With
//!   WFE, it also waited for the first store to the word that it loaded last with an exclusive or ordered load.
//! - A core that loads a word repeatedly with the same instruction waited for the first store to that word since its
//!   previous load. The core may have paused in between, and continued too early: a WFE also ends when another core
//!   prefetches the line in order to store to it.
//!
//! The time of an instruction on the path is the time since the previous instruction on the path, so together these
//! times are the length of the sample. Two kinds of time are recorded separately: the time from a store or an interrupt
//! to the next instruction of the other core, and the time in a halt that no other core ended.

mod cause;

use std::collections::BTreeMap;

use crate::committed::{Marked, Marks};
use crate::{Chart, Core, Counts, Piece, Pieces, Sample, Timing, Trace, Traces, Via, Waited};

/// An instruction on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnPath {
    core: usize,
    at: usize,
    /// The wait that ended before the instruction.
    waited: Option<Waited>,
}

/// Returns the samples of `cores`, which execute the images of `chart`. Times are in cycles of `period` ticks each.
#[must_use]
pub fn timed(cores: &[Core], chart: Chart, period: u64) -> Traces {
    let mut traces = Traces::default();
    let mut first_block = Vec::new();
    for core in cores {
        first_block.push(traces.blocks.len() as u32);
        traces.blocks.extend(core.blocks.iter().cloned());
    }
    let marks = Marks::find(cores, chart);
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

/// The instructions of all cores, and the start time of the sample whose path is to be found.
struct Timeline<'c> {
    cores: &'c [Core],
    marks: &'c Marks<'c>,
    first_block: &'c [u32],
    period: u64,
    /// Time at which the sample begins, in ticks.
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

    /// Returns the path, without the instruction that begins the sample.
    fn path(&self, marked: Marked) -> Vec<OnPath> {
        let mut path = Vec::new();
        let (mut core, mut at) = (marked.core, marked.end);
        while self.cores[core].committed[at].tick > self.begin {
            let cause = self.cause_of_resume(core, at);
            path.push(OnPath {
                core,
                at,
                waited: match cause {
                    Some((via, ..)) => Some(Waited::For(via)),
                    None => self.is_after_halt(core, at).then_some(Waited::Halted),
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

    /// Returns the cycles from the beginning of the sample to `tick`.
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

    /// Returns the timing of each instruction on the path, by core and by the index of the instruction.
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

    /// Returns the timing of an instruction off the path. The timing is the time since the previous instruction of the
    /// same core, or 0 if the core halted in between.
    fn timing_off_path(&self, core: usize, at: usize) -> Timing {
        let committed = &self.cores[core].committed;
        let before = at
            .checked_sub(1)
            .map_or(self.begin, |at| committed[at].tick);
        let since = self.cycles(before);
        Timing {
            at: since,
            cycles: match self.is_after_halt(core, at) {
                true => 0,
                false => self.cycles(committed[at].tick) - since,
            },
            waited: None,
        }
    }

    /// Returns what the cores execute until `end`, as pieces that each belong to one core and are on or off the path.
    /// The pieces are sorted by their beginning.
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

#[cfg(test)]
mod tests;
