// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of what was asked for there is, for a run that was cut short.

use std::fmt;

use crate::job::Job;
use crate::results::{Cell, Results};

/// Numbers of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completeness {
    complete: usize,
    partial: usize,
    missing: usize,
}

impl Completeness {
    /// Of `results`, where `job` was asked for; `None` if its guest has no cells.
    pub fn of(job: &Job, results: &Results) -> Option<Self> {
        if !job.measures() {
            return None;
        }
        let mut planned = 0;
        for &under in &job.unders {
            planned += job.load.plan.cells(&job.machine(under).ok()?).count();
        }
        Some(Self::count(planned, results))
    }

    fn count(planned: usize, results: &Results) -> Self {
        let known = results.cells.len();
        let partial = results.cells.iter().filter(|cell| is_partial(cell)).count();
        Self {
            complete: known - partial,
            partial,
            missing: planned.saturating_sub(known),
        }
    }
}

/// Whether a cell has fewer samples than wake-ups were asked for. One that was
/// skipped has all that it will have.
fn is_partial(cell: &Cell) -> bool {
    cell.stats
        .is_some_and(|stats| stats.count < cell.iterations)
}

impl fmt::Display for Completeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            complete,
            partial,
            missing,
        } = self;
        write!(
            f,
            "cells: {complete} complete, {partial} partial, {missing} missing"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Stats;

    #[test]
    fn cells_are_counted_by_what_they_have() {
        let cell = |count: Option<u64>| Cell {
            iterations: 400,
            stats: count.map(|count| Stats {
                count,
                ..Stats::default()
            }),
            ..Cell::default()
        };
        let results = Results {
            cells: vec![cell(Some(400)), cell(Some(100)), cell(None)],
            ..Results::default()
        };
        assert_eq!(
            Completeness::count(7, &results).to_string(),
            "cells: 2 complete, 1 partial, 4 missing"
        );
        // What the guest lists beyond what was expected is not missing.
        assert_eq!(Completeness::count(1, &results).missing, 0);
    }
}
