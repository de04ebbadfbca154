// SPDX-License-Identifier: MIT OR Apache-2.0
//! `psd`: power-sleep-demotion prevention.

use anyhow::Result;
use plan::Under;

use super::{Boot, Experiment, ONCE};
use super::find::{Found, Runs};
use super::outcome::{Claim, Outcome, Table, two, whole};
use crate::cli::Metric;

pub const EXPERIMENT: Experiment = Experiment {
    name: "psd",
    question: "should a CPU that waits for a fast device stay shallow for some milliseconds?",
    source: "C. I. King, \"[PATCH] cpuidle: psd: add power sleep demotion prevention for fast I/O \
             devices\", March 2025: fio random read, GB/s, and its re-test on 6.14-rc5",
    boots: &[
        Boot {
            label: "io",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "io"),
                ("wait", "governor:menu"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "elide"),
                ("completion", "same,other"),
                ("spread", "exponential"),
                ("device-us", "300"),
                ("psd-ms", "0,3"),
                ("standby-us", "0,100"),
            ],
            iterations: 240,
            repeats: ONCE,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the order of the columns, and what moves with the completion's CPU. Not the rates: \
                 ours is one request at a time on two CPUs, theirs a queue per CPU on 96.",
};

/// Columns: name, and the words of its cells.
const COLUMNS: [(&str, &str, &str); 3] = [
    ("baseline", "0", "100"),
    ("deep states off", "0", "0"),
    ("PSD", "3", "100"),
];

/// Published: reads, GB/s, by column: first posting (no run without deep states)
/// and re-test.
const PUBLISHED: [(&str, [Option<f64>; 3]); 2] = [
    ("first posting, GB/s", [Some(21.366), None, Some(25.950)]),
    ("re-test, GB/s", [Some(25.689), Some(25.840), Some(25.782)]),
];

fn conclude(runs: &Runs) -> Result<Outcome> {
    let names = COLUMNS.map(|(name, ..)| name);
    let mut table = Table::new("Requests per second, and what idling cost", &names);
    let mut rates = Vec::new();
    let mut awake = Vec::new();
    for completion in ["same", "other"] {
        let cells: Vec<Found<'_>> = COLUMNS
            .iter()
            .map(|(_, psd, standby)| {
                let words = [
                    ("completion", completion),
                    ("psd-ms", *psd),
                    ("standby-us", *standby),
                ];
                runs.cell("io", &words)
            })
            .collect::<Result<_>>()?;
        let mut row = |what: &str, value: &dyn Fn(&Found<'_>) -> String| {
            let texts = cells.iter().map(value).collect();
            table.row(&format!("{completion} CPU: {what}"), texts);
        };
        row("requests/s", &|cell| whole(rate(cell)));
        row("change", &|cell| {
            format!("{:+.1} %", 100.0 * (rate(cell) / rate(&cells[0]) - 1.0))
        });
        row("90 % below, us", &|cell| {
            cell.p90().map_or("-".into(), |p90| whole(cell.us(p90)))
        });
        row("stays too deep, %", &|cell| two(cell.misses("above")));
        row("time awake, %", &|cell| two(cell.awake()));
        rates.extend(cells.iter().map(rate));
        awake.extend(cells.iter().map(Found::awake));
    }
    for (name, values) in PUBLISHED {
        let texts = values.map(|value| value.map_or("-".into(), |value| format!("{value:.3}")));
        table.row(name, texts.to_vec());
    }
    let [base, shallow, psd, base_other, _, psd_other] = rates[..] else {
        unreachable!("three columns for two completions");
    };
    let claims = vec![
        Claim::below(
            "PSD is faster than the baseline",
            ("baseline", base),
            ("PSD", psd),
        ),
        Claim::below(
            "without deep states it is faster than the baseline as well",
            ("baseline", base),
            ("without", shallow),
        ),
        Claim::below(
            "a completion on another CPU takes away from what PSD brings (C. Loehle's objection)",
            ("other", psd_other / base_other),
            ("same", psd / base),
        ),
        Claim::below(
            "PSD is paid for with time awake (reviewers)",
            ("baseline", awake[0]),
            ("PSD", awake[2]),
        ),
    ];
    Ok(Outcome {
        tables: vec![table],
        charts: Vec::new(),
        claims,
        notes: vec!["standby takes 100 us to leave; the window is counted in ticks of 4 ms".into()],
    })
}

/// Requests per second of one submitter.
fn rate(found: &Found<'_>) -> f64 {
    1e6 / found.us(found.mean()).max(1e-9)
}
