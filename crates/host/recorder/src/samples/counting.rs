// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the instructions that all CPUs execute, block by block. Only one thread counts, so no other thread changes a
//! count between its load and its store.

use std::ptr::{from_ref, null_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use critical::{Block, Code, Counts, LoneAccesses};

/// Numbers of instructions that all CPUs have executed, including the whole of the current block; see [`Counts`].
static EXECUTED: [AtomicU64; Counts::LEN] = [const { AtomicU64::new(0) }; Counts::LEN];
/// The block that runs, or null. This block may run on a different CPU from the previous block.
static CURRENT: AtomicPtr<CountedBlock> = AtomicPtr::new(null_mut());

/// The device accesses that the emulator has executed as blocks of their own.
static ALONE: Mutex<LoneAccesses> = Mutex::new(LoneAccesses::new());

/// A block, with the counts that it adds to [`EXECUTED`].
pub struct CountedBlock {
    block: Block,
    /// Address of the block's first instruction.
    at: u64,
    added: Vec<(&'static AtomicU64, u64)>,
    /// Whether this is a lone access whose execution the emulator has not announced so far.
    is_silent: AtomicBool,
}

impl CountedBlock {
    /// Keeps `block`, which begins at address `at`, for ever, since the emulator may run it for ever.
    pub fn keep_forever(block: Block, at: u64) -> &'static Self {
        // Most blocks have instructions of only one kind.
        let numbers = EXECUTED.iter().zip(block.counts_from(0).to_array());
        let added = numbers.filter(|(_, many)| *many != 0).collect();
        let is_silent = AtomicBool::new(block.is_lone_access());
        let known = Box::leak(Box::new(Self {
            block,
            at,
            added,
            is_silent,
        }));
        if known.block.is_lone_access() {
            lock_alone().record_translation(&known.block);
        }
        known
    }

    /// Returns the block's code.
    pub fn code(&self) -> Code {
        self.block.code()
    }

    /// Counts the block, which is about to run.
    pub fn count_entry(&'static self) {
        if self.is_silent.load(Relaxed) && self.is_silent.swap(false, Relaxed) {
            lock_alone().record_entry(&self.block);
        }
        if let Some(before) = replace_current(Some(self)) {
            before.uncount_if_left(self.at);
        }
        for (all, many) in &self.added {
            all.store(all.load(Relaxed) + many, Relaxed);
        }
    }

    /// Subtracts the rest of the block if it was left after an access to a device; execution continues at `next`.
    fn uncount_if_left(&self, next: u64) {
        // Nearly all blocks are followed by code outside of them.
        if !self.block.has_inside(next) {
            return;
        }
        if let Some(first) = self.block.index_where_left(next, &lock_alone()) {
            uncount(self.block.counts_from(first));
        }
    }
}

fn lock_alone() -> MutexGuard<'static, LoneAccesses> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn replace_current(block: Option<&'static CountedBlock>) -> Option<&'static CountedBlock> {
    let before = CURRENT.load(Relaxed);
    // Not a swap, which locks the memory bus for each block: only one thread counts.
    CURRENT.store(
        block.map_or(null_mut(), |block| from_ref(block).cast_mut()),
        Relaxed,
    );
    // SAFETY: null, or one of the blocks that are kept for ever.
    unsafe { before.as_ref() }
}

/// Returns the running block, and how many instructions all CPUs had executed before it.
pub fn running_block() -> Option<(u64, &'static CountedBlock)> {
    // SAFETY: null, or one of the blocks that are kept for ever.
    let block = unsafe { CURRENT.load(Relaxed).as_ref() }?;
    Some((executed_without(block.block.counts_from(0)).total(), block))
}

/// Notes that the running block ends before the instruction at `pc`, whose access failed. The emulator does not count
/// this instruction either.
pub fn end_before_failed(pc: u64) {
    if let Some(current) = replace_current(None) {
        uncount(current.block.counts_from(current.block.index_of(pc)));
    }
}

/// Notes that an interrupt comes before the instruction at `pc`. After an access to a device, this may be the first
/// instruction of the next block.
pub fn end_before_interrupt(pc: u64) {
    if let Some(current) = replace_current(None) {
        current.uncount_if_left(pc);
    }
}

/// Subtracts the counts of instructions that were not executed.
fn uncount(rest: Counts) {
    for (all, many) in EXECUTED.iter().zip(rest.to_array()) {
        all.store(all.load(Relaxed) - many, Relaxed);
    }
}

/// Returns the numbers of instructions that all CPUs have executed, without the instructions in the `rest` of a block.
pub fn executed_without(rest: Counts) -> Counts {
    let all = EXECUTED.each_ref().map(|number| number.load(Relaxed));
    Counts::from_array(all).minus(rest)
}
