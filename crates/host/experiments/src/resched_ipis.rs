// SPDX-License-Identifier: MIT OR Apache-2.0
//! `resched-ipis`: the number of reschedule interrupts that polling saves.

use anyhow::Result;
use plan::Under;

use super::outcome::{
    ByBoot, Claim, Constant, Outcome, Series, Table, Test, percent_change, without_decimals,
};
use super::runs::{MeasuredCell, Run, Runs};
use super::{Boot, Experiment, PLACES};

/// The boot whose wake-ups are interrupts in some cells, and elided in other cells.
const IPIS: Boot = Boot {
    label: "ipis",
    under: Under::Rouse,
    cpus: None,
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
    repeats: PLACES,
};

pub const EXPERIMENT: Experiment = Experiment {
    name: "resched-ipis",
    question: "how many interrupts between CPUs does a CPU that polls save?",
    source: "H. Okanovic, \"[PATCH 3/3] arm64: cpuidle: Add arm_poll_idle\", April 2024: \
             reschedule IPIs per second, all CPUs of a 64-CPU Graviton",
    boots: &[
        IPIS,
        Boot {
            label: "ipis-short",
            iterations: 40,
            ..IPIS
        },
    ],
    metric: None,
    conclude,
    comparable: "that the rate falls, and that short blocking waits (Reactors, here notify) lose a \
                 larger part of it than busy queues (TensorFlow, here messaging). Not the rates: they \
                 are per second of a machine with 64 CPUs there, of a small executor here.",
};

/// Rows: the source's workload, our workload, and the source's IPIs per second before and after.
const ROWS: [(&str, &str, f64, f64); 2] = [
    ("Renaissance Reactors", "notify", 370e3, 80e3),
    ("TensorFlow", "messaging", 250e3, 120e3),
];

/// Accepted deviation of our change from the published one, in points.
const BAND: f64 = 10.0;

/// A cell without the change, and the cell with it.
type Pair<'r> = (MeasuredCell<'r>, MeasuredCell<'r>);

fn before_and_after<'r>(run: Run<'r>, workload: &str) -> Result<Pair<'r>> {
    let before = run.cell("ipis", &[("workload", workload), ("wait", "wfi")])?;
    let words = [
        ("workload", workload),
        ("wait", "poll-wfi"),
        ("wake", "elide"),
    ];
    Ok((before, run.cell("ipis", &words)?))
}

/// Claims a change that is as large as the published one from `before` to `after`. The first figure in `ours` is the
/// one after the change, and the second is the one before it.
fn change_claim(source: String, (before, after): (f64, f64), ours: [ByBoot<f64>; 2]) -> Claim {
    let size = Test::Size {
        expected: 100.0 * (after / before - 1.0),
        band: BAND,
    };
    let [ours_after, ours_before] = ours;
    Claim::new(source, size, ("after", ours_after), ("before", ours_before))
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "IPIs per second before (wfi) and after (poll-wfi, eliding), 2 CPUs, and published",
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
    let mut claims = Vec::new();
    let mut kept = Vec::new();
    for (name, workload, before_there, after_there) in ROWS {
        let (before, after) = before_and_after(runs.first(), workload)?;
        let (b, a) = (before.ipis_per_second(), after.ipis_per_second());
        let thousands = format!("{} -> {} k", before_there / 1e3, after_there / 1e3);
        table.add_row(
            name,
            vec![
                workload.into(),
                without_decimals(b),
                without_decimals(a),
                percent_change(b, a),
                thousands.clone(),
                percent_change(before_there, after_there),
                percent_change(before.median(), after.median()),
            ],
        );
        let rates = runs.by_boot(|run| {
            let (before, after) = before_and_after(run, workload)?;
            Ok([after.ipis_per_second(), before.ipis_per_second()])
        })?;
        let [after, before] = [0, 1].map(|which| rates.map(|rates| rates[which]));
        let source = format!("{name}: {thousands} reschedule IPIs per second");
        let claim = change_claim(source, (before_there, after_there), [after, before]);
        claims.push(claim.with_reason(
            "here every wake-up of a CPU that polls is elided, and nothing else interrupts; there part of the CPUs \
             were past their poll limit, and other tasks sent interrupts too",
        ));
        kept.push(rates.map(|[after, before]| 100.0 * after / before));
    }
    let of_tensorflow = kept.pop().unwrap_or_else(|| Constant(0.0).into());
    let of_reactors = kept.pop().unwrap_or_else(|| Constant(0.0).into());
    claims.push(
        Claim::new_below(
            "Reactors keep a smaller part (22 %) than TensorFlow (48 %)",
            ("notify", of_reactors),
            ("messaging", of_tensorflow),
        )
        .difference_in("points"),
    );
    let latency = runs.by_boot(|run| {
        let (before, after) = before_and_after(run, "notify")?;
        Ok([after.median(), before.median()])
    })?;
    let [after, before] = [0, 1].map(|which| latency.map(|both| both[which]));
    let claim = change_claim(
        "Reactors: latency lower by 25 %".into(),
        (100.0, 75.0),
        [after, before],
    );
    claims.push(claim.with_reason(
        "instructions of the executor, which polling does not save, are most of a wake-up here",
    ));
    let series = [Series::Here(3, "here"), Series::Published(5, "64 CPUs")];
    let title = "What polling changes of the rate of interrupts between CPUs";
    Ok(Outcome::of_table(
        table,
        (title, "change, %"),
        &series,
        claims,
        &[],
    ))
}
