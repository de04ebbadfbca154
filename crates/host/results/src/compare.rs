// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges cell by cell whether some runs are better or worse than others.
//! Compares runs with runs, because samples of one run are correlated.
//!
//! [`Comparison`] has the cells with their verdicts, and the cells that one side lacks. [`differences`] lists
//! differences other than the code. Crate `significance` has the statistical tests. docs/significance.md explains them
//! to users.

mod figures;
mod pairs;
mod quantity;
mod setting;

/// The default probability of calling anything better or worse when nothing differs.
pub const LEVEL: f64 = 0.05;

pub use figures::{Compared, Figures, Verdict};
pub use pairs::{Comparison, Lost, Pair};
pub use quantity::Quantity;
pub use setting::{ASPECTS, Differs, Order, differences, order_in_time};
