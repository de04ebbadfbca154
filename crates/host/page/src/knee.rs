// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds where a curve bends most: the point of a sweep after which further increases have less effect.
//!
//! The method is that of V. Satopää, J. Albrecht, D. Irwin, B. Raghavan, "Finding a 'Kneedle' in a Haystack", ICDCSW
//! 2011: it finds the point that is farthest from the chord between the first and the last point, with both coordinates
//! scaled to the range 0 to 1. Swept values grow by factors, so the method uses their logarithms.

/// Minimum distance of a knee from the chord, as a share of the range. A curve that bends less has no knee.
const LEAST: f64 = 0.1;

/// Returns the first coordinate of the knee of `points`, which are sorted by this coordinate and all positive. Returns
/// `None` for fewer than three points, or if the curve is close to its chord.
pub fn find_knee(points: &[(f64, f64)]) -> Option<f64> {
    let [(first, _), .., (last, _)] = points else {
        return None;
    };
    let values = || points.iter().map(|point| point.1);
    let (least, most) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    let width = (last / first).ln();
    if points.len() < 3 || !width.is_finite() || width <= 0.0 || most - least <= LEAST * most {
        return None;
    }
    let height = |value: f64| (value - least) / (most - least);
    let (from, to) = (height(points[0].1), height(points[points.len() - 1].1));
    let distance = |&(at, value): &(f64, f64)| {
        let part = (at / first).ln() / width;
        (height(value) - (from + part * (to - from))).abs()
    };
    let farthest = points
        .iter()
        .max_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    (distance(farthest) >= LEAST).then_some(farthest.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knee_is_where_a_curve_leaves_its_first_direction() {
        // One curve is flat up to 50, and then drops suddenly. The other one falls until 20, and is flat after that.
        let late = [
            (10.0, 100.0),
            (20.0, 100.0),
            (50.0, 100.0),
            (100.0, 10.0),
            (200.0, 10.0),
        ];
        assert_eq!(find_knee(&late), Some(50.0));
        let early = [
            (1.0, 100.0),
            (5.0, 60.0),
            (20.0, 20.0),
            (50.0, 18.0),
            (200.0, 16.0),
        ];
        assert_eq!(find_knee(&early), Some(20.0));
    }

    #[test]
    fn what_does_not_bend_has_none() {
        assert_eq!(find_knee(&[]), None);
        assert_eq!(find_knee(&[(1.0, 5.0), (2.0, 9.0)]), None);
        assert_eq!(find_knee(&[(1.0, 10.0), (10.0, 20.0), (100.0, 30.0)]), None);
        assert_eq!(find_knee(&[(1.0, 0.0), (10.0, 0.0), (100.0, 0.0)]), None);
        // This line is flat except for noise of 3 %.
        assert_eq!(
            find_knee(&[(1.0, 100.0), (10.0, 103.0), (100.0, 100.0)]),
            None
        );
        // The value 0 has no logarithm.
        assert_eq!(find_knee(&[(0.0, 1.0), (10.0, 20.0), (100.0, 30.0)]), None);
    }
}
