// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out whether the machine has or models caches: if so, loads take longer after their lines
//! have been cleaned and invalidated. [`fidelity::colder`] judges the times.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use fidelity::WALKS;
use pages::clean;
use platform::Region;

use super::answer::{Answer, repeat_trial};
use crate::clock;

/// Number of loads in a walk. Each load waits for the previous load. With a counter that is slower
/// than the core, one load could take less than a tick.
const LOADS: usize = 64;
/// Words between adjacent elements: 256 bytes, so that each element almost always has its own cache
/// line.
const APART: usize = 32;
/// Distance in elements from one load to the next, chosen so that a stride prefetcher has no stride to follow.
const STEP: usize = 37;

/// The elements, each with the index of the next one to load.
#[repr(align(4096))]
struct Chain([AtomicUsize; LOADS * APART]);

static CHAIN: Chain = Chain([const { AtomicUsize::new(0) }; LOADS * APART]);

/// Tests whether loads of cleaned and invalidated lines are slower than loads of cached lines.
pub fn try_caches() -> Answer {
    for place in 0..LOADS {
        let next = (place + STEP) % LOADS * APART;
        CHAIN.0[place * APART].store(next, Relaxed);
    }
    repeat_trial(|_| {
        let (mut warm, mut cold) = ([0; WALKS], [0; WALKS]);
        for (n, (warm, cold)) in warm.iter_mut().zip(&mut cold).enumerate() {
            // The cold walk and the warm walk take turns in going first.
            if n.is_multiple_of(2) {
                *warm = time_warm_walk();
                *cold = time_cold_walk();
            } else {
                *cold = time_cold_walk();
                *warm = time_warm_walk();
            }
        }
        fidelity::colder(warm, cold)
    })
}

fn time_warm_walk() -> u64 {
    time_walk();
    time_walk()
}

fn time_cold_walk() -> u64 {
    time_walk();
    clean(Region {
        base: (&raw const CHAIN) as u64,
        size: size_of::<Chain>() as u64,
    });
    time_walk()
}

/// Returns the ticks that a walk takes; warm and cold walks use the same instructions.
#[inline(never)]
fn time_walk() -> u64 {
    let start = clock::now();
    let mut at = 0;
    for _ in 0..LOADS {
        at = CHAIN.0[at].load(Relaxed);
    }
    core::hint::black_box(at);
    clock::now() - start
}
