// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instructions that cores have committed, each with its time. They are divided into blocks.

use std::collections::HashMap;

use cost::SampleMark;

use crate::{Chart, Charted, Code, NO_CELL, Reasons};

/// Largest number of instructions in a block, because an index in a block has only two bytes.
const MOST: usize = 1 << 12;

/// A committed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Time of the commit, in ticks.
    pub tick: u64,
    /// The index of its block.
    pub block: u32,
    /// Its index within the block.
    pub index: u16,
}

/// Everything that a core executed.
#[derive(Clone, Debug, Default)]
pub struct Core {
    /// Its instructions, in order.
    pub committed: Vec<Committed>,
    /// The core's loads, in order: the index of the instruction, and the [`containing_word`].
    pub loads: Vec<(usize, u64)>,
    /// The core's stores, sorted by [`containing_word`] and then by order: the word, and the index of the instruction.
    pub stores: Vec<(u64, usize)>,
    /// Values that the core wrote to ICC_SGI1R_EL1, each with the index of the instruction.
    pub sends: Vec<(usize, u64)>,
    /// Its blocks.
    pub blocks: Vec<Code>,
    numbers: HashMap<Code, u32>,
    /// The block that has not ended yet.
    open: Code,
    /// The current value of X0. `x0_before` has its value before each instruction that may be the mark of a cell, in
    /// order.
    x0: u64,
    x0_before: Vec<(usize, u64)>,
}

impl Core {
    /// Records that the core commits an instruction.
    pub fn commits(&mut self, tick: u64, level: u8, pc: u64, word: u32) {
        let next = self.open.address + 4 * self.open.words.len() as u64;
        let goes_on = (level, pc) == (self.open.level, next) && self.open.words.len() < MOST;
        if !goes_on {
            self.end_block();
            (self.open.level, self.open.address) = (level, pc);
        }
        // In our guest, the mark of a cell is the beginning of a function, so it must begin a block.
        if !goes_on || SampleMark::decode(word) == Some(SampleMark::Cell) {
            self.x0_before.push((self.committed.len(), self.x0));
        }
        self.committed.push(Committed {
            tick,
            block: 0,
            index: self.open.words.len() as u16,
        });
        self.open.words.push(word);
    }

    /// Records that the last instruction accessed memory.
    pub fn accesses(&mut self, address: u64, store: bool) {
        /// Mask and value for a load of a pair of registers, which the simulator reports as a store (DDI 0487K.a,
        /// C4.1.94).
        const PAIR: (u32, u32) = (0x3a40_0000, 0x2840_0000);
        let last = self.open.words.last();
        let loads = last.is_some_and(|word| word & PAIR.0 == PAIR.1);
        let Some(last) = self.committed.len().checked_sub(1) else {
            return;
        };
        match store && !loads {
            true => self.stores.push((containing_word(address), last)),
            false => self.loads.push((last, containing_word(address))),
        }
    }

    /// Records that the last instruction wrote a register.
    pub fn writes(&mut self, name: &str, value: u64) {
        match name {
            "X0" | "W0" => self.x0 = value,
            "icc_sgi1r_el1" => {
                if let Some(last) = self.committed.len().checked_sub(1) {
                    self.sends.push((last, value));
                }
            }
            _ => {}
        }
    }

    /// Ends the last block, and sorts the stores. Called at the end of the trace.
    pub fn finish(&mut self) {
        self.end_block();
        self.stores.sort_unstable();
    }

    fn end_block(&mut self) {
        let code = std::mem::take(&mut self.open);
        let first = self.committed.len() - code.words.len();
        if code.words.is_empty() {
            return;
        }
        let known = self.numbers.get(&code).copied();
        let block = known.unwrap_or_else(|| {
            let number = self.blocks.len() as u32;
            self.blocks.push(code.clone());
            self.numbers.insert(code, number);
            number
        });
        for one in &mut self.committed[first..] {
            one.block = block;
        }
    }
}

