// SPDX-License-Identifier: MIT OR Apache-2.0
//! The signed rank test of F. Wilcoxon (Individual Comparisons by Ranking Methods, Biometrics Bulletin
//! 1, 1945), exact for any number of differences, even with ties.
//!
//! Differences are ranked by their size. If there is no effect, each difference is as likely above 0 as below, whatever
//! its size. The p-value is the share of all ways to assign signs to the differences in which the rank sum of either
//! sign is at most the smaller observed one. Differences that are 0 have no sign and are left out, as in Wilcoxon's
//! paper.

use crate::rank::{add_rank, doubled_ranks};

/// Returns the probability that differences without an effect lie at least as far to one side of 0 as `differences` do.
/// Returns 1 if all are 0.
pub fn signed_p_value(differences: &[f64]) -> f64 {
    let signed = differences.iter().copied().filter(|it| *it != 0.0);
    let signed: Vec<f64> = signed.collect();
    let sizes: Vec<f64> = signed.iter().map(|it| it.abs()).collect();
    let ranks = doubled_ranks(&sizes);
    let of_sign = |above: bool| -> usize {
        let each = ranks.iter().zip(&signed);
        let each = each.filter(|(_, it)| (**it > 0.0) == above);
        each.map(|(rank, _)| rank).sum()
    };
    let fewer = of_sign(true).min(of_sign(false));
    let ways = ranks
        .iter()
        .fold(vec![1.0], |ways, &rank| add_rank(&ways, rank));
    let all: f64 = ways.iter().sum();
    let below: f64 = ways[..=fewer].iter().sum();
    (2.0 * below / all).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes the p-value from every way to assign signs.
    fn by_hand(differences: &[f64]) -> f64 {
        let signed: Vec<f64> = differences
            .iter()
            .copied()
            .filter(|it| *it != 0.0)
            .collect();
        let sizes: Vec<f64> = signed.iter().map(|it| it.abs()).collect();
        let ranks = doubled_ranks(&sizes);
        let all: usize = ranks.iter().sum();
        let nearer = |sum: usize| sum.min(all - sum);
        let above = ranks.iter().zip(&signed).filter(|(_, it)| **it > 0.0);
        let found = nearer(above.map(|(rank, _)| rank).sum());
        let sum = |set: usize| {
            let of_set = |(index, rank): (usize, &usize)| (set >> index & 1) * rank;
            ranks.iter().enumerate().map(of_set).sum()
        };
        let sets = 1usize << ranks.len();
        let far = (0..sets).filter(|&set| nearer(sum(set)) <= found).count();
        far as f64 / sets as f64
    }

    #[test]
    fn the_published_critical_values_are_met() {
        // In Wilcoxon's two-sided table, 10 differences have the critical rank sums 8 at 0.05 and 3 at 0.01.
        let with_sum_below = |sum: usize| -> f64 {
            let (mut left, mut differences) = (sum, vec![0.0; 10]);
            for rank in (1..=10).rev() {
                let below = rank <= left;
                left -= if below { rank } else { 0 };
                differences[rank - 1] = if below { -(rank as f64) } else { rank as f64 };
            }
            signed_p_value(&differences)
        };
        for (sum, level) in [(8, 0.05), (3, 0.01)] {
            assert!(with_sum_below(sum) <= level);
            assert!(with_sum_below(sum + 1) > level);
        }
    }

    #[test]
    fn one_sign_gives_the_smallest_p() {
        for (count, p) in [(1, 1.0), (3, 0.25), (5, 0.0625), (6, 0.031_25)] {
            let same: Vec<f64> = (1..=count).map(f64::from).collect();
            assert_eq!(signed_p_value(&same), p);
            assert_eq!(signed_p_value(&vec![-2.0; same.len()]), p);
        }
        assert_eq!(signed_p_value(&[f64::INFINITY; 6]), 0.031_25);
    }

    #[test]
    fn what_is_nothing_has_no_sign() {
        assert_eq!(signed_p_value(&[]), 1.0);
        assert_eq!(signed_p_value(&[0.0; 9]), 1.0);
        assert_eq!(signed_p_value(&[0.0, 1.0, 2.0, 3.0, 0.0]), 0.25);
    }

    proptest! {
        #[test]
        fn counting_by_sum_is_counting_every_way(differences in proptest::collection::vec(-4i8..5, 0..9)) {
            let differences: Vec<f64> = differences.into_iter().map(f64::from).collect();
            let p = signed_p_value(&differences);
            if differences.iter().any(|it| *it != 0.0) {
                prop_assert!((p - by_hand(&differences).min(1.0)).abs() < 1e-12, "{p} {}", by_hand(&differences));
            }
            let mirrored: Vec<f64> = differences.iter().map(|it| -it).collect();
            prop_assert_eq!(signed_p_value(&mirrored), p);
        }
    }
}
