// SPDX-License-Identifier: MIT OR Apache-2.0
//! `idle-poll`: polling on chosen CPUs only.

use anyhow::Result;
use plan::Under;

use super::{Boot, Experiment, ONCE};
use super::find::Runs;
use super::outcome::{Claim, Outcome, Table, Test, two, whole};
use crate::cli::Metric;

pub const EXPERIMENT: Experiment = Experiment {
    name: "idle-poll",
    question: "can one CPU have the latency of idle=poll without the others paying for it?",
    source: "D. Bristot de Oliveira, \"[PATCH] sched/idle: Make idle poll dynamic per-cpu\", January \
             2023, and J. Mario's figures: 381 W with all CPUs polling, 233 W with chosen ones, \
             cyclictest equal",
    boots: &[
        Boot {
            label: "chosen",
            under: Under::Rouse,
            cpus: Some(4),
            lists: &[
                ("workload", "timer"),
                ("wait", "governor:menu"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "elide"),
                ("cpulist", "1"),
                ("idle-poll", "none,1,all"),
                ("gap-us", "500"),
            ],
            iterations: 200,
            repeats: ONCE,
        },
        Boot {
            label: "never",
            under: Under::Rouse,
            cpus: Some(4),
            lists: &[
                ("workload", "timer"),
                ("wait", "governor:menu"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "elide"),
                ("cpulist", "1"),
                ("idle-poll", "none"),
                ("gap-us", "500"),
            ],
            iterations: 200,
            repeats: ONCE,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "that the chosen CPU is as good as with all polling, and what that saves; watts are \
                 not measured, the share of time in which CPUs are not halted stands for them. Not the \
                 80 ns that a boost clock brought.",
};

/// Rows: ours, and published watts.
const ROWS: [(&str, &str, Option<f64>); 3] = [
    ("all", "all CPUs poll", Some(381.0)),
    ("1", "CPU 1 polls", Some(233.0)),
    ("none", "none polls", None),
];

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "Wake-ups of a task on CPU 1, every 500 us: lateness, and time awake of all CPUs",
        &["late p50, us", "late p90, us", "awake, %", "published, W"],
    );
    let mut late = Vec::new();
    let mut awake = Vec::new();
    for (set, name, watts) in ROWS {
        let found = runs.cell("chosen", &[("idle-poll", set)])?;
        let (p50, p90) = (found.us(found.median()), found.p90());
        late.push(p50);
        awake.push(found.awake());
        table.row(
            name,
            vec![
                two(p50),
                p90.map_or("-".into(), |p90| two(found.us(p90))),
                two(found.awake()),
                watts.map_or("-".into(), whole),
            ],
        );
    }
    let with = runs.cell("chosen", &[("idle-poll", "none")])?;
    let without = runs.cell("never", &[("idle-poll", "none")])?;
    let claims = vec![
        Claim::new(
            "the chosen CPU is as early as with all polling, us",
            Test::Equality { band: 5.0 },
            ("chosen", late[1]),
            ("all", late[0]),
        ),
        Claim::below(
            "it is earlier than without polling",
            ("chosen", late[1]),
            ("none", late[2]),
        ),
        Claim::below(
            "choosing saves what the others would burn",
            ("chosen", awake[1]),
            ("all", awake[0]),
        ),
        Claim::new(
            "a CPU that does not use it pays nothing",
            Test::Equality { band: 0.0 },
            ("in a boot whose other cells use it", with.median()),
            ("in one where none does", without.median()),
        ),
    ];
    Ok(Outcome {
        tables: vec![table],
        charts: Vec::new(),
        claims,
        notes: vec![
            "in every cell the CPUs are switched to polling, back, and to polling again while they run"
                .into(),
        ],
    })
}
