// SPDX-License-Identifier: MIT OR Apache-2.0
//! `resched-ipis`: how many reschedule interrupts polling saves.

use anyhow::Result;
use plan::Under;

use super::{Boot, Experiment};
use super::find::Runs;
use super::outcome::{Claim, Outcome, Table, change, whole};
use crate::cli::Metric;

pub const EXPERIMENT: Experiment = Experiment {
    name: "resched-ipis",
    question: "how many interrupts between CPUs does a CPU that polls save?",
    source: "H. Okanovic, \"[PATCH 3/3] arm64: cpuidle: Add arm_poll_idle\", April 2024: \
             reschedule IPIs per second, all CPUs of a 64-CPU Graviton",
    boots: &[
        Boot {
            label: "ipis",
            under: Under::Rouse,
            cpus: Some(4),
            lists: &[
                ("workload", "notify,messaging"),
                ("groups", "2"),
                ("wait", "wfi,poll-wfi"),
                ("trap", "wfi"),
                ("deliver", "inject"),
                ("wake", "ipi,elide"),
                ("host-poll-us", "0"),
                ("poll-limit-us", "100"),
                ("gap-us", "20"),
            ],
            iterations: 200,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "that the rate falls, and that short blocking waits (Reactors, here notify) lose a \
                 larger part of it than busy queues (TensorFlow, here messaging). Not the rates: they \
                 are per second of a machine with 64 CPUs there, of an instruction count here.",
};

/// Rows: the source's workload, ours, and IPIs per second before and after there.
const ROWS: [(&str, &str, f64, f64); 2] = [
    ("Renaissance Reactors", "notify", 370e3, 80e3),
    ("TensorFlow", "messaging", 250e3, 120e3),
];

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "IPIs per second before (wfi) and after (poll-wfi, eliding), and published",
        &[
            "ours",
            "before",
            "after",
            "change",
            "published",
            "change",
            "latency",
        ],
    );
    let mut kept = Vec::new();
    let mut latency = 0.0;
    for (name, workload, before_there, after_there) in ROWS {
        let before = runs.cell("ipis", &[("workload", workload), ("wait", "wfi")])?;
        let words = [
            ("workload", workload),
            ("wait", "poll-wfi"),
            ("wake", "elide"),
        ];
        let after = runs.cell("ipis", &words)?;
        let (b, a) = (before.ipis_per_second(), after.ipis_per_second());
        let change_of_latency = change(before.median(), after.median());
        table.row(
            name,
            vec![
                workload.into(),
                whole(b),
                whole(a),
                change(b, a),
                format!("{} -> {} k", before_there / 1e3, after_there / 1e3),
                change(before_there, after_there),
                change_of_latency,
            ],
        );
        kept.push(a / b);
        if workload == "notify" {
            latency = after.median() / before.median();
        }
    }
    let claims = vec![
        Claim::below(
            "Reactors: the rate falls",
            ("as a part of before", kept[0]),
            ("before", 1.0),
        ),
        Claim::below(
            "TensorFlow: the rate falls",
            ("as a part of before", kept[1]),
            ("before", 1.0),
        ),
        Claim::below(
            "Reactors keep a smaller part than TensorFlow",
            ("notify", kept[0]),
            ("messaging", kept[1]),
        ),
        Claim::below(
            "Reactors' latency is lower (by 25 %)",
            ("as a part of before", latency),
            ("before", 1.0),
        ),
    ];
    Ok(Outcome {
        tables: vec![table],
        charts: Vec::new(),
        claims,
        notes: Vec::new(),
    })
}
