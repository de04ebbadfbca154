// SPDX-License-Identifier: MIT OR Apache-2.0
//! menu's typical interval (M4).

/// How many samples menu keeps.
pub(crate) const SAMPLES: usize = 8;

/// No answer, and a sample that is not known.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// Outliers no longer leave once so few samples are kept.
const FEW: usize = SAMPLES * 3 / 4;

/// M4a: the typical interval in us, outliers leaving at the upper end.
///
/// `beaten_by` is the timer's prediction in us where the smallest sample must be below it (6.2).
pub(crate) fn trimmed_above(samples: &[u32; SAMPLES], beaten_by: Option<u32>) -> u32 {
    let mut kept: Vec<u32> = samples
        .iter()
        .copied()
        .filter(|&us| us <= i32::MAX as u32)
        .collect();
    loop {
        let smallest = kept.iter().copied().min().unwrap_or(UNKNOWN);
        let largest = kept.iter().copied().max().unwrap_or(0);
        let pointless = match beaten_by {
            Some(timer_us) => smallest >= timer_us,
            None => largest == 0,
        };
        if pointless || kept.is_empty() {
            return UNKNOWN;
        }
        let count = kept.len() as u64;
        let mean = kept.iter().map(|&us| u64::from(us)).sum::<u64>() / count;
        let squares: u64 = kept
            .iter()
            .map(|&us| u64::from(us).abs_diff(mean).pow(2))
            .sum();
        if let Some(answer) = settled(mean, squares / count, kept.len()) {
            return answer;
        }
        if kept.len() <= FEW {
            return UNKNOWN;
        }
        kept.retain(|&us| us < largest);
    }
}

/// M4b: the typical interval in us, outliers leaving at both ends.
///
/// `else_maximum` is M4c: what is left of four samples or more is answered by its maximum.
pub(crate) fn trimmed_both(samples: &[u32; SAMPLES], else_maximum: bool) -> u32 {
    let mut kept: Vec<u32> = samples
        .iter()
        .copied()
        .filter(|&us| us != UNKNOWN)
        .collect();
    loop {
        let largest = kept.iter().copied().max().unwrap_or(0);
        if largest == 0 {
            return UNKNOWN;
        }
        let smallest = kept.iter().copied().min().unwrap_or(0);
        let count = kept.len() as u64;
        let mean = kept.iter().map(|&us| u64::from(us)).sum::<u64>() / count;
        let squares = kept
            .iter()
            .map(|&us| u64::from(us).wrapping_mul(u64::from(us)))
            .fold(0_u64, u64::wrapping_add);
        let variance = (squares / count).wrapping_sub(mean.wrapping_mul(mean));
        if let Some(answer) = settled(mean, variance, kept.len()) {
            return answer;
        }
        if kept.len() <= FEW {
            let answers = else_maximum && kept.len() >= SAMPLES / 2;
            return if answers { largest } else { UNKNOWN };
        }
        if mean - u64::from(smallest) > u64::from(largest) - mean {
            kept.retain(|&us| us > smallest);
        } else {
            kept.retain(|&us| us < largest);
        }
    }
}

