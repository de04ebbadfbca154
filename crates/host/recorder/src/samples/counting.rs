// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the instructions that all CPUs execute, block by block. Only one thread counts, so nothing comes between the
//! load and the store of a count.

use std::ptr::{from_ref, null_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64};

use critical::{Block, Code, Counts};

/// Instructions that all CPUs have executed, including all of their current blocks; see [`Counts`].
static EXECUTED: [AtomicU64; Counts::LEN] = [const { AtomicU64::new(0) }; Counts::LEN];
/// The block that runs, or null. It may be another CPU's than the one before: if a turn ends within a loop that both
/// run, after a load, [`Block::left_before`] takes the loop for left, and the sample does not add up. QEMU's number of a
/// CPU does not help (see the module above): TPIDR would have to be read at each block.
static CURRENT: AtomicPtr<CountedBlock> = AtomicPtr::new(null_mut());

/// A block, with the counts that it adds to [`EXECUTED`].
pub struct CountedBlock {
    block: Block,
    /// Address of its first instruction.
    at: u64,
    added: Vec<(&'static AtomicU64, u64)>,
}

impl CountedBlock {
    /// Keeps `block`, which begins at address `at`, for ever, since the emulator may run it for ever.
    pub fn keep(block: Block, at: u64) -> &'static Self {
        // Most blocks have instructions of only one kind.
        let numbers = EXECUTED.iter().zip(block.rest(0).to_array());
        let added = numbers.filter(|(_, many)| *many != 0).collect();
        Box::leak(Box::new(Self { block, at, added }))
    }

    /// Returns its code.
    pub fn code(&self) -> Code {
        self.block.code()
    }

    /// Counts the block, which is about to run.
    pub fn enters(&'static self) {
        if let Some(before) = replace_current(Some(self))
            && let Some(first) = before.block.left_before(self.at)
        {
            take_back(before.block.rest(first));
        }
        for (all, many) in &self.added {
            all.store(all.load(Relaxed) + many, Relaxed);
        }
    }
}

fn replace_current(block: Option<&'static CountedBlock>) -> Option<&'static CountedBlock> {
    let block = block.map_or(null_mut(), |block| from_ref(block).cast_mut());
    // SAFETY: null, or one of the blocks that are kept for ever.
    unsafe { CURRENT.swap(block, Relaxed).as_ref() }
}

/// Returns the running block, and how many instructions all CPUs had executed before.
pub fn running() -> Option<(u64, &'static CountedBlock)> {
    // SAFETY: null, or one of the blocks that are kept for ever.
    let block = unsafe { CURRENT.load(Relaxed).as_ref() }?;
    Some((executed(block.block.rest(0)).total(), block))
}

/// The running block ends before the instruction at `pc`, whose access failed. The emulator does not count this
/// instruction either.
pub fn fails(pc: u64) {
    if let Some(current) = replace_current(None) {
        take_back(current.block.rest(current.block.index(pc)));
    }
}

/// An interrupt comes before the instruction at `pc`, maybe before the block after an access to a device.
pub fn interrupts(pc: u64) {
    let current = replace_current(None);
    if let Some(current) = current
        && let Some(first) = current.block.left_before(pc)
    {
        take_back(current.block.rest(first));
    }
}

/// Takes back the counts of instructions that were not executed.
fn take_back(rest: Counts) {
    for (all, many) in EXECUTED.iter().zip(rest.to_array()) {
        all.store(all.load(Relaxed) - many, Relaxed);
    }
}

/// Returns the instructions that all CPUs have executed, without the `rest` of a block.
pub fn executed(rest: Counts) -> Counts {
    let all = EXECUTED.each_ref().map(|number| number.load(Relaxed));
    Counts::from_array(all).since(rest)
}
