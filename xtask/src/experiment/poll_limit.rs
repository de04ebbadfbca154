// SPDX-License-Identifier: MIT OR Apache-2.0
//! `poll-limit`: what the limit of polling is worth.

use anyhow::Result;
use plan::Under;

use super::{Boot, Experiment};
use super::find::Runs;
use super::outcome::{Claim, Outcome, Table, whole};
use crate::cli::Metric;

pub const EXPERIMENT: Experiment = Experiment {
    name: "poll-limit",
    question: "how long should a CPU poll before it halts?",
    source: "H. Okanovic, \"[PATCH 3/3] arm64: cpuidle: Add arm_poll_idle\", April 2024: \
             MLPerf BERT on m7g.16xlarge, queries per second",
    boots: &[
        Boot {
            label: "limits",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "pingpong"),
                ("wait", "wfi,poll-wfi"),
                ("trap", "wfi"),
                ("deliver", "inject"),
                ("wake", "ipi,elide"),
                ("host-poll-us", "0"),
                ("poll-limit-us", "10,25,50,100,125,150,200,300"),
                ("gap-us", "5,10,20,40,80,120"),
            ],
            iterations: 80,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the shape of the curve: how much any limit brings, and where more brings nothing. \
                 Not the queries: one of BERT is much work between waits of unknown length, ours is \
                 waits of known lengths and little work, so that the gain is larger.",
};

/// Waits, microseconds: what the work leaves idle.
const GAPS: [&str; 6] = ["5", "10", "20", "40", "80", "120"];

/// Limits, and the source's queries per second; 0 is without polling.
const PUBLISHED: [(&str, f64); 9] = [
    ("0", 5.87),
    ("10", 5.91),
    ("25", 5.96),
    ("50", 6.01),
    ("100", 6.06),
    ("125", 6.07),
    ("150", 6.06),
    ("200", 6.06),
    ("300", 6.06),
];

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut columns: Vec<String> = GAPS.iter().map(|gap| format!("{gap} us apart")).collect();
    columns.extend(["all, %", "QPS", "QPS, %"].map(String::from));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(
        "Instructions per round trip by poll limit (us), speed over all against no polling; published QPS",
        &columns,
    );
    let mut speeds = Vec::new();
    for (limit, published) in PUBLISHED {
        let mut texts = Vec::new();
        let mut rate = 0.0;
        for gap in GAPS {
            let words = match limit {
                "0" => vec![("wait", "wfi"), ("gap-us", gap)],
                _ => vec![
                    ("wait", "poll-wfi"),
                    ("wake", "elide"),
                    ("gap-us", gap),
                    ("poll-limit-us", limit),
                ],
            };
            let found = runs.cell("limits", &words)?;
            texts.push(whole(found.median()));
            // A round trip is what comes between two waits of the work.
            rate += 1.0 / found.us(found.median());
        }
        speeds.push(rate);
        texts.push(format!("{:+.1}", 100.0 * (rate / speeds[0] - 1.0)));
        texts.push(format!("{published:.2}"));
        texts.push(format!(
            "{:+.1}",
            100.0 * (published / PUBLISHED[0].1 - 1.0)
        ));
        table.row(limit, texts);
    }
    let at = |limit: &str| {
        let place = PUBLISHED.iter().position(|(known, _)| *known == limit);
        speeds[place.unwrap_or(0)]
    };
    let worst = speeds[1..].iter().copied().fold(f64::MAX, f64::min);
    let rises = ["10", "25", "50", "100"].map(at).is_sorted();
    let late = (at("300") / at("125") - 1.0) * 100.0;
    let claims = vec![
        Claim::below(
            "any limit is better than none",
            ("none", 1.0),
            ("the worst limit", worst / speeds[0]),
        ),
        Claim::new(
            "more is better up to 100 us",
            rises,
            format!(
                "10 us {:.2}, 100 us {:.2} times as fast",
                at("10") / speeds[0],
                at("100") / speeds[0]
            ),
        ),
        Claim::new(
            "beyond 125 us nothing is gained",
            late.abs() < 1.0,
            format!("300 us against 125 us {late:+.1} %"),
        ),
    ];
    Ok(Outcome {
        tables: vec![table],
        charts: Vec::new(),
        claims,
        notes: vec![
            "the kernel of the source caps the limit at a sixteenth of its tick: at 250 Hz, 300 us \
             there are 250 us; ours are as named"
                .into(),
        ],
    })
}
