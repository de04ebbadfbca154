// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether what was cleaned out of the caches takes longer to load.

use crate::Verdict;

/// Walks of each kind in a trial.
pub const WALKS: usize = 16;

/// How many times as long a cold walk has to be. A useful cache is many times as fast as the
/// next level; an emulator without caches also executes code after a cleaning a little slower
/// or faster.
const TIMES: u64 = 2;

/// Percentage of pairs for which this has to hold at least for a yes, and at most for a no.
/// A CPU that is away during a walk makes that walk long: if it is away during one in eight,
/// 89 or 11 are left of 100 and 0.
const YES: usize = 75;
const NO: usize = 50;

/// Judges the times of walks over the same lines, some when the lines had just been used,
/// some when they had been cleaned and invalidated: each cold one is held against each warm
/// one. With the median of the cold ones.
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
