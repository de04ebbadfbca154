// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether one run is better or worse than another, cell by cell.

mod median;
mod pairs;

pub use median::{Histogram, Median};
pub use pairs::{Comparison, Difference, Pair, Verdict};
