// SPDX-License-Identifier: MIT OR Apache-2.0
//! `posted-skip-newidle`: function calls to a CPU that polls, with the patch itself applied on top of `arm_poll_idle`.
//!
//! On arm64, a CPU polls with TIF_POLLING_NRFLAG only if another patch, `arm_poll_idle`, is applied. Without that
//! patch, each call sends an interrupt, as with the source's revert.

use anyhow::Result;
use plan::Under;
use running::options::Metric;

use super::{KERNEL, UNTRAPPED, ipis_per_operation, two_cpu_boot};
use crate::Experiment;
use crate::outcome::{ByBoot, Claim, Outcome, Series, Table, Test, two_decimals, without_decimals};
use crate::runs::Runs;

pub const EXPERIMENT: Experiment = Experiment {
    name: "posted-skip-newidle",
    question: "must a CPU that polls run its scheduler to execute a function call, in Linux 6.1?",
    source: "K. P. Nayak, \"[PATCH] sched/fair: Skip newidle_balance() when an idle CPU is woken up to process an IPI\", \
             January 2024: ipistorm on EPYC, normalized runtime 1.00, with the revert 0.66, with the patch 0.55",
    boots: &[
        two_cpu_boot(
            "tip",
            Under::None,
            400,
            &[(KERNEL, "6.1+000"), WORKLOADS, UNTRAPPED],
        ),
        two_cpu_boot(
            "revert",
            Under::None,
            400,
            &[(KERNEL, "6.1"), WORKLOADS, UNTRAPPED],
        ),
        two_cpu_boot(
            "patched",
            Under::None,
            400,
            &[(KERNEL, "6.1+000+001"), WORKLOADS, UNTRAPPED],
        ),
        two_cpu_boot(
            "newer",
            Under::None,
            400,
            &[(KERNEL, "6.12+000"), WORKLOADS, UNTRAPPED],
        ),
        two_cpu_boot(
            "newer-patched",
            Under::None,
            400,
            &[(KERNEL, "6.12+000+001"), WORKLOADS, UNTRAPPED],
        ),
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the order of the three kernels, and what the patch saves of a call, in instructions of both CPUs of the bare \
                 machine. Not the runtimes of 256 CPUs. A pipe and messages stand for tbench and netperf.",
};

const WORKLOADS: (&str, &str) = ("workload", "linux-call,linux-pipe,linux-messaging");

/// Labels of the boots, their names in the table, and the published runtime.
const ROWS: [(&str, &str, Option<f64>); 5] = [
    ("tip", "6.1, a CPU polls: a flag, no interrupt", Some(1.0)),
    (
        "revert",
        "6.1, a CPU does not poll: an interrupt",
        Some(0.66),
    ),
    ("patched", "6.1, a CPU polls, with the patch", Some(0.55)),
    ("newer", "6.12, a CPU polls", None),
    ("newer-patched", "6.12, a CPU polls, with the patch", None),
];

/// Largest change of a benchmark that counts as unchanged, in per cent. This change is the variation that the source
/// states.
const SAME: f64 = 3.0;

fn conclude(runs: &Runs) -> Result<Outcome> {
    let median = |label: &str, workload: &str| -> Result<ByBoot<f64>> {
        runs.by_boot(|run| Ok(run.cell(label, &[("workload", workload)])?.median()))
    };
    let call = |label: &str| median(label, "linux-call");
    let tip = call("tip")?.median();
    let mut table = Table::new(
        "A function call to an idle CPU: instructions of both CPUs, median",
        &[
            "instructions",
            "of tip",
            "published",
            "interrupts",
            "pipe",
            "messaging",
        ],
    );
    for (label, name, published) in ROWS {
        let found = runs.cell(label, &[("workload", "linux-call")])?;
        let own = call(label)?.median();
        table.add_row(
            name,
            vec![
                without_decimals(own),
                two_decimals(own / tip),
                published.map_or("-".into(), two_decimals),
                two_decimals(ipis_per_operation(&found)),
                without_decimals(median(label, "linux-pipe")?.median()),
                without_decimals(median(label, "linux-messaging")?.median()),
            ],
        );
    }
    let mut claims = vec![
        Claim::new_below(
            "the revert is faster than tip (0.66)",
            ("revert", call("revert")?),
            ("tip", call("tip")?),
        )
        .at_least_share_of(0.66, 1.0),
        Claim::new_below(
            "the patch is faster than tip (0.55)",
            ("patched", call("patched")?),
            ("tip", call("tip")?),
        )
        .at_least_share_of(0.55, 1.0),
        Claim::new_below(
            "the patch is faster than the revert (0.55 against 0.66)",
            ("patched", call("patched")?),
            ("revert", call("revert")?),
        )
        .at_least_share_of(0.55, 0.66),
    ];
    for (workload, name) in [("linux-pipe", "a pipe"), ("linux-messaging", "messages")] {
        claims.push(
            Claim::new(
                format!("tbench, netperf and hackbench with the patch match tip: {name}"),
                Test::Equality { band: SAME },
                ("patched", median("patched", workload)?),
                ("tip", median("tip", workload)?),
            )
            .with_reason("two CPUs place their threads differently in every boot"),
        );
    }
    Ok(Outcome::of_table(
        table,
        (
            "A function call to an idle CPU, as a part of that of tip",
            "of tip",
        ),
        &[Series::Here(1, "here"), Series::Published(2, "runtime")],
        claims,
        &[
            "the call is the read of a perf counter of the other CPU (linux-call)",
            "in 6.12 the patch changes nothing: its successor (SM_IDLE) returns from schedule_idle before the search for tasks",
        ],
    ))
}
