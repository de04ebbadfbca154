// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostly-idle`: the cost of `arm_poll_idle` on a system that has little to do, and the effect of its poll limit on a
//! busy system whose governor chooses between the driver's two states.

use anyhow::Result;
use plan::Under;

use super::Experiment;
use super::boot::{Boot, ONCE};
use super::outcome::{
    ByBoot, Chart, Claim, Outcome, Series, Table, Test, percent_change, two_decimals,
    without_decimals,
};
use super::runs::{MeasuredCell, Runs};

/// The boot of the system that is mostly idle.
const IDLE: Boot = Boot {
    label: "idle",
    under: Under::Rouse,
    cpus: Some(2),
    lists: &[
        ("workload", "idle"),
        // The boot measures on one CPU. With more, CPUs would run in turn, and two tasks that wake up at the same time
        // would wait for each other.
        ("cpulist", "0"),
        ("wait", "wfi,poll-wfi,governor:menu,governor:teo"),
        ("states", "arm_poll_idle:100"),
        ("poll-limit-us", "100"),
        ("trap", "none"),
        ("deliver", "inject"),
        ("wake", "ipi"),
        ("gap-us", "10000"),
    ],
    iterations: 80,
    repeats: ONCE,
};

pub const EXPERIMENT: Experiment = Experiment {
    name: "mostly-idle",
    question: "what does polling before a halt cost a system that is mostly idle, and what is its limit worth?",
    source: "H. Okanovic, answer to M. Rutland in \"[PATCH 3/3] arm64: cpuidle: Add arm_poll_idle\", April 2024: \
             idle residency of a mostly idle m7g.16xlarge; perf bench sched pipe and seccomp-notify by limit",
    boots: &[
        IDLE,
        Boot {
            label: "idle-short",
            iterations: 20,
            ..IDLE
        },
        Boot {
            label: "limits",
            under: Under::Rouse,
            cpus: Some(2),
            lists: &[
                ("workload", "pingpong,notify"),
                ("wait", "governor:menu,governor:teo"),
                (
                    "states",
                    "arm_poll_idle:10,arm_poll_idle:25,arm_poll_idle:50,arm_poll_idle:100,arm_poll_idle:300",
                ),
                ("trap", "wfi"),
                ("deliver", "inject"),
                ("wake", "elide"),
                ("host-poll-us", "0"),
                ("gap-us", "0,30"),
            ],
            iterations: 200,
            repeats: ONCE,
        },
    ],
    metric: None,
    conclude,
    comparable: "how the time in which CPUs are halted changes, and whether the limit matters. Our mostly idle system \
                 wakes up every 10 ms on one CPU for a microsecond of work, by a timer that governors know; what \
                 woke the published one is not said, so the size of its change is a bound and no figure to meet. A poll \
                 of ours counts as time awake, as one does in a state that is not idle.",
};

/// Rows: the way of waiting, and its description.
const WAITS: [(&str, &str); 4] = [
    ("wfi", "no polling"),
    ("poll-wfi", "bare loop, no governor"),
    ("governor:menu", "arm_poll_idle:100, menu"),
    ("governor:teo", "arm_poll_idle:100, teo"),
];

/// Workloads, each with the source's workload that it represents.
const BUSY: [(&str, &str); 2] = [("pingpong", "pipe"), ("notify", "seccomp-notify")];

/// Gaps between two round trips, in us: no gap, and one gap that is longer than the lowest limits.
const GAPS: [&str; 2] = ["0", "30"];

const GOVERNORS: [&str; 2] = ["governor:menu", "governor:teo"];

/// Limits of the driver, in us.
const LIMITS: [&str; 5] = ["10", "25", "50", "100", "300"];

/// Time from one wake-up of an idle CPU to the next, in us.
const PERIOD_US: f64 = 10_000.0;

/// Published change of the mostly idle system's residency, in points.
const PUBLISHED: f64 = -0.005;

/// Accepted deviation from the published change, in points. With this deviation, any fall from zero to twice the
/// published fall is accepted.
const BAND: f64 = 0.005;

/// Largest difference that counts as the source's "near identical", in per cent.
const NOISE: f64 = 3.0;

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut claims = Vec::new();
    let tables = vec![
        residency_table(runs, &mut claims)?,
        limits_table(runs, &mut claims)?,
    ];
    let charts = vec![
        Chart::bars(
            &tables[0],
            "Time halted on a mostly idle system, against no polling",
            "points",
            &[
                Series::Here(1, "here"),
                Series::Published(3, "arm_poll_idle"),
            ],
            |_| true,
        ),
        Chart::curves_over_columns(
            &tables[1],
            "A round trip by the limit of arm_poll_idle",
            "limit, us",
            runs.unit(),
            LIMITS.len(),
        ),
    ];
    Ok(Outcome {
        tables,
        charts,
        claims,
        notes: vec![
            "polls of 300 us end after 250 us, a sixteenth of the tick at 250 Hz, there and here"
                .into(),
        ],
    })
}

