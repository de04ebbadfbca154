// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread makes every other CPU that runs a thread of this process execute a memory barrier. The kernel interrupts
//! each CPU and waits for it. None of these CPUs is idle. A sample is one such call.

use std::arch::asm;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

use rustix::thread::{MembarrierCommand, membarrier};

use super::SampleBlock;
use crate::{cpus, sample};

/// Calls before the first sample.
const WARM_UP: u32 = 32;

/// Takes the samples of a block.
pub fn run(block: &mut SampleBlock<'_>) -> io::Result<u64> {
    let (&here, others) = block.cpus.split_first().ok_or(io::ErrorKind::NotFound)?;
    membarrier(MembarrierCommand::RegisterPrivateExpedited)?;
    let over = AtomicBool::new(false);
    let ran: Vec<AtomicU64> = others.iter().map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for (&cpu, ran) in others.iter().zip(&ran) {
            let over = &over;
            scope.spawn(move || match cpus::pin(cpu) {
                Ok(()) => run_until_over(over, ran),
                Err(_) => over.store(true, Relaxed),
            });
        }
        let made = take_samples(block, here, &ran, &over);
        over.store(true, Relaxed);
        made
    })
}

fn take_samples(
    block: &mut SampleBlock<'_>,
    here: usize,
    ran: &[AtomicU64],
    over: &AtomicBool,
) -> io::Result<u64> {
    let rounds = || -> Vec<u64> { ran.iter().map(|ran| ran.load(Relaxed)).collect() };
    cpus::pin(here)?;
    // Each thread must run before the first call, since a CPU that does not run one is not interrupted.
    while rounds().contains(&0) {
        if over.load(Relaxed) {
            return Err(io::Error::other("a thread can't be pinned"));
        }
        thread::yield_now();
    }
    let before = rounds();
    for round in 0..WARM_UP + block.count {
        if round == WARM_UP {
            block.begin_block()?;
        }
        let start = sample::begins();
        membarrier(MembarrierCommand::PrivateExpedited)?;
        let end = sample::ends();
        if round >= WARM_UP {
            block.record(end - start);
        }
    }
    let ticks = block.end_block()?;
    match rounds()
        .iter()
        .zip(&before)
        .all(|(now, before)| now > before)
    {
        true => Ok(ticks),
        false => Err(io::Error::other("a CPU did not run meanwhile")),
    }
}

/// Runs until `over`, and counts its rounds in `ran`. In an emulator that runs CPUs one after another, YIELD lets the
/// other CPUs run.
fn run_until_over(over: &AtomicBool, ran: &AtomicU64) {
    while !over.load(Relaxed) {
        ran.fetch_add(1, Relaxed);
        // SAFETY: the instruction is a hint, which changes nothing.
        unsafe { asm!("yield", options(nomem, nostack, preserves_flags)) };
    }
}
