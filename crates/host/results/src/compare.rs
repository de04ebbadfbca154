// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges for each cell whether some runs are better or worse than other runs. The unit of comparison is the run,
//! because samples of one run are correlated.
//!
//! [`Comparison`] has the cells with their verdicts, and the cells that one side lacks. [`differences`] lists
//! differences between the runs other than those in their code. Crate `significance` has the statistical tests.
//! docs/significance.md explains them to users.

mod figures;
mod pairs;
mod quantity;
mod setting;

/// The default probability that any figure is called better or worse although nothing differs.
pub const LEVEL: f64 = 0.05;

pub use figures::{Compared, Figures, Verdict};
pub use pairs::{Comparison, Lost, Pair};
pub use quantity::Quantity;
pub use setting::{ASPECTS, Differs, Order, differences, order_in_time};
