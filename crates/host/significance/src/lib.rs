// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges whether figures of repeated runs differ, and which difference would have been detected.
//!
//! A run is one boot, and gives one figure for each quantity. Samples within a
//! run are correlated: the host's load, the layout of memory and the caches stay the
//! same for many of them. So runs are compared, however many samples each run has.
//!
//! | question | answer | method |
//! |---|---|---|
//! | do two sets of runs differ | [`p_value`] | exact rank sum test |
//! | do pairs of figures differ | [`signed_p_value`] | exact signed rank test |
//! | which of many figures differ | [`holm_adjusted`] | Holm's step-down procedure |
//! | how many runs do so many tests need | [`runs_needed`] | the smallest p that ranks can give |
//! | what difference would have been seen | [`detectable_shift`] | the power of the test, for runs spread as these are |
//! | how many runs show a given difference | [`runs_to_see`] | the power of the test |
//!
//! All methods rely on one condition: if the two sides are the same, any order of their runs is as likely as any
//! other. Alternating the runs of A and B (A B B A) ensures this. Running all of A before B does not ensure this, if
//! the host changes in between.

#![forbid(unsafe_code)]

mod family;
mod power;
mod rank;
mod signed;

pub use family::{FEWEST, holm_adjusted, runs_needed};
pub use power::{LADDER, POWER, detectable_shift, residuals, runs_to_see};
pub use rank::{least_p_value, p_value};
pub use signed::signed_p_value;

/// Returns the median of figures, which is the figure with the rank that all percentiles use ([`hist::rank`]). Returns
/// `None` without figures.
pub fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    hist::of_sorted(&sorted, 500).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0]), Some(1.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
    }
}
