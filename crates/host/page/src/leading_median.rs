// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses which of a cell's medians leads: the one to show where there is room for one, and to compute
//! ratios from.

use plan::Workload;
use results::{Cell, Results, Stats};

use crate::path;

/// Quantity that leads in cells that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The path from the waker's store to the task, without bookkeeping: where the
    /// samples are the work of all CPUs, and all cells have a known path.
    Path,
    /// The sample itself.
    Sample,
}

impl By {
    /// Chooses for `cells`: the path if all of them have it.
    pub fn of(cells: &[&Cell]) -> Self {
        match path::of_all(cells) {
            true => Self::Path,
            false => Self::Sample,
        }
    }

    /// Chooses for the cells of one workload of a run.
    pub fn of_workload(results: &Results, workload: Workload) -> Self {
        match results.knows_paths(workload) {
            true => Self::Path,
            false => Self::Sample,
        }
    }

    /// Returns the median that leads; `None` without one, or if it is of too few samples.
    pub fn median(self, cell: &Cell) -> Option<u64> {
        let stats = match self {
            Self::Path => cell.critical.as_ref().map(|critical| critical.net),
            Self::Sample => cell.stats,
        };
        let stats = stats.filter(|stats| stats.supports(500));
        stats.map(|stats| stats.p50)
    }

    /// Returns the distribution of this quantity.
    pub fn stats(self, cell: &Cell) -> Option<Stats> {
        match self {
            Self::Path => cell.critical.as_ref().map(|critical| critical.path),
            Self::Sample => cell.stats,
        }
    }

    /// Returns its values, with the number of each.
    pub fn histogram(self, cell: &Cell) -> &[(u64, u64)] {
        let all = match self {
            Self::Path => cell.critical.as_ref().map(|critical| &critical.histogram),
            Self::Sample => cell.histograms.get("total"),
        };
        all.map_or(&[], Vec::as_slice)
    }

    /// Returns the words after the unit at the end of a clause: ` on the path, bookkeeping left out`, or
    /// nothing.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Path => " on the path, bookkeeping left out",
            Self::Sample => "",
        }
    }

    /// Likewise in the middle of a clause.
    pub const fn between(self) -> &'static str {
        match self {
            Self::Path => " on the path, bookkeeping left out,",
            Self::Sample => "",
        }
    }
}
