// SPDX-License-Identifier: MIT OR Apache-2.0
//! `where-to-poll`: polling in the guest, in the hypervisor, in both, or in neither.

use anyhow::Result;
use plan::Under;

use super::outcome::{
    ByBoot, Chart, Claim, Outcome, Table, Test, Way, two_decimals, without_decimals,
};
use super::runs::{MeasuredCell, Run, Runs};
use super::{Boot, Experiment, ONCE};

pub const EXPERIMENT: Experiment = Experiment {
    name: "where-to-poll",
    question: "where to poll while WFI traps: in the guest, in the hypervisor, in both, or in neither?",
    source: "A. Arora, \"Enable haltpoll on arm64\", 2024-25 (1 M pipe operations), and the x86 \
             background of guest halt polling (ping-pong, share of the host's speed)",
    boots: &[Boot {
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
        iterations: 16,
        // Additional idle CPUs do not change the number of instructions in this boot.
        repeats: ONCE,
    }],
    metric: None,
    conclude,
    comparable: "the order of the four. Not the distances: a trap costs a few hundred instructions \
                 here, and microseconds of a larger hypervisor there.",
};

/// Rows: where polling happens, the wait and `host-poll-us` of our cells, and two published figures. The first figure
/// is ping-pong on x86 relative to the host, in per cent, and the second is seconds on arm64.
const ROWS: [(&str, &str, &str, [Option<f64>; 2]); 4] = [
    ("neither", "wfi", "0", [None, Some(12.615)]),
    ("the host", "wfi", "50", [Some(93.8), None]),
    ("the guest", "poll-wfi", "0", [Some(95.7), Some(7.566)]),
    ("both", "poll-wfi", "50", [None, None]),
];

/// Gaps, in microseconds.
const GAPS: [&str; 3] = ["0", "30", "200"];

/// Largest difference between systems that count as equal, in per cent.
const SAME: f64 = 1.0;

/// Accepted deviation of our change from the published one, in points.
const BAND: f64 = 10.0;

/// Returns the cell of the row `(wait, host)` with gap `gap`. `hint` has an effect only if both the guest and the host
/// can poll.
fn find_cell<'r>(
    run: Run<'r>,
    (wait, host): (&str, &str),
    gap: &str,
    hint: &str,
) -> Result<MeasuredCell<'r>> {
    let wake = if wait == "wfi" { "ipi" } else { "elide" };
    let mut words = vec![
        ("wait", wait),
        ("wake", wake),
        ("host-poll-us", host),
        ("gap-us", gap),
    ];
    let both = wait != "wfi" && host != "0";
    words.extend(both.then_some(("hint", hint)));
    run.cell("sides", &words)
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        &format!(
            "A round trip by the gap between two, in {}; polls of EL2 in vain per round trip, 200 us apart",
            runs.unit()
        ),
        &["0 us", "30 us", "200 us", "in vain", "x86, %", "arm64, s"],
    );
    // The medians are sorted by row, and then by gap.
    let mut medians = Vec::new();
    for (name, wait, host, published) in ROWS {
        let first = |gap| find_cell(runs.first(), (wait, host), gap, "silent");
        let mut texts = Vec::new();
        for gap in GAPS {
            texts.push(without_decimals(first(gap)?.median()));
            medians.push(
                runs.by_boot(|run| Ok(find_cell(run, (wait, host), gap, "silent")?.median()))?,
            );
        }
        texts.push(two_decimals(vain_polls(&first("200")?)));
        texts.extend(published.map(|value| value.map_or("-".into(), |value| value.to_string())));
        table.add_row(name, texts);
    }
    let vain = |hint| {
        runs.by_boot(|run| {
            Ok(vain_polls(&find_cell(
                run,
                ("poll-wfi", "50"),
                "200",
                hint,
            )?))
        })
    };
    let title = "A round trip by the gap between two, by where is polled";
    let chart = Chart::curves_over_columns(&table, title, "gap, us", runs.unit(), GAPS.len());
    Ok(Outcome {
        tables: vec![table],
        charts: vec![chart],
        claims: claims(&medians, [vain("tell")?, vain("silent")?]),
        notes: vec![
            "200 us outlast the polls of both sides, so that there EL2 always polls in vain; what is tested is whether \
             the hint keeps it from that"
                .into(),
        ],
    })
}

/// Returns the claims about the medians, which are sorted by row and gap, and about futile polls with and without the
/// hint.
fn claims(medians: &[ByBoot<f64>], [told, silent]: [ByBoot<f64>; 2]) -> Vec<Claim> {
    let at = |row: usize, gap: usize| medians[GAPS.len() * row + gap].clone();
    let size = Test::Size {
        expected: 100.0 * (7.566 / 12.615 - 1.0),
        band: BAND,
    };
    let mut claims = vec![
        Claim::new(
            "1 M pipe operations on arm64: 12.615 s, with polling in the guest 7.566 s",
            size,
            ("guest", at(2, 0)),
            ("neither", at(0, 0)),
        )
        .with_reason(
            "here the round trip is the wake-ups alone; there a scheduler and system calls are around them",
        ),
    ];
    for (number, gap) in GAPS.iter().enumerate() {
        claims.push(
            Claim::new_below(
                "polling in the guest (95.7 % of the host's speed) is better than in the host (93.8 %)",
                ("guest", at(2, number)),
                ("host", at(1, number)),
            )
            .with_tested_part(format!("{gap} us apart")),
        );
        claims.push(
            Claim::new(
                "where the guest polls the host's polling adds nothing",
                Test::Equality { band: SAME },
                ("both", at(3, number)),
                ("guest", at(2, number)),
            )
            .with_tested_part(format!("{gap} us apart")),
        );
    }
    let hint = Claim::new(
        "both may poll in vain, one after the other, unless the guest can say so (arm64 has no way)",
        Test::Sign { way: Way::Falls },
        ("with the hint", told),
        ("without", silent),
    );
    claims.push(hint.difference_in("vain polls per round trip"));
    claims
}

/// Returns, per round trip, the number of polls at EL2 that ended without an interrupt.
fn vain_polls(found: &MeasuredCell<'_>) -> f64 {
    found.count_per_operation("el2", "poll-miss")
}
