// SPDX-License-Identifier: MIT OR Apache-2.0
//! `governors`: menu, teo, and teo that looks at utilisation.

use anyhow::Result;
use plan::Under;

use super::{Boot, Experiment, ONCE};
use super::find::{Found, Runs};
use super::outcome::{Claim, Outcome, Table, two};
use crate::cli::Metric;

pub const EXPERIMENT: Experiment = Experiment {
    name: "governors",
    question: "how often does a governor choose too deep or too shallow a state, and what does that \
               cost a wake-up?",
    source: "K. Puchalski, \"[PATCH v6 2/2] cpuidle: teo: Introduce util-awareness\", January 2023: \
             Geekbench 5 on Pixel 6",
    boots: &[
        Boot {
            label: "io",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "io"),
                ("wait", "governor:menu,governor:teo-6.2,governor:teo-util-v6,governor:teo"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "elide"),
                ("completion", "other"),
                ("spread", "exponential"),
                ("device-us", "60,400"),
            ],
            iterations: 160,
            repeats: ONCE,
        },
        Boot {
            label: "notify",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "notify"),
                ("wait", "governor:menu,governor:teo-6.2,governor:teo-util-v6,governor:teo"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "elide"),
                ("gap-us", "30,200"),
            ],
            iterations: 120,
            repeats: ONCE,
        },
        Boot {
            label: "timer",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "timer"),
                ("wait", "governor:menu,governor:teo-6.2,governor:teo-util-v6,governor:teo"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "elide"),
                ("gap-us", "60,400"),
            ],
            iterations: 200,
            repeats: ONCE,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the order of the governors in each column. Not the shares: Geekbench's waits and the \
                 states of a phone are others, and power is not measured.",
};

/// Governors: ours, the source's name, and published: too deep and too shallow,
/// per cent, and asynctask's wake-up latency, us.
const GOVERNORS: [(&str, &str, Option<[f64; 3]>); 4] = [
    ("governor:menu", "menu", Some([14.99, 2.5, 78.16])),
    ("governor:teo-6.2", "teo (2023)", Some([9.65, 5.96, 61.60])),
    ("governor:teo-util-v6", "teo-util", Some([4.02, 14.59, 54.45])),
    ("governor:teo", "teo (7.2)", None),
];

/// What is run, and how long its waits are, microseconds; together it is the mix.
const PARTS: [(&str, &str, &str); 6] = [
    ("io", "device-us", "60"),
    ("io", "device-us", "400"),
    ("notify", "gap-us", "30"),
    ("notify", "gap-us", "200"),
    ("timer", "gap-us", "60"),
    ("timer", "gap-us", "400"),
];

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "All waits of the mix; published: Geekbench 5",
        &[
            "too deep %",
            "too shallow %",
            "wake-up p50, us",
            "awake %",
            "deep, pub.",
            "shallow, pub.",
            "us, pub.",
        ],
    );
    let mut parts = Table::new(
        "By part of the mix: too deep % / too shallow % / median, us",
        &PARTS.map(|(workload, ..)| workload),
    );
    parts.columns = PARTS
        .map(|(workload, _, us)| format!("{workload} {us} us"))
        .to_vec();
    let mut shown = Vec::new();
    for (governor, name, published) in GOVERNORS {
        let cells: Vec<Found<'_>> = PARTS
            .iter()
            .map(|&(workload, key, us)| runs.cell(workload, &[("wait", governor), (key, us)]))
            .collect::<Result<_>>()?;
        let mean =
            |of: &dyn Fn(&Found<'_>) -> f64| cells.iter().map(of).sum::<f64>() / cells.len() as f64;
        let values = [
            mean(&|cell| cell.misses("above")),
            mean(&|cell| cell.misses("below")),
            // Tasks woken by tasks, as asynctask's are. Medians: a governor begins
            // anew in each of four passes, and what it learns from there is in
            // the means.
            (cells[2].us(cells[2].median()) + cells[3].us(cells[3].median())) / 2.0,
            mean(&|cell| cell.awake()),
        ];
        let mut texts: Vec<String> = values.iter().map(|&value| two(value)).collect();
        texts.extend(match published {
            Some(values) => values.map(two),
            None => ["-"; 3].map(String::from),
        });
        table.row(name, texts);
        let each = cells.iter().map(|cell| {
            format!(
                "{:.1} / {:.1} / {:.1}",
                cell.misses("above"),
                cell.misses("below"),
                cell.us(cell.median())
            )
        });
        parts.row(name, each.collect());
        shown.push(values);
    }
    let [menu, teo, util, _] = shown[..] else {
        unreachable!("four governors");
    };
    let below = |text: &str, what: usize, one: (&str, [f64; 4]), other: (&str, [f64; 4])| {
        Claim::below(text, (one.0, one.1[what]), (other.0, other.1[what]))
    };
    let (menu, teo, util) = (("menu", menu), ("teo", teo), ("teo-util", util));
    let claims = vec![
        below("teo is too deep less often than menu", 0, teo, menu),
        below("teo-util is too deep less often than teo", 0, util, teo),
        below("teo is too shallow more often than menu", 1, menu, teo),
        below("teo-util is too shallow more often than teo", 1, teo, util).else_because(
            "teo-util never chooses to poll, which a phone can't either; here teo does, and a poll that \
             lasts counts as too shallow",
        ),
        below("teo wakes up faster than menu", 2, teo, menu),
        below("teo-util wakes up faster than teo", 2, util, teo),
    ];
    Ok(Outcome {
        tables: vec![table, parts],
        charts: Vec::new(),
        claims,
        notes: Vec::new(),
    })
}
