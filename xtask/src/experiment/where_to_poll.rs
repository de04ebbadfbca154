// SPDX-License-Identifier: MIT OR Apache-2.0
//! `where-to-poll`: in the guest, in the hypervisor, in both, or in neither.

use anyhow::Result;
use plan::Under;

use super::{Boot, Experiment};
use super::find::{Found, Runs};
use super::outcome::{Claim, Outcome, Table, two, whole};
use crate::cli::Metric;

pub const EXPERIMENT: Experiment = Experiment {
    name: "where-to-poll",
    question: "where to poll while WFI traps: in the guest, in the hypervisor, in both, or in neither?",
    source: "A. Arora, \"Enable haltpoll on arm64\", 2024-25 (1 M pipe operations), and the x86 \
             background of guest halt polling (ping-pong, share of the host's speed)",
    boots: &[
        Boot {
            label: "sides",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "pingpong"),
                ("wait", "wfi,poll-wfi"),
                ("trap", "wfi"),
                ("deliver", "inject"),
                ("wake", "ipi,elide"),
                ("host-poll-us", "0,50"),
                ("hint", "silent,tell"),
                ("gap-us", "0,30,200"),
            ],
            iterations: 100,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the order of the four. Not the distances: a trap costs a few hundred instructions \
                 here, and microseconds of a larger hypervisor there.",
};

/// Which sides poll: our words, and published: x86 ping-pong against the host, %, and
/// arm64 seconds.
const ROWS: [(&str, &str, &str, [Option<f64>; 2]); 4] = [
    ("neither", "wfi", "0", [None, Some(12.615)]),
    ("the host", "wfi", "50", [Some(93.8), None]),
    ("the guest", "poll-wfi", "0", [Some(95.7), Some(7.566)]),
    ("both", "poll-wfi", "50", [None, None]),
];

/// Gaps, microseconds.
const GAPS: [&str; 3] = ["0", "30", "200"];

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "Instructions per round trip by the gap between two; polls of EL2 in vain per round trip, 200 us apart",
        &["0 us", "30 us", "200 us", "in vain", "x86, %", "arm64, s"],
    );
    let mut medians = Vec::new();
    for (name, wait, host, published) in ROWS {
        let wake = if wait == "wfi" { "ipi" } else { "elide" };
        let find = |gap, hint: Option<&str>| {
            let mut words = vec![
                ("wait", wait),
                ("wake", wake),
                ("host-poll-us", host),
                ("gap-us", gap),
            ];
            words.extend(hint.map(|hint| ("hint", hint)));
            runs.cell("sides", &words)
        };
        // The hint, which results only show where it is given, exists where both
        // can poll.
        let hint = (name == "both").then_some("");
        let mut texts = Vec::new();
        for gap in GAPS {
            let median = find(gap, hint)?.median();
            texts.push(whole(median));
            medians.push(median);
        }
        texts.push(two(in_vain(&find("200", hint)?)));
        texts.extend(published.map(|value| value.map_or("-".into(), |value| value.to_string())));
        table.row(name, texts);
    }
    let at = |row: usize| medians[3 * row];
    let both = |hint| {
        let words = [
            ("wait", "poll-wfi"),
            ("wake", "elide"),
            ("host-poll-us", "50"),
            ("gap-us", "200"),
            ("hint", hint),
        ];
        runs.cell("sides", &words)
    };
    let (silent, told) = (both("")?, both("tell")?);
    let claims = vec![
        Claim::below(
            "polling in the guest is better than in neither",
            ("guest", at(2)),
            ("neither", at(0)),
        ),
        Claim::below(
            "polling in the guest is better than in the host",
            ("guest", at(2)),
            ("host", at(1)),
        ),
        Claim::new(
            "where the guest polls long enough the host's polling adds nothing",
            at(3) == at(2),
            format!("both {}, guest {}", at(3), at(2)),
        ),
        Claim::new(
            "both may poll in vain, one after the other, unless the guest can say so (arm64 has no way)",
            in_vain(&silent) > 0.0 && in_vain(&told) == 0.0,
            format!(
                "EL2 polls in vain {} times a round trip, with the hint {}",
                two(in_vain(&silent)),
                two(in_vain(&told))
            ),
        ),
    ];
    Ok(Outcome {
        tables: vec![table],
        charts: Vec::new(),
        claims,
        notes: Vec::new(),
    })
}

/// Polls of EL2 that ended without an interrupt, per round trip.
fn in_vain(found: &Found<'_>) -> f64 {
    found.count("el2", "poll-miss") / found.samples().max(1.0)
}
