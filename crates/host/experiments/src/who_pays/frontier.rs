// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the settings that no other setting beats, and the shortest wait for which a trap takes less CPU time than a
//! poll.

use anyhow::{Context, Result};

use super::{HALT, SPIN, Setting};
use crate::runs::Run;

/// The figures of a setting at a gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub setting: &'static str,
    pub gap: &'static str,
    /// Median of a round trip, in the unit of the run.
    pub latency: f64,
    /// The longest round trip.
    pub longest: f64,
    /// Share of the CPUs' time that the neighbours got, in per cent.
    pub share: f64,
}

/// Collects a point for each setting at each gap at which it was measured.
pub fn collect_points(
    run: Run<'_>,
    settings: &[Setting],
    gaps: &[&'static str],
) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    for setting in settings {
        for &gap in gaps {
            let Some(found) = setting.find_cell(run, gap)? else {
                continue;
            };
            points.push(Point {
                setting: setting.name,
                gap,
                latency: found.median(),
                longest: found.max(),
                share: 100.0 * found.neighbours()?.share(),
            });
        }
    }
    Ok(points)
}

/// Smallest difference between shares that counts, in points.
const LEAST: f64 = 0.1;

/// Returns the points at `gap` that no other point beats, sorted by latency. Point A beats point B if A is at least
/// as fast and leaves a larger share, or if A is faster and leaves the same share.
pub fn unbeaten_points<'p>(points: &'p [Point], gap: &str) -> Vec<&'p Point> {
    let at = || points.iter().filter(|point| point.gap == gap);
    let beats = |one: &Point, other: &Point| {
        let more = one.share > other.share + LEAST;
        let as_much = one.share > other.share - LEAST;
        one.latency <= other.latency && more || one.latency < other.latency && as_much
    };
    let mut best: Vec<&Point> = at()
        .filter(|point| !at().any(|other| beats(other, point)))
        .collect();
    best.sort_by(|one, other| one.latency.total_cmp(&other.latency));
    best
}

/// Returns the shortest wait for which a trapped WFI takes less of the CPUs' time than a poll, in us of the counter.
/// Computes it from a line through the differences between poll and WFI at two gaps.
pub fn break_even(run: Run<'_>) -> Result<f64> {
    const AT: [&str; 2] = ["5", "50"];
    let mut more = [0.0; AT.len()];
    for (more, gap) in more.iter_mut().zip(AT) {
        *more = vcpu_time_per_trip(SPIN, run, gap)? - vcpu_time_per_trip(HALT, run, gap)?;
    }
    Ok(zero_crossing(
        AT.map(|gap| gap.parse().unwrap_or(0.0)),
        more,
    ))
}

/// Returns where the line through two points crosses zero.
fn zero_crossing([first, second]: [f64; 2], [at_first, at_second]: [f64; 2]) -> f64 {
    let slope = (at_second - at_first) / (second - first);
    first - at_first / slope
}

/// Returns the CPU time that the vCPUs of a setting take per round trip, in us of the counter.
fn vcpu_time_per_trip(setting: Setting, run: Run<'_>, gap: &str) -> Result<f64> {
    let found = setting.find_cell(run, gap)?.context("it was skipped")?;
    Ok(found.us_per_sample(1.0 - found.neighbours()?.share()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(setting: &'static str, latency: f64, share: f64) -> Point {
        Point {
            setting,
            gap: "5",
            latency,
            longest: latency,
            share,
        }
    }

    #[test]
    fn what_is_beaten_in_both_is_not_among_the_best() {
        let points = [
            point("halt", 1400.0, 50.0),
            point("beaten", 1500.0, 49.0),
            point("spin", 80.0, 0.0),
            point("slower spin", 90.0, 0.05),
            point("poll", 124.0, 20.0),
        ];
        let names: Vec<&str> = unbeaten_points(&points, "5")
            .iter()
            .map(|point| point.setting)
            .collect();
        assert_eq!(names, ["spin", "poll", "halt"]);
        assert!(unbeaten_points(&points, "20").is_empty());
    }

    #[test]
    fn a_line_crosses_zero_where_it_does() {
        // The values are the gap minus 2 us, so the line crosses zero at 2.
        assert!((zero_crossing([5.0, 50.0], [3.0, 48.0]) - 2.0).abs() < 1e-9);
        // The line crosses zero beyond both points.
        assert!((zero_crossing([5.0, 50.0], [-95.0, -50.0]) - 100.0).abs() < 1e-9);
    }
}
