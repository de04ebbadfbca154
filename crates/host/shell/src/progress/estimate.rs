// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimates the remaining time.
//!
//! During the first pass, every cell is new. The estimate assumes that the remaining cells take as long, in proportion
//! to their guessed work, as the finished ones. From the second pass on, it assumes that each cell takes as long as in
//! its last pass, and that an ended cell takes no time. Cells can settle and end after [`BALANCED`] passes. The
//! estimate assumes that the share of cells that go on stays as it was so far. Before any cell can settle, it assumes
//! that no cell goes on if cells are expected to settle, or else that all do. So after these passes, the estimate rises
//! only if a pass takes longer than the previous one, and then by that excess for each remaining pass.

use plan::BALANCED;
use results::records::{BootProgress, Size};

/// An estimate that learns from finished cells.
#[derive(Debug)]
pub struct Estimate {
    plan: Size,
    /// Seconds of the last pass over each cell, if there was one.
    costs: Vec<Option<f64>>,
    /// Number of passes over each cell.
    passes: Vec<u32>,
    /// Whether each cell has ended.
    over: Vec<bool>,
    /// The last step, and its time.
    last: BootProgress,
    last_at: f64,
    /// When the first cell began.
    begun: f64,
    /// Whether cells are expected to settle after [`BALANCED`] passes.
    settles: bool,
    /// Number of cells that could have settled, and number of those that did not settle.
    judged: u32,
    unsettled: u32,
}

impl Estimate {
    /// Starts at `now`, in seconds since an arbitrary time. `settles` tells whether cells are expected to settle after
    /// [`BALANCED`] passes.
    pub fn new(plan: Size, settles: bool, now: f64) -> Self {
        let cells = plan.cells as usize;
        Self {
            plan,
            costs: vec![None; cells],
            passes: vec![0; cells],
            over: vec![false; cells],
            last: BootProgress::default(),
            last_at: now,
            begun: now,
            settles,
            judged: 0,
            unsettled: 0,
        }
    }

    /// Returns the number of cells.
    pub fn number_of_cells(&self) -> usize {
        self.over.len()
    }

    /// Notes the progress that was reached at `now`.
    pub fn note_progress(&mut self, step: BootProgress, now: f64) {
        if step.done <= self.last.done || step.done > self.plan.cells * self.plan.passes {
            return;
        }
        // If several cells are done at once, the cells in between have ended, or their lines were left out.
        let new: Vec<usize> = (self.last.done..step.done)
            .filter_map(|place| self.cell(place))
            .filter(|&cell| !self.over[cell])
            .collect();
        let weights: Vec<f64> = new
            .iter()
            .map(|&cell| self.costs[cell].unwrap_or(1.0))
            .collect();
        let all = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        for (&cell, weight) in new.iter().zip(&weights) {
            self.costs[cell] = Some((now - self.last_at) * weight / all);
            self.passes[cell] += 1;
            if self.passes[cell] == BALANCED {
                self.judged += 1;
                self.unsettled += u32::from(!step.ended || self.cell(step.done - 1) != Some(cell));
            }
        }
        if step.ended
            && let Some(cell) = self.cell(step.done - 1)
        {
            self.over[cell] = true;
        }
        (self.last, self.last_at) = (step, now);
    }

    /// Returns the remaining seconds at `now`. `None` before an estimate is possible.
    pub fn seconds_left(&self, now: f64) -> Option<f64> {
        let waited = now - self.last_at;
        let left = if self.last.done < self.plan.cells {
            let per_us = (self.last_at - self.begun) / self.last.done_us as f64;
            let passes = self.plan.passes.max(1) as f64;
            let sure = f64::from(BALANCED).min(passes);
            let passes_expected = sure + (passes - sure) * self.unsettled_share();
            let expected_us = self.plan.guess_us as f64 * passes_expected / passes;
            let left_us = (expected_us - self.last.done_us as f64).max(0.0);
            (self.last.done_us > 0).then_some(per_us * left_us)?
        } else {
            let costs = self.places_left();
            costs
                .filter_map(|(cell, share)| Some(self.costs[cell]? * share))
                .sum()
        };
        // The running cell may still take its estimated time, but not more.
        let current = self.places_left().next();
        let current = current.and_then(|(cell, _)| self.costs[cell]);
        Some((left - waited.min(current.unwrap_or(waited))).max(0.0))
    }

    /// Returns the remaining cells, each as often as it may still run, with the probability that it does.
    fn places_left(&self) -> impl Iterator<Item = (usize, f64)> {
        let places = self.last.done..self.plan.cells * self.plan.passes;
        places
            .filter_map(|place| Some((place, self.cell(place)?)))
            .filter(|&(_, cell)| !self.over[cell])
            .map(|(place, cell)| {
                let judged = self.passes[cell] >= BALANCED;
                let sure = judged || self.pass_at(place) < u64::from(BALANCED);
                (cell, if sure { 1.0 } else { self.unsettled_share() })
            })
    }

    /// Returns the share of cells that are not settled after [`BALANCED`] passes.
    fn unsettled_share(&self) -> f64 {
        match (self.judged, self.settles) {
            (0, true) => 0.0,
            (0, false) => 1.0,
            (judged, _) => f64::from(self.unsettled) / f64::from(judged),
        }
    }

    /// Returns the pass that contains `place`, a position in the order of all passes.
    fn pass_at(&self, place: u64) -> u64 {
        place / self.plan.cells.max(1)
    }

