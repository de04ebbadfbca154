// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether some runs are better or worse than others, cell by
//! cell: compares runs with runs, since samples of one run are correlated.
//!
//! [`Comparison`] has the cells with their verdicts, and what one side lacks;
//! [`differences`] lists differences other than the code; crate `significance`
//! has the tests. docs/significance.md is for users.

mod figures;
mod pairs;
mod quantity;
mod setting;

/// Default probability that anything is called better or worse if nothing is.
pub const LEVEL: f64 = 0.05;

pub use figures::{Compared, Figures, Verdict};
pub use pairs::{Comparison, Lost, Pair};
pub use quantity::Quantity;
pub use setting::{ASPECTS, Differs, Order, differences, order};
