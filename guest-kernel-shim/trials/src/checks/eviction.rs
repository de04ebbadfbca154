// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the function that empties the caches before a cold sample: it changes no byte of memory, even if another CPU
//! writes meanwhile.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::outcome::{Failure, ensure};
use arch::layout;
use guest_kernel_shim::{cache_eviction, clock, hypervisor, percpu, workers};

/// Number of times that the caches are emptied.
const TIMES: u64 = 20;

/// Words on many lines, which only this CPU writes.
static OURS: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];
/// A word that the other CPU increments, and a word that ends its loop.
static THEIRS: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// Checks that writes from just before an eviction are visible after it, that code and constants do
/// not change, and that no write of another CPU is lost.
pub fn keeps_memory() -> Result<(), Failure> {
    let image = image_checksum();
    THEIRS.store(0, Release);
    END.store(0, Release);
    workers::run_on_2nd(|| {
        while END.load(Acquire) == 0 {
            let before = THEIRS.load(Relaxed);
            THEIRS.store(before + 1, Release);
            if THEIRS.load(Acquire) != before + 1 {
                END.store(2, Release);
            }
            arch::insn::yield_now();
        }
    });
    let (mut kept, mut moved) = (true, true);
    let mut last = 0;
    for round in 1..=TIMES {
        let value = |n: usize| round << 32 | n as u64;
        for (n, word) in OURS.iter().enumerate() {
            word.store(value(n), Relaxed);
        }
        cache_eviction::evict_wake_path(2);
        let mut ours = OURS.iter().enumerate();
        kept &= ours.all(|(n, word)| word.load(Relaxed) == value(n));
        moved &= clock::wait_for(|| THEIRS.load(Acquire) > last);
        last = THEIRS.load(Acquire);
    }
    let lost = END.swap(1, Release) == 2;
    workers::wait_for_second();
    ensure(kept, "a word is not what was written")?;
    ensure(moved, "the other CPU does not get on")?;
    ensure(!lost, "the other CPU's write is lost")?;
    ensure(image_checksum() == image, "code or constants changed")?;
    if !hypervisor::exists() {
        return Ok(());
    }
    let cpus = percpu::all().len() as u64;
    ensure(hypervisor::evict(cpus - 1), "the last vCPU is refused")?;
    ensure(
        !hypervisor::evict(cpus),
        "a vCPU that is not there is served",
    )
}

/// Returns a checksum of this image's code and constants that depends on the position of each word.
pub fn image_checksum() -> u64 {
    let regions = [layout::text(), layout::rodata()];
    let words = regions.into_iter().flat_map(|region| region.step_by(8));
    words.fold(0, |sum: u64, address| {
        // SAFETY: the linker put these words into this image, and nothing writes them.
        let word = unsafe { (address as *const u64).read() };
        sum.rotate_left(7) ^ word
    })
}