    /// Returns the cell at `place` in the order of all passes.
    pub fn cell(&self, place: u64) -> Option<usize> {
        let cells = self.plan.cells.max(1);
        let (pass, step) = ((place / cells) as u32, place % cells);
        let cell = match plan::is_forwards(pass) {
            true => step,
            false => cells - 1 - step,
        };
        usize::try_from(cell)
            .ok()
            .filter(|&cell| cell < self.costs.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PASSES: u64 = plan::PASSES as u64;

    /// Runs cells that take `seconds`, varied by up to `noise`. Every `settling`th cell ends after two passes.
    /// Returns the estimates after each step.
    fn run(seconds: &[f64], noise: f64, settling: usize) -> Vec<(u64, f64, f64)> {
        let cells = seconds.len() as u64;
        let plan = Size {
            cells,
            passes: PASSES,
            guess_us: cells * PASSES * 100,
            ..Size::default()
        };
        let (mut estimate, mut now, mut seen) = (Estimate::new(plan, false, 5.0), 5.0, Vec::new());
        for place in 0..cells * PASSES {
            let (pass, cell) = (place / cells, estimate.cell(place).unwrap());
            let settles = cell % settling == 0;
            if settles && pass >= 2 {
                continue;
            }
            let sign = if (place * 7919) % 13 < 6 { 1.0 } else { -1.0 };
            now += seconds[cell] * (1.0 + noise * sign);
            let step = BootProgress {
                done: place + 1,
                of: cells * PASSES,
                done_us: (place + 1) * 100,
                ended: pass == PASSES - 1 || settles && pass == 1,
            };
            estimate.note_progress(step, now);
            seen.push((pass, now, estimate.seconds_left(now).unwrap()));
        }
        seen
    }

    #[test]
    fn after_the_first_pass_it_falls_and_is_right() {
        // A few cells take a thousand times as long as the others, and come last.
        let seconds: Vec<f64> = (0..40).map(|n| if n < 36 { 0.01 } else { 10.0 }).collect();
        let seen = run(&seconds, 0.0, 1000);
        let end = seen.last().unwrap().1;
        let after: Vec<_> = seen.iter().filter(|(pass, ..)| *pass > 0).collect();
        for pair in after.windows(2) {
            assert!(pair[1].2 <= pair[0].2 + 1e-9, "{pair:?}");
        }
        // Cell 0 ends after two passes, which is not predictable.
        for (_, now, left) in &after {
            assert!((left - (end - now)).abs() <= 2.0 * seconds[0] + 1e-9);
        }
        assert!(seen.last().unwrap().2 < 1e-9);
    }

    #[test]
    fn what_has_ended_is_not_waited_for() {
        let seconds: Vec<f64> = (1..9).map(f64::from).collect();
        let seen = run(&seconds, 0.0, 2);
        let end = seen.last().unwrap().1;
        let after = seen.iter().filter(|(pass, ..)| *pass >= 2);
        for (_, now, left) in after {
            assert!(
                (left - (end - now)).abs() < 1e-9,
                "{left} at {now}, of {end}"
            );
        }
    }

    #[test]
    fn while_a_cell_runs_it_falls_by_no_more_than_the_cell_should_take() {
        let plan = Size {
            cells: 2,
            passes: PASSES,
            guess_us: 800,
            ..Size::default()
        };
        let mut estimate = Estimate::new(plan, false, 0.0);
        assert_eq!(estimate.seconds_left(1.0), None);
        for (done, now) in [(1, 1.0), (2, 3.0)] {
            let step = BootProgress {
                done,
                of: 8,
                done_us: done * 100,
                ended: false,
            };
            estimate.note_progress(step, now);
        }
        // Next is the second cell, which took two seconds.
        assert_eq!(estimate.seconds_left(3.0), Some(9.0));
        assert_eq!(estimate.seconds_left(4.0), Some(8.0));
        assert_eq!(estimate.seconds_left(60.0), Some(7.0));
    }

    #[test]
    fn passes_that_settled_cells_do_not_take_are_not_waited_for() {
        let plan = Size {
            cells: 4,
            passes: PASSES,
            guess_us: 4 * PASSES * 100,
            ..Size::default()
        };
        let mut estimate = Estimate::new(plan, true, 0.0);
        let mut step = |done: u64, ended| {
            estimate.note_progress(
                BootProgress {
                    done,
                    of: 4 * PASSES,
                    done_us: done * 100,
                    ended,
                },
                done as f64,
            );
            estimate.seconds_left(done as f64).unwrap()
        };
        // Two passes of four seconds are expected.
        assert_eq!(step(1, false), 7.0);
        assert_eq!(step(4, false), 4.0);
        assert_eq!(step(5, true), 3.0);
        // Half of the cells go on: this one for two passes, and one of the two that are left.
        assert_eq!(step(6, false), 2.0 + 2.0 + 2.0);
    }

    proptest! {
        #[test]
        fn it_rises_by_no_more_than_what_took_longer(
            seconds in proptest::collection::vec(0.001f64..20.0, 1..40), noise in 0.0f64..0.5, settling in 1usize..9) {
            let seen = run(&seconds, noise, settling);
            let most = seconds.iter().copied().fold(0.0, f64::max);
            let after = seen.iter().filter(|(pass, ..)| *pass >= u64::from(BALANCED)).collect::<Vec<_>>();
            for pair in after.windows(2) {
                // A pass takes at most 2 * noise more than the one before, and two may follow.
                let bound = most * 2.0 * noise * (PASSES - 2) as f64;
                prop_assert!(pair[1].2 <= pair[0].2 + bound + 1e-9, "{:?}", pair);
            }
        }
    }
}
