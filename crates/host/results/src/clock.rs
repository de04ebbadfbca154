// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core's clock frequency during the passes of a cell, and whether it changed.
//!
//! If a core is slower in one pass, every path in that pass takes longer, as it would with slower code. So the guest
//! reads its core's clock before and after each pass, if it can, and a cell whose clock changed is marked. The core is
//! the one that measures: the first CPU, or the sender of a pair. Cores have different clocks, so each core is compared
//! only with itself.

use std::collections::BTreeMap;

use crate::records::CellRecords;
use crate::{Cell, Results};

/// If readings of one clock differ by at most this fraction, the clock counts as unchanged. A reading is accurate
/// to 1 in 200, and two readings may be wrong in opposite directions. The smallest steps in which cores change their
/// clocks are about 100 MHz at about 3 GHz.
pub const MOVED: f64 = 0.02;

/// Returns the frequency, in Hz, of each measuring CPU in a boot's first pass. The keys are the CPUs' numbers as text.
/// Each value is the first frequency that was read in any of the CPU's cells. `cells` is in the order of the first
/// pass.
pub fn first_hz(cells: &[CellRecords]) -> BTreeMap<&str, u64> {
    let mut first = BTreeMap::new();
    for cell in cells {
        if let Some(hz) = known_hz(&cell.core_hz).next() {
            first.entry(cell.measuring_cpu()).or_insert(hz);
        }
    }
    first
}

/// Returns the difference between the highest and the lowest of the frequencies in `passes` (one at the beginning
/// and one at the end of each pass) and `first`, as a share of the highest. `None` if this share is at most
/// [`MOVED`].
pub fn frequency_shift(first: Option<u64>, passes: &[[u64; 2]]) -> Option<f64> {
    let (low, high) = hz_range(known_hz(passes))?;
    let (low, high) = hz_range([low, high].into_iter().chain(first))?;
    let share = (high - low) as f64 / high as f64;
    // The share is rounded, because readings are no more accurate than that.
    (share > MOVED).then(|| (share * 1000.0).round() / 1000.0)
}

/// Returns the frequencies that were read, except 0, which means that the clock did not advance.
fn known_hz(passes: &[[u64; 2]]) -> impl Iterator<Item = u64> {
    passes.iter().flatten().copied().filter(|&hz| hz != 0)
}

fn hz_range(mut hz: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
    let one = hz.next()?;
    Some(hz.fold((one, one), |(low, high), hz| (low.min(hz), high.max(hz))))
}

impl Cell {
    /// Returns the lowest and the highest frequency of the core during its passes, in Hz.
    pub fn core_hz(&self) -> Option<(u64, u64)> {
        hz_range(known_hz(&self.pass_core_hz))
    }
}

