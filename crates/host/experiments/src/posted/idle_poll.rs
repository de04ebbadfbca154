// SPDX-License-Identifier: MIT OR Apache-2.0
//! `posted-idle-poll`: CPUs poll because of a file in sysfs, with the patch itself.

use anyhow::Result;
use plan::Under;
use running::options::Metric;

use super::{KERNEL, UNTRAPPED, ipis_per_operation, two_cpu_boot};
use crate::Experiment;
use crate::outcome::{ByBoot, Claim, Outcome, Series, Table, Test, two_decimals, without_decimals};
use crate::runs::Runs;

pub const EXPERIMENT: Experiment = Experiment {
    name: "posted-idle-poll",
    question: "does a CPU that polls by its file idle_poll wake up as with nohlt, and does the patch cost nothing otherwise?",
    source: "D. Bristot de Oliveira, \"[PATCH] sched/idle: Make idle poll dynamic per-cpu\", January 2023, in Linux 6.1: \
             cyclictest as good as with idle=poll; a static key while unused",
    boots: &[
        two_cpu_boot(
            "without",
            Under::None,
            200,
            &[(KERNEL, "6.1"), WORKLOADS, UNTRAPPED],
        ),
        two_cpu_boot(
            "unused",
            Under::None,
            200,
            &[(KERNEL, "6.1+003"), WORKLOADS, UNTRAPPED],
        ),
        two_cpu_boot(
            "by-file",
            Under::None,
            200,
            &[
                (KERNEL, "6.1+003"),
                WORKLOADS,
                UNTRAPPED,
                ("linux-cpuidle", "idle-poll"),
            ],
        ),
        two_cpu_boot(
            "nohlt",
            Under::None,
            200,
            &[
                (KERNEL, "6.1+003"),
                WORKLOADS,
                UNTRAPPED,
                ("linux-cpuidle", "nohlt"),
            ],
        ),
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "lateness of a timer and the length of a wake-up, in instructions of the bare machine; that the files work \
                 while the system runs. Not watts, nor the 80 ns of a boost clock.",
};

const WORKLOADS: (&str, &str) = ("workload", "linux-timer,linux-pipe");

/// Labels of the boots, and their names in the table.
const ROWS: [(&str, &str); 4] = [
    ("without", "6.1"),
    ("unused", "patched, not used"),
    ("by-file", "patched, all CPUs poll by their files"),
    ("nohlt", "patched, nohlt"),
];

/// Largest difference between two kernels that counts as none, in per cent. An idle entry is a hundredth of a wake-up.
const SAME: f64 = 0.5;
/// Largest difference between two values of lateness that count as equally good, in per cent.
const AS_GOOD: f64 = 5.0;

fn conclude(runs: &Runs) -> Result<Outcome> {
    let median = |label: &str, workload: &str| -> Result<ByBoot<f64>> {
        runs.by_boot(|run| Ok(run.cell(label, &[("workload", workload)])?.median()))
    };
    let late = |label: &str| median(label, "linux-timer");
    let pipe = |label: &str| median(label, "linux-pipe");
    let mut table = Table::new(
        "A timer every 1000 us, and a round trip of a pipe: medians",
        &[
            "timer late, ticks",
            "pipe, instructions",
            "interrupts between CPUs a trip",
        ],
    );
    for (label, name) in ROWS {
        let cell = runs.cell(label, &[("workload", "linux-pipe")])?;
        table.add_row(
            name,
            vec![
                without_decimals(late(label)?.median()),
                without_decimals(pipe(label)?.median()),
                two_decimals(ipis_per_operation(&cell)),
            ],
        );
    }
    let claims = vec![
        Claim::new(
            "cyclictest is as good as with idle=poll",
            Test::Equality { band: AS_GOOD },
            ("by file", late("by-file")?),
            ("nohlt", late("nohlt")?),
        )
        .with_tested_part("median lateness of a timer"),
        Claim::new_below(
            "it is better than without",
            ("by file", late("by-file")?),
            ("without", late("without")?),
        )
        .with_tested_part("median lateness of a timer"),
        Claim::new(
            "a static key avoids the overhead while nothing polls: a pipe",
            Test::Equality { band: SAME },
            ("patched, not used", pipe("unused")?),
            ("without", pipe("without")?),
        )
        .with_tested_part("instructions of a round trip"),
        Claim::new(
            "a static key avoids the overhead while nothing polls: a timer",
            Test::Equality { band: SAME },
            ("patched, not used", late("unused")?),
            ("without", late("without")?),
        )
        .with_tested_part("median lateness of a timer"),
    ];
    Ok(Outcome::of_table(
        table,
        ("Lateness of a timer, median", "ticks"),
        &[Series::Here(0, "here")],
        claims,
        &[
            "the files are written once Linux is up, before the first sample",
            "arm64 of 6.1 has no TIF_POLLING_NRFLAG, so a CPU that polls still gets an interrupt with each wake-up",
        ],
    ))
}
