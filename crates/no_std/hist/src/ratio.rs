// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts values of one clock to units of another: an exact ratio, found by reading both clocks.
//!
//! Samples are stored as read, and are converted when they are written. The conversion is monotone,
//! so quantiles stay quantiles.

use core::fmt;

use crate::of_sorted;

/// Two measurements of a ratio may differ by 1/100 at most. Each measurement is only as precise as
/// a reading, and on an out-of-order core, readings take different times.
const STEADY: u128 = 100;
/// A ratio counts as a whole number if it differs from that number by at most 1/500. The limit is stricter than
/// [`STEADY`], because this ratio is taken over the whole measurement, and not over one part of it.
const WHOLE: u128 = 500;

/// The progress of two clocks during the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Units of the clock to convert to.
    pub wanted: u64,
    /// Units of the clock that the values were read from.
    pub read: u64,
}

/// The reason why measurements give no ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// A clock stood still.
    Stands,
    /// The ratio changed during the measurement; these are the smallest and the largest ratio.
    Varies(Ratio, Ratio),
}

impl Ratio {
    /// Converts a value of the read clock to units of the wanted clock, rounded to the nearest
    /// unit. The result saturates.
    #[must_use]
    pub fn convert(&self, value: u64) -> u64 {
        let (wanted, read) = (u128::from(self.wanted), u128::from(self.read.max(1)));
        let converted = (u128::from(value) * wanted + read / 2) / read;
        u64::try_from(converted).unwrap_or(u64::MAX)
    }

    /// Whether both clocks run at the same rate.
    #[must_use]
    pub const fn is_one(&self) -> bool {
        self.wanted == self.read
    }

    /// Returns the ratio over all of `parts`, which follow one another, if the ratios of the parts
    /// are nearly equal.
    ///
    /// # Errors
    /// Returns [`Unusable`], which names the defect of the parts.
    pub fn steady(parts: &[Self]) -> Result<Self, Unusable> {
        let total = |of: fn(&Self) -> u64| parts.iter().map(of).fold(0, u64::saturating_add);
        let whole = Self {
            wanted: total(|part| part.wanted),
            read: total(|part| part.read),
        };
        let stands = |part: &Self| part.wanted == 0 || part.read == 0;
        if parts.is_empty() || parts.iter().any(stands) {
            return Err(Unusable::Stands);
        }
        let by_size = |a: &&Self, b: &&Self| a.cross_product(b).cmp(&b.cross_product(a));
        let (low, high) = (parts.iter().min_by(by_size), parts.iter().max_by(by_size));
        let (low, high) = (*low.unwrap_or(&whole), *high.unwrap_or(&whole));
        if !low.is_near(&high, STEADY) {
            return Err(Unusable::Varies(low, high));
        }
        Ok(whole)
    }

    /// Returns the ratio for conversions: the nearest whole number if it is close enough, otherwise
    /// the ratio itself. So clocks of the same rate have the ratio 1, despite imprecise readings.
    #[must_use]
    pub fn nearly_whole(self) -> Self {
        let nearest = Self {
            wanted: self.convert(1),
            read: 1,
        };
        match self.is_near(&nearest, WHOLE) {
            true => nearest,
            false => self,
        }
    }

    /// Returns the median of ratios measured one after another, in hertz of the wanted clock if the
    /// other clock has `read_hz`. A single disturbed reading does not change the median. Returns
    /// `None` if a clock stood still, or if there are no ratios.
    #[must_use]
    pub fn middle<const N: usize>(mut parts: [Self; N], read_hz: u64) -> Option<u64> {
        let stands = |part: &Self| part.wanted == 0 || part.read == 0;
        if parts.is_empty() || parts.iter().any(stands) {
            return None;
        }
        parts.sort_unstable_by(|a, b| a.cross_product(b).cmp(&b.cross_product(a)));
        Some(of_sorted(&parts, 500)?.convert(read_hz))
    }

    /// Returns a product. Comparing it with `other.cross_product(self)` compares the ratios.
    fn cross_product(&self, other: &Self) -> u128 {
        u128::from(self.wanted) * u128::from(other.read)
    }

