// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sched`: `perf bench sched` before and after.

use anyhow::Result;
use plan::Under;

use super::{Boot, Experiment};
use super::find::{Found, Runs};
use super::outcome::{Claim, Outcome, Table, change, whole};
use crate::cli::Metric;

pub const EXPERIMENT: Experiment = Experiment {
    name: "sched",
    question: "what does polling before WFI bring to tasks that wake each other?",
    source: "H. Okanovic, \"[PATCH 3/3] arm64: cpuidle: Add arm_poll_idle\", April 2024: perf bench \
             sched on c6g (Graviton2) and c7g (Graviton3), VM and metal, seconds",
    boots: &[
        Boot {
            label: "vm",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "messaging,pingpong,notify"),
                ("wait", "wfi,poll-wfi"),
                ("trap", "wfi"),
                ("deliver", "inject"),
                ("wake", "ipi,elide"),
                ("host-poll-us", "0"),
            ],
            iterations: 200,
        },
        Boot {
            label: "metal",
            under: Under::None,
            cpus: None,
            lists: &[
                ("workload", "messaging,pingpong,notify"),
                ("wait", "wfi,poll-wfi"),
                ("trap", "none"),
                ("deliver", "direct"),
                ("wake", "ipi,elide"),
            ],
            iterations: 200,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the sign and the order of the changes: VM against metal, wake-ups against busy run \
                 queues. Not their size: seconds there are what cores and caches take, instructions \
                 here are what both CPUs execute one after the other.",
};

/// Seconds before and after.
type Pair = (f64, f64);

/// Tests: perf's name, our workload, and before and after in the source: VM and
/// metal, Graviton2 and Graviton3.
const TESTS: [(&str, &str, [Pair; 4]); 3] = [
    (
        "messaging",
        "messaging",
        [
            (18.974, 18.400),
            (13.852, 13.859),
            (17.621, 16.744),
            (13.430, 13.404),
        ],
    ),
    (
        "pipe",
        "pingpong",
        [
            (30.158, 15.181),
            (18.289, 12.067),
            (17.609, 15.170),
            (14.103, 12.304),
        ],
    ),
    (
        "seccomp-notify",
        "notify",
        [
            (28.784, 13.754),
            (16.964, 11.430),
            (15.717, 13.536),
            (13.301, 11.491),
        ],
    ),
];

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "Instructions per operation before (wfi) -> after (poll-wfi, eliding); published changes",
        &[
            "VM", "", "metal", "", "VM G2", "VM G3", "metal G2", "metal G3",
        ],
    );
    let mut changes = Vec::new();
    for (name, workload, published) in TESTS {
        let pair = |run| -> Result<(Found<'_>, Found<'_>)> {
            let before = runs.cell(run, &[("workload", workload), ("wait", "wfi")])?;
            let after = [
                ("workload", workload),
                ("wait", "poll-wfi"),
                ("wake", "elide"),
            ];
            Ok((before, runs.cell(run, &after)?))
        };
        let (vm, metal) = (pair("vm")?, pair("metal")?);
        let mut texts = Vec::new();
        for (before, after) in [vm, metal] {
            let (before, after) = (cost(workload, &before), cost(workload, &after));
            texts.push(format!("{} -> {}", whole(before), whole(after)));
            texts.push(change(before, after));
            changes.push(after / before);
        }
        texts.extend(published.map(|(before, after)| change(before, after)));
        table.row(name, texts);
    }
    let [messaging, _, pipe, pipe_metal, notify, notify_metal] = changes[..] else {
        unreachable!("three tests in two places");
    };
    let of_before = "as a part of before";
    let claims = vec![
        Claim::below(
            "pipe in a VM takes less time",
            (of_before, pipe),
            ("before", 1.0),
        ),
        Claim::below(
            "pipe gains more in a VM than on metal",
            ("VM", pipe),
            ("metal", pipe_metal),
        ),
        Claim::below(
            "seccomp-notify in a VM takes less time",
            (of_before, notify),
            ("before", 1.0),
        ),
        Claim::below(
            "seccomp-notify gains more in a VM than on metal",
            ("VM", notify),
            ("metal", notify_metal),
        ),
        Claim::new(
            "messaging does not change, as its run queues are busy (within 5 %)",
            (messaging - 1.0).abs() < 0.05,
            format!("{:+.1} %", 100.0 * (messaging - 1.0)),
        ),
    ];
    Ok(Outcome {
        tables: vec![table],
        charts: Vec::new(),
        claims,
        notes: vec![
            "pipe is workload pingpong, which runs without the executor: the wake-up alone".into(),
        ],
    })
}

/// Per operation: the median, or for `messaging`, whose loops overlap, all the
/// time by the number of loops.
fn cost(workload: &str, found: &Found<'_>) -> f64 {
    match workload {
        "messaging" => found.count("span", "ticks") / found.samples().max(1.0),
        _ => found.median(),
    }
}