/// A counted sample, from the clock read at its beginning to the clock read at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Its cell.
    pub cell: u64,
    /// The core that measures the sample.
    pub core: usize,
    /// The index of the first instruction.
    pub begin: usize,
    /// The index of the last instruction.
    pub end: usize,
}

/// Why the instructions of the cores matter.
pub struct Marks<'c> {
    cores: &'c [Core],
    /// The reasons of each instruction, by core, block and index.
    reasons: Vec<Vec<Vec<Reasons>>>,
    /// The time at which each cell begins, with the number of the cell, in order.
    cells: Vec<(u64, u64)>,
}

impl<'c> Marks<'c> {
    /// Finds the marks that the images of `chart` contain.
    pub fn find(cores: &'c [Core], chart: Chart) -> Self {
        let mut code = Charted::new(chart);
        let kinds = |block: &Code, code: &mut Charted| -> Vec<Reasons> {
            let kinds = code.kinds_of_block(block.level, block.address, &block.words);
            kinds.into_iter().map(|(reasons, _)| reasons).collect()
        };
        // Only some blocks reveal where an image is in memory, so all blocks are examined before the kinds of any block
        // are kept.
        for block in cores.iter().flat_map(|core| &core.blocks) {
            kinds(block, &mut code);
        }
        let mut of_core = |core: &Core| {
            let blocks = core.blocks.iter();
            blocks.map(|block| kinds(block, &mut code)).collect()
        };
        let mut marks = Self {
            cores,
            reasons: cores.iter().map(&mut of_core).collect(),
            cells: Vec::new(),
        };
        for (n, core) in cores.iter().enumerate() {
            let begin = core.x0_before.iter();
            let begin = begin.filter(|(at, _)| marks.reasons(n, *at).has(Reasons::CELL));
            let cells: Vec<_> = begin
                .map(|(at, x0)| (core.committed[*at].tick, *x0))
                .collect();
            marks.cells.extend(cells);
        }
        marks.cells.sort_unstable();
        marks
    }

    /// Returns why an instruction matters.
    pub fn reasons(&self, core: usize, at: usize) -> Reasons {
        let one = &self.cores[core].committed[at];
        self.reasons[core][one.block as usize][usize::from(one.index)]
    }

    /// Returns the cell to which samples at time `tick` belong. The cell may have begun on any core, because the
    /// measuring thread may have moved to another core since.
    fn cell_at(&self, tick: u64) -> u64 {
        let after = self.cells.partition_point(|(begin, _)| *begin <= tick);
        let last = after.checked_sub(1).map(|last| self.cells[last].1);
        last.unwrap_or(NO_CELL)
    }

    /// Returns the samples that the program counted.
    pub fn samples(&self) -> Vec<Marked> {
        let all = self.cores.iter().enumerate();
        let all = all.flat_map(|(core, of_core)| self.samples_of(core, of_core));
        all.filter(|sample| sample.cell != NO_CELL).collect()
    }

    fn samples_of(&self, core: usize, of_core: &Core) -> Vec<Marked> {
        let mut samples = Vec::new();
        let (mut begin, mut ended) = (None, None::<Marked>);
        for (at, one) in of_core.committed.iter().enumerate() {
            let reasons = self.reasons(core, at);
            if reasons.has(Reasons::RECORD) {
                let cell = self.cell_at(one.tick);
                samples.extend(ended.take().filter(|sample| sample.cell == cell));
            }
            if reasons.has(Reasons::BEGIN) {
                (begin, ended) = (Some(at), None);
            }
            if reasons.has(Reasons::END) {
                ended = begin.take().map(|begin| Marked {
                    cell: self.cell_at(one.tick),
                    core,
                    begin,
                    end: at,
                });
            }
        }
        samples
    }
}

/// Returns the address of the eight-byte word that contains `address`. Accesses are compared by these words, because a
/// store may be wider than a load.
#[must_use]
pub const fn containing_word(address: u64) -> u64 {
    address & !7
}