impl Results {
    /// Returns the median of the core's frequencies in all passes, in Hz.
    pub fn core_hz_of_passes(&self) -> Option<u64> {
        let cells = self.cells.iter();
        let mut all: Vec<u64> = cells
            .flat_map(|cell| known_hz(&cell.pass_core_hz))
            .collect();
        all.sort_unstable();
        hist::of_sorted(&all, 500).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GHZ: u64 = 1_000_000_000;

    /// Returns the clock readings of `cells` cells in four passes, which run forwards, backwards, backwards and
    /// forwards. `hz` returns the frequency at a given time.
    fn run(cells: usize, hz: impl Fn(u64) -> u64) -> Vec<Vec<[u64; 2]>> {
        let mut found = vec![Vec::new(); cells];
        let mut time = 0;
        for pass in 0..plan::PASSES {
            for step in 0..cells {
                let cell = match plan::is_forwards(pass) {
                    true => step,
                    false => cells - 1 - step,
                };
                found[cell].push([hz(time), hz(time + 1)]);
                time += 2;
            }
        }
        found
    }

    fn marks(run: &[Vec<[u64; 2]>]) -> Vec<bool> {
        let between = vec!["0,1"; run.len()];
        marks_between(&between, run)
    }

    /// Like [`marks`], for cells that belong to the CPU pairs in `pairs`, one pair per cell.
    fn marks_between(pairs: &[&str], run: &[Vec<[u64; 2]>]) -> Vec<bool> {
        let cells = pairs.iter().zip(run).map(|(pair, passes)| CellRecords {
            fields: [("pair".into(), (*pair).into())].into(),
            core_hz: passes.clone(),
            ..CellRecords::default()
        });
        let cells: Vec<CellRecords> = cells.collect();
        let first = first_hz(&cells);
        let moved = |cell: &CellRecords| {
            let first = first.get(cell.measuring_cpu()).copied();
            frequency_shift(first, &cell.core_hz).is_some()
        };
        cells.iter().map(moved).collect()
    }

    /// The readings have the largest possible errors, in either direction.
    #[test]
    fn a_steady_clock_is_never_marked() {
        assert_eq!(marks(&run(5, |_| 3 * GHZ)), [false; 5]);
        let wrong = |time| 3 * GHZ + (time % 3) * (3 * GHZ / 200) - 3 * GHZ / 200;
        assert_eq!(marks(&run(5, wrong)), [false; 5]);
    }

    #[test]
    fn one_step_marks_each_cell_that_was_run_behind_it() {
        // The first change of frequency is during the first pass, in the fourth of five cells.
        let step = |at: u64| move |time| if time < at { 3 * GHZ } else { 29 * GHZ / 10 };
        // All five cells have passes after the step.
        assert_eq!(marks(&run(5, step(7))), [true; 5]);
        // This change is in the last pass, between the third and the fourth cell.
        assert_eq!(marks(&run(5, step(36))), [false, false, false, true, true]);
        // This change is during the last cell of the last pass.
        let last = marks(&run(5, step(39)));
        assert_eq!(last, [false, false, false, false, true]);
    }

    /// No reading differs much from the previous reading.
    #[test]
    fn a_slow_drift_is_found_by_the_runs_first_pass() {
        let drift = |time| 3 * GHZ - time * (GHZ / 1000);
        let run = run(200, drift);
        let steps = run.iter().flatten().map(|[begin, end]| begin - end);
        assert!(steps.max().unwrap() < GHZ / 100);
        // The first two passes of the last cell are consecutive, so its clock hardly changes between them.
        assert!(frequency_shift(None, &run[199][..2]).is_none());
        assert!(marks(&run)[199]);
        assert_eq!(frequency_shift(Some(3 * GHZ), &run[199][..1]), Some(0.133));
    }

    #[test]
    fn what_was_not_seen_is_no_frequency() {
        assert_eq!(frequency_shift(None, &[]), None);
        assert_eq!(frequency_shift(Some(GHZ), &[]), None);
        assert_eq!(frequency_shift(Some(GHZ), &[[0, GHZ], [GHZ, 0]]), None);
        assert_eq!(frequency_shift(Some(GHZ), &[[0, 0]]), None);
        let cell = |passes: &[[u64; 2]]| CellRecords {
            core_hz: passes.to_vec(),
            ..CellRecords::default()
        };
        assert_eq!(first_hz(&[cell(&[]), cell(&[[0, 2]])]), [("0", 2)].into());
    }

    /// A big core is faster than a little core, but neither core changes its clock.
    #[test]
    fn a_core_is_compared_with_itself() {
        let (little, big) = ([18 * GHZ / 10; 2], [24 * GHZ / 10; 2]);
        let run = [vec![little; 4], vec![big; 4], vec![little; 4], vec![big; 4]];
        let pairs = ["0,4", "4,0", "0,5", "4,5"];
        assert_eq!(marks_between(&pairs, &run), [false; 4]);
        assert_eq!(marks(&run), [false, true, false, true]);
        let slower = [
            vec![little; 4],
            vec![big; 4],
            vec![little; 4],
            vec![little; 4],
        ];
        let marks = marks_between(&pairs, &slower);
        assert_eq!(marks, [false, false, false, true]);
    }
}