/// Returns a table of the time that a mostly idle system is halted, and adds claims about this time.
fn residency_table(runs: &Runs, claims: &mut Vec<Claim>) -> Result<Table> {
    let mut table = Table::new(
        "Mostly idle: time halted, and polls per wake-up, one every 10 ms on one of two CPUs",
        &[
            "halted, %",
            "against no polling, points",
            "polls",
            "published, points",
        ],
    );
    let cells: Vec<MeasuredCell<'_>> = WAITS
        .iter()
        .map(|(wait, _)| runs.cell("idle", &[("wait", wait)]))
        .collect::<Result<_>>()?;
    // A sample is the part of a period in which the CPU is not halted.
    let halted =
        |cell: &MeasuredCell<'_>| 100.0 * (1.0 - cell.value_in_us(cell.mean()) / PERIOD_US);
    let halted: Vec<f64> = cells.iter().map(halted).collect();
    for (((wait, name), cell), share) in WAITS.iter().zip(&cells).zip(&halted) {
        let published = match GOVERNORS.contains(wait) {
            true => format!("{PUBLISHED:+.3}"),
            false => "-".into(),
        };
        let polls = match wait.strip_prefix("governor:") {
            Some(_) => cell.count_per_operation("cpuidle", "poll.usage"),
            None => cell.count_per_operation("wake", "timeout"),
        };
        table.add_row(
            name,
            vec![
                format!("{share:.3}"),
                format!("{:+.3}", share - halted[0]),
                two_decimals(polls),
                published,
            ],
        );
    }
    let figures = cells
        .iter()
        .zip(&halted)
        .map(|(cell, share)| cell.figure(*share));
    let figures: Vec<ByBoot<f64>> = figures.collect();
    for ((wait, _), share) in WAITS.iter().zip(&figures).skip(2) {
        claims.push(
            Claim::new(
                "idle residency of a mostly idle system falls by about 0.005 %",
                Test::Size {
                    expected: PUBLISHED,
                    band: BAND,
                },
                (wait, share.clone()),
                ("no polling", figures[0].clone()),
            )
            .difference_in("points")
            .with_tested_part("time halted"),
        );
    }
    claims.push(
        Claim::new_below(
            "the states are chosen by the system's governor, which does not poll before a long wait",
            ("the bare loop", figures[1].clone()),
            ("menu", figures[2].clone()),
        )
        .with_tested_part("time halted")
        .difference_in("points")
        // This smallest effect is half of the share that a 100 us poll has of the period.
        .at_least(0.5),
    );
    Ok(table)
}

/// Returns a table that shows how the limit affects short waits, and adds claims about this effect.
fn limits_table(runs: &Runs, claims: &mut Vec<Claim>) -> Result<Table> {
    let titles = LIMITS.map(|limit| format!("{limit} us"));
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::new(
        &format!(
            "A round trip by the limit of arm_poll_idle, in {}",
            runs.unit()
        ),
        &[&titles[..], &["largest change"]].concat(),
    );
    for (workload, name) in BUSY {
        for gap in GAPS {
            for governor in GOVERNORS {
                let medians = medians_by_limit(runs, (workload, gap), governor)?;
                let at_100 = &medians[3];
                let far = |of: &ByBoot<f64>| (of.median() / at_100.median() - 1.0).abs();
                let furthest = medians.iter().max_by(|a, b| far(a).total_cmp(&far(b)));
                let furthest = furthest.unwrap_or(at_100);
                let texts = medians.iter().map(|of| without_decimals(of.median()));
                table.add_row(
                    &format!("{name}, {governor}, {gap} us between two"),
                    texts
                        .chain([percent_change(at_100.median(), furthest.median())])
                        .collect(),
                );
                claims.push(claim_limits_alike(
                    name,
                    gap,
                    governor,
                    [furthest.clone(), at_100.clone()],
                ));
            }
        }
    }
    Ok(table)
}

/// Returns the medians for `workload` with gaps of `gap` us, one median for each limit in [`LIMITS`].
fn medians_by_limit(
    runs: &Runs,
    (workload, gap): (&str, &str),
    governor: &str,
) -> Result<Vec<ByBoot<f64>>> {
    let median = |limit: &str| {
        let states = format!("arm_poll_idle:{limit}");
        let words = [
            ("workload", workload),
            ("wait", governor),
            ("states", &*states),
            ("gap-us", gap),
        ];
        let found = runs.cell("limits", &words)?;
        Ok(found.figure(found.median()))
    };
    LIMITS.map(median).into_iter().collect()
}

/// Claims that all limits perform like a limit of 100 us.
fn claim_limits_alike(
    name: &str,
    gap: &str,
    governor: &str,
    [furthest, at_100]: [ByBoot<f64>; 2],
) -> Claim {
    Claim::new(
        format!("{name}: limits from 10 us on are alike within a noise of 3 %"),
        Test::Equality { band: NOISE },
        ("the limit that differs most", furthest),
        ("100 us", at_100),
    )
    .with_tested_part(format!("a round trip, {governor}, {gap} us between two"))
    .with_reason(
        "waits of 30 us outlast the lowest limits, and end in a halt there; how long those of the source were \
         it does not say",
    )
}