    /// Whether the two ratios differ by at most one part in `precision`.
    fn is_near(&self, other: &Self, precision: u128) -> bool {
        let (a, b) = (self.cross_product(other), other.cross_product(self));
        a.abs_diff(b).saturating_mul(precision) <= a.min(b)
    }
}

/// Prints the ratio with three decimals, truncated.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = u128::from(self.wanted) * 1000 / u128::from(self.read.max(1));
        write!(f, "{}.{:03}", thousandths / 1000, thousandths % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ratio(wanted: u64, read: u64) -> Ratio {
        Ratio { wanted, read }
    }

    #[test]
    fn a_steady_ratio_is_that_of_the_whole() {
        let parts = [ratio(103_310, 1000), ratio(103_320, 1000)];
        let whole = Ratio::steady(&parts).unwrap();
        assert_eq!(whole, ratio(206_630, 2000));
        assert_eq!(whole.to_string(), "103.315");
        assert_eq!((whole.convert(0), whole.convert(10)), (0, 1033));
    }

    #[test]
    fn clocks_that_go_alike_give_exact_values() {
        let read = Ratio::steady(&[ratio(10_003, 10_000), ratio(9_998, 10_001)]).unwrap();
        assert_eq!(read, ratio(20_001, 20_001));
        let alike = ratio(10_003, 10_000).nearly_whole();
        assert!(alike.is_one());
        assert_eq!(alike.convert(u64::MAX), u64::MAX);
        assert_eq!(ratio(2001, 1000).nearly_whole(), ratio(2, 1));
        assert_eq!(ratio(2005, 1000).nearly_whole(), ratio(2005, 1000));
        // A clock far slower than the counter has no nearest whole number.
        assert_eq!(ratio(1, 1000).nearly_whole(), ratio(1, 1000));
    }

    #[test]
    fn what_stands_or_varies_is_refused() {
        assert_eq!(Ratio::steady(&[]), Err(Unusable::Stands));
        for stands in [ratio(0, 1000), ratio(1000, 0)] {
            let parts = [ratio(1000, 1000), stands];
            assert_eq!(Ratio::steady(&parts), Err(Unusable::Stands));
        }
        let (slow, fast) = (ratio(100_000, 1000), ratio(101_300, 1000));
        let varies = Err(Unusable::Varies(slow, fast));
        assert_eq!(Ratio::steady(&[fast, slow]), varies);
        assert!(Ratio::steady(&[slow, ratio(100_900, 1000)]).is_ok());
    }

    #[test]
    fn the_middle_is_not_moved_by_a_reading_in_which_something_else_ran() {
        let core = |parts| Ratio::middle(parts, 25_000_000);
        let (fast, away) = (ratio(10_400, 100), ratio(10_400, 5000));
        for parts in [[fast, away, fast], [away, fast, fast], [fast; 3]] {
            assert_eq!(core(parts), Some(2_600_000_000));
        }
        assert_eq!(core([away, fast, away]), Some(52_000_000));
        assert_eq!(core([fast, ratio(0, 100), fast]), None);
        assert_eq!(core([fast, ratio(100, 0), fast]), None);
        assert_eq!(Ratio::middle([], 1), None);
    }

    proptest! {
        #[test]
        fn values_keep_their_order_and_are_the_nearest(wanted in 1u64..1 << 40, read in 1u64..1 << 40,
            a in 0u64..1 << 40, b in 0u64..1 << 40) {
            let ratio = ratio(wanted, read);
            prop_assert_eq!(ratio.convert(a) <= ratio.convert(b), a <= b || ratio.convert(a) == ratio.convert(b));
            let exact = u128::from(a) * u128::from(wanted);
            let near = u128::from(ratio.convert(a)) * u128::from(read);
            if ratio.convert(a) != u64::MAX {
                prop_assert!(exact.abs_diff(near) * 2 <= u128::from(read));
            }
        }

        #[test]
        fn nothing_that_is_measured_overflows(parts in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..5)) {
            let parts: Vec<Ratio> = parts.into_iter().map(|(wanted, read)| ratio(wanted, read)).collect();
            if let Ok(steady) = Ratio::steady(&parts) {
                let _ = (steady.convert(u64::MAX), steady.to_string());
            }
        }
    }
}
