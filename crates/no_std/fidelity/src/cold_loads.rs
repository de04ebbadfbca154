// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges whether data takes longer to load after it has been cleaned out of the caches.

use crate::Verdict;

/// Number of walks of each kind in a trial.
pub const WALKS: usize = 16;

/// A cold walk must take more than this multiple of a warm walk's time. A useful cache is many times
/// as fast as the next level; but even an emulator without caches executes code after a cleaning a
/// little slower or faster.
const TIMES: u64 = 2;

/// The answer is yes if at least `YES` percent of all pairs have a longer cold walk, and no if at most
/// `NO` percent do. A walk takes long if the CPU is descheduled during it: if that happens to
/// one walk in eight, 100 % and 0 % become 89 % and 11 %.
const YES: usize = 75;
const NO: usize = 50;

/// Judges the times of walks over the same lines: warm walks came after the lines had just been
/// used, and cold walks came after the lines had been cleaned and invalidated. Compares each cold
/// walk with each warm walk; the verdict has the median of the cold walks.
pub fn colder(warm: [u64; WALKS], mut cold: [u64; WALKS]) -> Verdict {
    let pairs = cold
        .iter()
        .flat_map(|cold| warm.iter().map(move |warm| (cold, warm)));
    let longer = pairs
        .filter(|(cold, warm)| **cold > warm.saturating_mul(TIMES))
        .count();
    cold.sort_unstable();
    let median = hist::of_sorted(&cold, 500).copied().unwrap_or(0);
    match longer * 100 / (WALKS * WALKS) {
        YES.. => Verdict::Yes(median),
        ..=NO => Verdict::No(median),
        _ => Verdict::Void("walks over cleaned lines took now longer, now as long"),
    }
}