/// Whether samples of this mean (us) and variance (us²) are alike enough: then the mean.
fn settled(mean: u64, variance: u64, count: usize) -> Option<u32> {
    let relative =
        variance <= u64::MAX / 36 && mean.wrapping_mul(mean) > variance * 36 && count >= FEW;
    (relative || variance <= 400).then_some(mean as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m4_a_variance_of_400_settles_and_one_of_401_needs_the_mean() {
        // Four of 0 and four of 40: mean 20, variance 400.
        let at = [0, 40, 0, 40, 0, 40, 0, 40];
        assert_eq!(trimmed_above(&at, None), 20);
        assert_eq!(trimmed_both(&at, false), 20);
        // Four of 0 and four of 42: mean 21, variance 441; 441 > 36 * 441 is false. All of 42
        // leave, and the four zeroes remain: no answer since 6.6, 0 in 6.2.
        let above = [0, 42, 0, 42, 0, 42, 0, 42];
        assert_eq!(trimmed_above(&above, None), UNKNOWN);
        assert_eq!(trimmed_above(&above, Some(100)), 0);
        assert_eq!(trimmed_both(&above, false), UNKNOWN);
    }

    #[test]
    fn m4_the_mean_squared_must_be_more_than_36_variances() {
        // Mean 600, each 100 away: variance 10 000, 360 000 is not more than 360 000.
        let equal = [500, 700, 500, 700, 500, 700, 500, 700];
        // All of 700 leave: four of 500, variance 0.
        assert_eq!(trimmed_above(&equal, None), 500);
        // Mean 601: 361 201 > 360 000.
        let more = [501, 701, 501, 701, 501, 701, 501, 701];
        assert_eq!(trimmed_above(&more, None), 601);
        assert_eq!(trimmed_both(&more, false), 601);
    }

    #[test]
    fn m4_two_outliers_above_leave_and_a_third_does_not() {
        assert_eq!(
            trimmed_above(&[1000, 1000, 1000, 9000, 1000, 1000, 5000, 1000], None),
            1000
        );
        assert_eq!(
            trimmed_both(&[1000, 1000, 1000, 9000, 1000, 1000, 5000, 1000], false),
            1000
        );
        // Six left, one of them 3000: mean 1333, variance 555 555: no answer.
        let third = [1000, 1000, 1000, 9000, 1000, 3000, 5000, 1000];
        assert_eq!(trimmed_above(&third, None), UNKNOWN);
        assert_eq!(trimmed_both(&third, false), UNKNOWN);
    }

    #[test]
    fn m4b_an_outlier_below_leaves_only_since_6_15() {
        let below = [1000, 1000, 1000, 1, 1000, 1000, 1000, 1000];
        // Mean 875, variance 109 156; 36 times that is more than 765 625. Before 6.15 all of 1000
        // leave, one sample is left: variance 0, so 1 us.
        assert_eq!(trimmed_above(&below, None), 1);
        assert_eq!(trimmed_both(&below, false), 1000);
    }

    #[test]
    fn m4c_four_samples_or_more_were_answered_by_their_maximum() {
        // 9000 and 5000 leave; six are left.
        let six = [1000, 2000, 3000, 9000, 1000, 3000, 5000, 1000];
        assert_eq!(trimmed_both(&six, true), 3000);
        assert_eq!(trimmed_both(&six, false), UNKNOWN);
        // Five of 9000 leave together: three are left.
        let three = [1, 9000, 500, 9000, 9000, 9000, 1000, 9000];
        // Mean 5812: farther from 1 than from 9000, so 1 leaves first: seven, mean 6642; then
        // 500, six: mean 7666, not alike: their maximum.
        assert_eq!(trimmed_both(&three, true), 9000);
        let half = [
            UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 1000, 2000, 3000,
        ];
        assert_eq!(trimmed_both(&half, true), UNKNOWN);
    }

    #[test]
    fn m4_equal_outliers_leave_together() {
        // Three of 9000 leave in one round: five left.
        let three = [1000, 9000, 1000, 9000, 1000, 9000, 1000, 1000];
        assert_eq!(trimmed_above(&three, None), 1000);
        assert_eq!(trimmed_both(&three, false), 1000);
    }

    #[test]
    fn m4a_the_largest_samples_never_count_and_m4b_only_unknown_ones() {
        assert_eq!(trimmed_above(&[UNKNOWN; 8], None), UNKNOWN);
        assert_eq!(trimmed_above(&[1 << 31; 8], Some(UNKNOWN)), UNKNOWN);
        assert_eq!(trimmed_both(&[UNKNOWN; 8], false), UNKNOWN);
        assert_eq!(trimmed_both(&[1 << 30; 8], false), 1 << 30);
        let one = [
            UNKNOWN, UNKNOWN, UNKNOWN, 70, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN,
        ];
        assert_eq!(trimmed_above(&one, None), 70);
        assert_eq!(trimmed_both(&one, false), 70);
    }

    #[test]
    fn m4a_in_6_2_a_sample_must_be_below_the_timer() {
        assert_eq!(trimmed_above(&[50; 8], Some(50)), UNKNOWN);
        assert_eq!(trimmed_above(&[50; 8], Some(51)), 50);
        assert_eq!(trimmed_above(&[0; 8], Some(1)), 0);
        assert_eq!(trimmed_above(&[0; 8], Some(0)), UNKNOWN);
        assert_eq!(trimmed_above(&[0; 8], None), UNKNOWN);
    }

    #[test]
    fn m4b_the_variance_wraps() {
        // Eight times 2^62 is 0 modulo 2^64; 0 less 2^62 is 3 * 2^62, more than (2^64 - 1) / 36.
        // So equal samples of 36 minutes have no typical interval, and all leave at once.
        assert_eq!(trimmed_both(&[1 << 31; 8], false), UNKNOWN);
    }
}
