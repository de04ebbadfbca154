// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the complete, partial and missing cells of a run that was cut short.

use std::fmt;

use results::Results;

use crate::job::Job;

/// Numbers of complete, partial and missing cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completeness {
    complete: usize,
    partial: usize,
    missing: usize,
}

impl Completeness {
    /// Counts the cells in `results` against the cells that `job` requested. `None` if the job's guest has no
    /// cells.
    pub fn of(job: &Job, results: &Results) -> Option<Self> {
        if !job.measures() {
            return None;
        }
        let mut planned = 0;
        for &under in &job.unders {
            planned += job.load.plan.cells(&job.machine(under).ok()?).count();
        }
        Some(Self::count_cells(planned * job.repeat, results))
    }

    fn count_cells(planned: usize, results: &Results) -> Self {
        let known = results.cells.len();
        let partial = results.cells.iter().filter(|cell| cell.is_part()).count();
        Self {
            complete: known - partial,
            partial,
            missing: planned.saturating_sub(known),
        }
    }
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
    use results::Cell;

    #[test]
    fn cells_are_counted_by_what_they_have() {
        let cell = |passes, ended| Cell {
            passes,
            passes_planned: 4,
            ended,
            ..Cell::default()
        };
        let skipped = Cell {
            skipped: Some("needs EL2".into()),
            ..Cell::default()
        };
        let results = Results {
            cells: vec![cell(2, Some(plan::End::Settled)), cell(3, None), skipped],
            ..Results::default()
        };
        assert_eq!(
            Completeness::count_cells(7, &results).to_string(),
            "cells: 2 complete, 1 partial, 4 missing"
        );
        // The guest may list more cells than expected; the number of missing cells is then 0.
        assert_eq!(Completeness::count_cells(1, &results).missing, 0);
    }
}
