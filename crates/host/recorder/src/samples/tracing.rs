// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the blocks that samples consist of, if a trace is wanted.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use critical::{Code, Entry, Pieces, Recorded, Sample, Trace, Traces, pieces};

use super::counting::CountedBlock;

/// Maximum number of blocks to keep while samples are open. A CPU that spins for ever never stops entering blocks.
const MOST: usize = 1 << 23;

/// Blocks entered since the first of the open samples began, and the samples counted so far.
#[derive(Default)]
pub struct Tracing {
    /// The file of the trace.
    pub out: String,
    entered: Vec<(u64, &'static CountedBlock)>,
    /// The numbers of the blocks that occur in samples, by the block's address in this process.
    numbers: HashMap<usize, u32>,
    blocks: Vec<Code>,
    samples: HashMap<(u64, Pieces), (Sample, u64)>,
    /// Number of samples whose blocks do not add up.
    lost: u64,
}

impl Tracing {
    /// Returns an empty trace, to be written to the file `out`.
    pub fn new(out: &str) -> Self {
        Self {
            out: out.into(),
            ..Self::default()
        }
    }

    /// Forgets everything, except the block that runs.
    pub fn restart(&mut self, running: Option<(u64, &'static CountedBlock)>) {
        self.entered.clear();
        self.entered.extend(running);
    }

    /// Notes a block, which is about to run, after all CPUs have executed `from` instructions.
    pub fn note_block(&mut self, from: u64, block: &'static CountedBlock) {
        if self.entered.len() < MOST {
            self.entered.push((from, block));
        }
    }

    /// Keeps the blocks of a sample that was counted.
    pub fn keep_sample(&mut self, recorded: &Recorded) {
        let (Some(first), Some(last)) = (recorded.work.first(), recorded.work.last()) else {
            return;
        };
        // Other CPUs' samples may have begun earlier.
        let start = self
            .entered
            .partition_point(|(from, _)| *from <= first.from);
        let end = self.entered.partition_point(|(from, _)| *from < last.to);
        let within = start.saturating_sub(1)..end;
        let mut entries = Vec::with_capacity(within.len());
        for (from, block) in &self.entered[within] {
            let key = std::ptr::from_ref(*block).addr();
            let number = match self.numbers.entry(key) {
                Place::Occupied(known) => *known.get(),
                Place::Vacant(new) => {
                    self.blocks.push(block.code());
                    *new.insert((self.blocks.len() - 1) as u32)
                }
            };
            entries.push(Entry {
                from: *from,
                block: number,
                len: self.blocks[number as usize].words.len() as u64,
            });
        }
        match pieces(&entries, recorded) {
            Some(pieces) => {
                let known = self.samples.entry((recorded.cell, pieces));
                known.or_insert((recorded.sample, 0)).1 += 1;
            }
            None => self.lost += 1,
        }
    }

    /// Forgets the blocks that were entered before all CPUs together had executed `oldest` instructions.
    pub fn forget(&mut self, oldest: u64) {
        let first = self.entered.partition_point(|(from, _)| *from <= oldest);
        // Moving the remaining blocks is only worth the time if many blocks are removed.
        if 2 * first > self.entered.len() {
            self.entered.drain(..first - 1);
        }
    }

    /// Returns the text of the trace's file.
    pub fn take_text(&mut self) -> String {
        let samples = std::mem::take(&mut self.samples).into_iter();
        let mut traces: Vec<Trace> = samples
            .map(|((cell, pieces), (sample, times))| Trace {
                cell,
                times,
                sample,
                pieces,
            })
            .collect();
        // A hash map iterates in a different order in each run.
        traces.sort_by(|one, other| {
            let key = |trace: &Trace| (trace.cell, trace.sample);
            let blocks = |trace: &Trace| -> Vec<_> {
                let pieces = trace.pieces.iter();
                pieces
                    .map(|piece| (piece.block, piece.first, piece.end))
                    .collect()
            };
            let keys = key(one).cmp(&key(other));
            keys.then_with(|| blocks(one).cmp(&blocks(other)))
        });
        let traces = Traces {
            blocks: std::mem::take(&mut self.blocks),
            traces,
            lost: self.lost,
        };
        traces.to_text()
    }
}
