// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is expected of the settings, each claim with what would refute it.

use anyhow::{Context, Result};

use super::{
    ADAPTIVE, HALT, HOST_POLL, POLL_10, POLL_50, POLL_200, SLICE_US, SLICED, SLICED_GAP, SPIN,
    Setting, UNTRAPPED, WFE,
};
use crate::experiment::find::{Found, Runs};
use crate::experiment::outcome::{ByBoot, Claim, Test};

/// Shares that are equal, points.
const SAME: f64 = 0.2;
/// How far the share of a guest that never waits may be from half, points.
const HALF: f64 = 5.0;
/// How far a poll's price may be from its limit, us.
const LIMIT: f64 = 20.0;
/// Limit of [`POLL_200`], us.
const LIMIT_US: f64 = 200.0;
/// How far an adaptive poll may be from none, points.
const ADAPTED: f64 = 2.0;

/// Something of a setting's cell at a gap, boot by boot.
fn of(
    runs: &Runs,
    setting: Setting,
    gap: &str,
    what: impl Fn(&Found<'_>) -> Result<f64>,
) -> Result<ByBoot<f64>> {
    runs.by_boot(|run| {
        let found = setting.find(run, gap)?;
        what(&found.with_context(|| format!("{} was skipped", setting.name))?)
    })
}

/// What the neighbours got, per cent.
fn share(runs: &Runs, setting: Setting, gap: &str) -> Result<ByBoot<f64>> {
    of(runs, setting, gap, |found| Ok(100.0 * found.neighbours()?.share()))
}

fn median(runs: &Runs, setting: Setting, gap: &str) -> Result<ByBoot<f64>> {
    of(runs, setting, gap, |found| Ok(found.median()))
}

pub fn claims(runs: &Runs) -> Result<Vec<Claim>> {
    let mut claims = nothing_given(runs)?;
    claims.extend(limits(runs)?);
    claims.extend(host(runs)?);
    claims.extend(latencies(runs)?);
    claims.extend(sliced(runs)?);
    Ok(claims)
}

/// Those that give nothing away by themselves.
fn nothing_given(runs: &Runs) -> Result<Vec<Claim>> {
    let cases = [
        (SPIN, "5", "a guest that spins leaves its neighbour nothing"),
        (SPIN, "5000", "a guest that spins leaves its neighbour nothing"),
        (WFE, "200", "nor does one that waits by WFE"),
        (UNTRAPPED, "200", "nor does an untrapped WFI, though the CPU halts"),
        (POLL_200, "50", "nor does a poll that ends before its limit"),
        (HOST_POLL, "20", "nor does EL2 while it polls"),
    ];
    let each = cases.map(|(setting, gap, source)| {
        Ok(Claim::new(
            source,
            Test::Equality { band: SAME },
            (setting.name, share(runs, setting, gap)?),
            ("nothing", 0.0),
        )
        .tested(format!("{gap} us apart"))
        .in_unit("points"))
    });
    each.into_iter().collect()
}

/// What a limit of polling costs.
fn limits(runs: &Runs) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for gap in ["50", "200", "1000", "5000"] {
        claims.push(
            Claim::below(
                "a trapped WFI leaves more than any poll",
                (POLL_10.name, share(runs, POLL_10, gap)?),
                (HALT.name, share(runs, HALT, gap)?),
            )
            .tested(format!("{gap} us apart")),
        );
    }
    let given = |setting| {
        of(runs, setting, "1000", |found| {
            Ok(found.us_per_sample(found.neighbours()?.given))
        })
    };
    let price = Test::Size {
        expected: -LIMIT_US,
        band: LIMIT,
    };
    claims.push(
        Claim::new(
            "a poll in vain costs the neighbour its limit",
            price,
            (POLL_200.name, given(POLL_200)?),
            (HALT.name, given(HALT)?),
        )
        .tested("given for each round trip, 1000 us apart")
        .in_unit("us of the counter"),
    );
    claims.push(Claim::below(
        "a longer limit leaves less",
        (POLL_200.name, share(runs, POLL_200, "1000")?),
        (POLL_50.name, share(runs, POLL_50, "1000")?),
    ));
    Ok(claims)
}

/// What polling at EL2 costs.
fn host(runs: &Runs) -> Result<Vec<Claim>> {
    Ok(vec![
        Claim::below(
            "EL2's poll costs the neighbour as well",
            (HOST_POLL.name, share(runs, HOST_POLL, "200")?),
            (HALT.name, share(runs, HALT, "200")?),
        )
        .tested("200 us apart"),
        Claim::new(
            "KVM's rules stop polling where waits are long",
            Test::Equality { band: ADAPTED },
            (ADAPTIVE.name, share(runs, ADAPTIVE, "5000")?),
            (HALT.name, share(runs, HALT, "5000")?),
        )
        .tested("5000 us apart")
        .in_unit("points"),
        Claim::below(
            "and poll where they are short",
            (ADAPTIVE.name, share(runs, ADAPTIVE, "20")?),
            (HALT.name, share(runs, HALT, "20")?),
        )
        .tested("20 us apart"),
    ])
}

/// What giving the CPU away costs the wake-up.
fn latencies(runs: &Runs) -> Result<Vec<Claim>> {
    let below = |one: Setting, other: Setting, gap: &str, source: &str| -> Result<Claim> {
        Ok(Claim::below(
            source,
            (one.name, median(runs, one, gap)?),
            (other.name, median(runs, other, gap)?),
        )
        .tested(format!("medians, {gap} us apart")))
    };
    Ok(vec![
        below(SPIN, HALT, "200", "a guest that keeps the CPU wakes sooner")?,
        below(UNTRAPPED, HALT, "200", "a world switch lengthens the wake-up")?,
        below(POLL_50, HALT, "20", "a poll within its limit is a poll")?,
        below(HOST_POLL, HALT, "20", "EL2's poll saves the switch")?,
    ])
}

/// What slices do.
fn sliced(runs: &Runs) -> Result<Vec<Claim>> {
    let [spin, halt, untrapped] = SLICED;
    let p90 = |setting| {
        of(runs, setting, SLICED_GAP, |found| {
            found.p90().context("too few samples")
        })
    };
    let half = Test::Size {
        expected: 50.0,
        band: HALF,
    };
    let slice = SLICE_US.parse::<f64>()?;
    let slowest = of(runs, spin, SLICED_GAP, |found| Ok(found.us(found.max())))?;
    Ok(vec![
        Claim::new(
            "with slices the neighbour of a guest that spins gets half",
            half,
            (spin.name, share(runs, spin, SLICED_GAP)?),
            ("nothing", 0.0),
        )
        .in_unit("points"),
        Claim::below(
            "a guest that spins pays with slices: its slowest round trip takes most of one",
            ("half a slice", slice / 2.0),
            ("its slowest", slowest),
        )
        .tested("us of the counter"),
        Claim::below(
            "a guest that gives its CPU away gets it back at the interrupt",
            (halt.name, p90(halt)?),
            (spin.name, p90(spin)?),
        )
        .tested("90th percentiles"),
        Claim::below(
            "an untrapped WFI is stopped as a spinning guest is",
            (halt.name, p90(halt)?),
            (untrapped.name, p90(untrapped)?),
        )
        .tested("90th percentiles"),
    ])
}
