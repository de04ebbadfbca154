// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of blocks whose CPUs take turns. The recorder is a library that only an emulator can load, so its file is
//! compiled here once more.

#![allow(dead_code, missing_docs)]

#[path = "../src/samples/counting.rs"]
mod counting;
#[path = "../src/per_cpu.rs"]
mod per_cpu;

use std::sync::{Mutex, MutexGuard, PoisonError};

use counting::{CountedBlock, executed};
use critical::{Block, Counts, Reasons};

/// `ldr w0, [x1]; cmp w0, #0; b.ne .-8`
const SPIN: [u32; 3] = [0xb940_0020, 0x7100_001f, 0x54ff_ffc1];

/// The counts belong to the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The loop from its instruction `first` on.
fn spin(first: usize) -> &'static CountedBlock {
    let at = 0x1000 + 4 * first as u64;
    let words = SPIN[first..].to_vec();
    let kinds = vec![Reasons::NONE; words.len()];
    CountedBlock::keep(Block::new(at, 1, words, kinds), at)
}

fn total() -> u64 {
    executed(Counts::default()).total()
}

#[test]
fn a_cpu_that_goes_on_within_the_block_of_another_takes_nothing_back() {
    let _alone = alone();
    let before = total();
    spin(0).enters(0);
    // Its turn had ended after the load.
    spin(1).enters(1);
    assert_eq!(total() - before, 5);
    counting::interrupts(2, 0x1004);
    assert_eq!(total() - before, 5);
}

#[test]
fn a_block_that_its_cpu_left_is_taken_back_after_a_turn_of_another() {
    let _alone = alone();
    let before = total();
    spin(0).enters(3);
    spin(0).enters(4);
    // The load was that of a device.
    spin(1).enters(3);
    assert_eq!(total() - before, 1 + 3 + 2);
    counting::interrupts(4, 0x1004);
    assert_eq!(total() - before, 1 + 1 + 2);
}
