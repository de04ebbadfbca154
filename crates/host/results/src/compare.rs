// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether what some runs measured is better or worse than what others did, cell by
//! cell: runs against runs, since samples of one run are alike.
//!
//! [`Comparison`] has the cells with their verdicts, and what one side lacks;
//! [`differences`] tells what else than the code differs; crate `significance`
//! has the tests. docs/significance.md is for users.

mod figures;
mod pairs;
mod quantity;
mod setting;

/// Probability that anything is called better or worse if nothing is, unless asked otherwise.
pub const LEVEL: f64 = 0.05;

pub use figures::{Compared, Figures, Verdict};
pub use pairs::{Comparison, Lost, Pair};
pub use quantity::Quantity;
pub use setting::{ASPECTS, Differs, Order, differences, order};
