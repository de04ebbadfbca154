// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rank sum test of F. Wilcoxon (Individual Comparisons by Ranking Methods, Biometrics Bulletin
//! 1, 1945) and H. B. Mann, D. R. Whitney (On a Test of Whether one of Two Random
//! Variables is Stochastically Larger than the Other, Annals of Mathematical Statistics
//! 18, 1947), exact for any number of figures, even with ties.
//!
//! If both sides are the same, every way to divide the figures among them is equally
//! likely. The p-value is the share of these ways in which the rank sum of a side is at least as
//! extreme as the observed sum: twice the share of the nearer tail. Equal figures share the mean of
//! their ranks. The ways are counted by sum, one figure after the other, with the shift
//! algorithm of B. Streitberg, J. Röhmel (Exact distributions for permutation and rank
//! tests, Statistical Software Newsletter 12, 1986).

/// Returns the probability that figures of a single population are at least as far apart as `a` and `b`, in either
/// direction. 1 if a side is empty.
pub fn p_value(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let ranks = doubled_ranks(&[a, b].concat());
    let found: usize = ranks[..a.len()].iter().sum();
    let ways = count_ways(&ranks, a.len());
    let all: f64 = ways.iter().sum();
    let below: f64 = ways[..=found].iter().sum();
    let above: f64 = ways[found..].iter().sum();
    (2.0 * below.min(above) / all).min(1.0)
}

/// Returns the smallest p-value that `a` and `b` figures can give: that of two sides without overlap. This p-value is
/// 2 divided by the number of ways to choose `a` of `a + b`.
pub fn least_p_value(a: usize, b: usize) -> f64 {
    let fewer = a.min(b);
    let ways = (1..=fewer).fold(1.0, |ways, k| ways * (a + b - fewer + k) as f64 / k as f64);
    (2.0 / ways).min(1.0)
}

/// Returns twice the rank of each figure, so that mean ranks of ties are whole numbers too. The smallest result is 2.
pub fn doubled_ranks(figures: &[f64]) -> Vec<usize> {
    let rank = |figure: &f64| {
        let below = figures.iter().filter(|other| *other < figure).count();
        let equal = figures.iter().filter(|other| *other == figure).count();
        2 * below + equal + 1
    };
    figures.iter().map(rank).collect()
}

/// Returns `ways` with one more rank. `ways` has, for each sum, the number of subsets of the ranks so far that have
/// this sum.
pub fn add_rank(ways: &[f64], rank: usize) -> Vec<f64> {
    let mut sums = ways.to_vec();
    sums.resize(ways.len() + rank, 0.0);
    let with = sums[rank..].iter_mut().zip(ways);
    with.for_each(|(sum, ways)| *sum += ways);
    sums
}

