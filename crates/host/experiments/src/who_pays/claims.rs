// SPDX-License-Identifier: MIT OR Apache-2.0
//! States what is expected of the settings, in the form of claims that the figures can refute.

use anyhow::{Context, Result};

use super::{
    ADAPTIVE, HALT, HOST_POLL, POLL_10, POLL_50, POLL_200, SLICE_US, SLICED, SLICED_GAP, SPIN,
    Setting, UNTRAPPED, measured_gaps,
};
use crate::outcome::{ByBoot, Claim, Constant, Test};
use crate::runs::{MeasuredCell, Runs};

/// Largest accepted difference, in points, between half of the time and the share of a guest that never waits.
const HALF: f64 = 5.0;
/// The longest gap, in us.
const LONGEST: &str = "5000";
/// A gap that is longer than every limit, in us.
const LONG: &str = "1000";
/// Largest accepted difference between a poll's price and its limit, in us, in addition to a tenth of the limit. This
/// difference is the time of two more world switches.
const SWITCHED: f64 = 2.0;
/// Largest accepted difference between the shares with an adaptive poll and without a poll, in points.
const ADAPTED: f64 = 2.0;

/// Applies `what` to the cell of a setting at a gap, for each boot.
fn figure_by_boot(
    runs: &Runs,
    setting: Setting,
    gap: &str,
    what: impl Fn(&MeasuredCell<'_>) -> Result<f64>,
) -> Result<ByBoot<f64>> {
    runs.by_boot(|run| {
        let found = setting.find_cell(run, gap)?;
        what(&found.with_context(|| format!("{} was skipped", setting.name))?)
    })
}

/// Returns the share of the CPUs' time that the neighbours got, in per cent.
fn neighbours_share(runs: &Runs, setting: Setting, gap: &str) -> Result<ByBoot<f64>> {
    figure_by_boot(runs, setting, gap, |found| {
        Ok(100.0 * found.neighbours()?.share())
    })
}

fn median_by_boot(runs: &Runs, setting: Setting, gap: &str) -> Result<ByBoot<f64>> {
    figure_by_boot(runs, setting, gap, |found| Ok(found.median()))
}

pub fn claims(runs: &Runs) -> Result<Vec<Claim>> {
    let gaps = measured_gaps(runs);
    let has = |gap: &str| gaps.contains(&gap);
    let mut claims = poll_claims(runs, &gaps)?;
    if has(LONG) {
        claims.extend(limit_claims(runs)?);
    }
    claims.extend(host_claims(runs, has)?);
    claims.extend(latency_claims(runs)?);
    claims.extend(slice_claims(runs)?);
    Ok(claims)
}

/// Makes claims about the CPU time that a polling guest leaves, for every limit.
fn poll_claims(runs: &Runs, gaps: &[&str]) -> Result<Vec<Claim>> {
    let each = gaps.iter().map(|gap| {
        let most = runs.by_boot(|run| {
            let shares = [POLL_10, POLL_50, POLL_200].map(|setting| {
                let found = setting.find_cell(run, gap)?.context("it was skipped")?;
                Ok(100.0 * found.neighbours()?.share())
            });
            let shares: Result<Vec<f64>> = shares.into_iter().collect();
            Ok(shares?.into_iter().fold(0.0, f64::max))
        })?;
        Ok(Claim::new_below(
            "a trapped WFI leaves more than any poll",
            ("the most that a poll-wfi leaves", most),
            (HALT.name, neighbours_share(runs, HALT, gap)?),
        )
        // This is half of the shortest limit's share of the gap.
        .at_least(50.0 * (10.0 / gap.parse::<f64>()?).min(1.0))
        .with_tested_part(format!("{gap} us apart")))
    });
    each.collect()
}

/// Makes claims about the cost of polling with a limit that is shorter than the gap.
fn limit_claims(runs: &Runs) -> Result<Vec<Claim>> {
    let given = |setting| {
        figure_by_boot(runs, setting, LONG, |found| {
            Ok(found.us_per_sample(found.neighbours()?.given))
        })
    };
    let each = [(POLL_10, 10.0), (POLL_50, 50.0), (POLL_200, 200.0)].map(|(setting, limit)| {
        let price = Test::Size {
            expected: -limit,
            band: limit / 10.0 + SWITCHED,
        };
        Ok(Claim::new(
            "a poll in vain costs the neighbour its limit",
            price,
            (setting.name, given(setting)?),
            (HALT.name, given(HALT)?),
        )
        .with_tested_part(format!("given for each round trip, {LONG} us apart"))
        .difference_in("us of the counter"))
    });
    each.into_iter().collect()
}

/// Makes claims about the cost of polling at EL2.
fn host_claims(runs: &Runs, has: impl Fn(&str) -> bool) -> Result<Vec<Claim>> {
    let mut claims = vec![
        Claim::new_below(
            "EL2's poll costs the neighbour as well",
            (HOST_POLL.name, neighbours_share(runs, HOST_POLL, "200")?),
            (HALT.name, neighbours_share(runs, HALT, "200")?),
        )
        .with_tested_part("200 us apart"),
        Claim::new_below(
            "KVM's rules poll where waits are short",
            (ADAPTIVE.name, neighbours_share(runs, ADAPTIVE, "20")?),
            (HALT.name, neighbours_share(runs, HALT, "20")?),
        )
        .with_tested_part("20 us apart"),
    ];
    if has(LONGEST) {
        claims.push(
            Claim::new(
                "and stop where they are long",
                Test::Equality { band: ADAPTED },
                (ADAPTIVE.name, neighbours_share(runs, ADAPTIVE, LONGEST)?),
                (HALT.name, neighbours_share(runs, HALT, LONGEST)?),
            )
            .with_tested_part(format!("{LONGEST} us apart"))
            .difference_in("points"),
        );
    }
    Ok(claims)
}

/// Makes claims about how much the wake-up is delayed if the CPU was given to the neighbour.
fn latency_claims(runs: &Runs) -> Result<Vec<Claim>> {
    let below = |one: Setting, other: Setting, gap: &str, source: &str| -> Result<Claim> {
        Ok(Claim::new_below(
            source,
            (one.name, median_by_boot(runs, one, gap)?),
            (other.name, median_by_boot(runs, other, gap)?),
        )
        .with_tested_part(format!("medians, {gap} us apart")))
    };
    Ok(vec![
        below(SPIN, HALT, "200", "a guest that keeps the CPU wakes sooner")?,
        below(
            UNTRAPPED,
            HALT,
            "200",
            "a world switch lengthens the wake-up",
        )?,
        below(POLL_50, HALT, "20", "a poll within its limit is a poll")?,
        below(HOST_POLL, HALT, "20", "EL2's poll saves the switch")?,
    ])
}

/// Makes claims about time slices.
fn slice_claims(runs: &Runs) -> Result<Vec<Claim>> {
    let [spin, halt, untrapped] = SLICED;
    let p90 = |setting| {
        figure_by_boot(runs, setting, SLICED_GAP, |found| {
            found.p90().context("too few samples")
        })
    };
    let half = Test::Equality { band: HALF };
    let slice = SLICE_US.parse::<f64>()?;
    let slowest = figure_by_boot(runs, spin, SLICED_GAP, |found| {
        Ok(found.value_in_us(found.max()))
    })?;
    Ok(vec![
        Claim::new(
            "with slices the neighbour of a guest that spins gets half of the time",
            half,
            ("its share", neighbours_share(runs, spin, SLICED_GAP)?),
            ("half", Constant(50.0)),
        )
        .difference_in("points"),
        Claim::new_below(
            "a guest that spins pays with slices: its slowest round trip takes most of one",
            ("half a slice", Constant(slice / 2.0)),
            ("its slowest", slowest),
        )
        .with_tested_part("us of the counter"),
        Claim::new_below(
            "a guest that gives its CPU away gets it back at the interrupt",
            (halt.name, p90(halt)?),
            (spin.name, p90(spin)?),
        )
        .with_tested_part("90th percentiles"),
        Claim::new_below(
            "an untrapped WFI is stopped as a spinning guest is",
            (halt.name, p90(halt)?),
            (untrapped.name, p90(untrapped)?),
        )
        .with_tested_part("90th percentiles"),
    ])
}