/// Returns, for each sum, the number of ways in which `chosen` of `ranks` add up to it.
pub fn count_ways(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let mut largest = ranks.to_vec();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    let most: usize = largest.iter().take(chosen).sum();
    // `ways` is indexed by the number of chosen ranks, then by their sum. All counts beyond the largest possible sum
    // are 0.
    let mut ways = vec![vec![0.0; most + 1]; chosen + 1];
    let mut reached = vec![0; chosen + 1];
    ways[0][0] = 1.0;
    for (index, &rank) in ranks.iter().enumerate() {
        // With fewer ranks than this, the remaining ones can't bring the count to `chosen`.
        let left = ranks.len() - index - 1;
        let fewest = chosen.saturating_sub(left).max(1);
        for count in (fewest..=chosen.min(index + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(count);
            let without = &fewer[count - 1][..=reached[count - 1]];
            let sums = without.iter().zip(&mut more[0][rank..]);
            sums.for_each(|(without, with)| *with += without);
            reached[count] = reached[count].max(reached[count - 1] + rank);
        }
    }
    ways.swap_remove(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes the p-value from every way to divide the figures.
    fn by_hand(a: &[f64], b: &[f64]) -> f64 {
        let all = [a, b].concat();
        let ranks = doubled_ranks(&all);
        let found: usize = ranks[..a.len()].iter().sum();
        let (mut ways, mut below, mut above) = (0, 0, 0);
        for set in 0u32..1 << all.len() {
            if set.count_ones() as usize != a.len() {
                continue;
            }
            let of_set = |(index, rank): (usize, &usize)| (set >> index & 1) as usize * rank;
            let sum: usize = ranks.iter().enumerate().map(of_set).sum();
            ways += 1;
            below += u32::from(sum <= found);
            above += u32::from(sum >= found);
        }
        (2.0 * f64::from(below.min(above)) / f64::from(ways)).min(1.0)
    }

    #[test]
    fn the_published_critical_values_are_met() {
        // In Mann and Whitney's table, with 5 and 5 figures, U = 2 has a tail of 0.016, and U = 3 has a tail of 0.028.
        let a = [1.0, 2.0, 3.0, 4.0, 7.0];
        let b = [5.0, 6.0, 8.0, 9.0, 10.0];
        assert!((p_value(&a, &b) - 2.0 * 4.0 / 252.0).abs() < 1e-12);
        let a = [1.0, 2.0, 3.0, 4.0, 8.0];
        let b = [5.0, 6.0, 7.0, 9.0, 10.0];
        assert!((p_value(&a, &b) - 2.0 * 7.0 / 252.0).abs() < 1e-12);
    }

    #[test]
    fn sides_without_overlap_give_the_smallest_p() {
        for (runs, ways) in [(4, 70.0), (5, 252.0), (10, 184_756.0)] {
            let a: Vec<f64> = (0..runs).map(f64::from).collect();
            let b: Vec<f64> = (0..runs).map(|run| f64::from(run) + 100.0).collect();
            let least = least_p_value(a.len(), b.len());
            assert!((least * ways / 2.0 - 1.0).abs() < 1e-12);
            assert!((p_value(&a, &b) / least - 1.0).abs() < 1e-12);
            assert!((p_value(&b, &a) / least - 1.0).abs() < 1e-12);
        }
        assert_eq!(p_value(&[1.0], &[]), 1.0);
        assert_eq!(p_value(&[1.0; 9], &[1.0; 9]), 1.0);
        assert_eq!((least_p_value(1, 1), least_p_value(0, 3)), (1.0, 1.0));
    }

    #[test]
    fn many_figures_are_exact_too() {
        let a: Vec<f64> = (0..60).map(f64::from).collect();
        let b: Vec<f64> = (0..60).map(|run| f64::from(run) + 0.5).collect();
        assert!(p_value(&a, &b) > 0.7);
        let far: Vec<f64> = b.iter().map(|figure| figure + 100.0).collect();
        assert!((p_value(&a, &far) / least_p_value(60, 60) - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn counting_by_sum_is_counting_every_way(
            a in proptest::collection::vec(0u8..6, 1..6),
            b in proptest::collection::vec(0u8..6, 1..6)) {
            let figures = |side: &[u8]| -> Vec<f64> { side.iter().copied().map(f64::from).collect() };
            let (a, b) = (figures(&a), figures(&b));
            prop_assert!((p_value(&a, &b) - by_hand(&a, &b)).abs() < 1e-12);
            prop_assert!((p_value(&a, &b) - p_value(&b, &a)).abs() < 1e-12);
        }

        #[test]
        fn no_more_false_alarms_than_the_level(
            figures in proptest::collection::vec(0u8..9, 8..9), level in 0.02f64..0.5) {
            // Tries all ways to divide eight figures into four and four.
            let (mut alarms, mut ways) = (0, 0);
            for set in 0u32..1 << 8 {
                if set.count_ones() != 4 {
                    continue;
                }
                let (mut a, mut b) = (Vec::new(), Vec::new());
                for (index, &figure) in figures.iter().enumerate() {
                    let side = if set >> index & 1 == 1 { &mut a } else { &mut b };
                    side.push(f64::from(figure));
                }
                ways += 1;
                alarms += u32::from(p_value(&a, &b) <= level);
            }
            prop_assert!(f64::from(alarms) / f64::from(ways) <= level);
        }
    }
}
