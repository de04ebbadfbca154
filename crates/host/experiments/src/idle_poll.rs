// SPDX-License-Identifier: MIT OR Apache-2.0
//! `idle-poll`: polling on selected CPUs only.

use anyhow::Result;
use plan::Under;

use super::outcome::{
    ByBoot, Chart, Claim, Constant, Outcome, Series, Table, Test, two_decimals, without_decimals,
};
use super::runs::{MeasuredCell, Run, Runs};
use super::{Boot, Experiment, ONCE, Repeat};

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
            iterations: 100,
            repeats: PLACES,
        },
        Boot {
            label: "pointer",
            under: Under::Rouse,
            cpus: Some(4),
            lists: &[
                ("workload", "timer"),
                ("wait", "governor:menu"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "elide"),
                ("cpulist", "1"),
                ("idle-poll", "1"),
                ("idle-poll-by", "pointer"),
                ("gap-us", "500"),
            ],
            iterations: 100,
            repeats: ONCE,
        },
    ],
    metric: None,
    conclude,
    comparable: "that the chosen CPU is as good as with all polling, that its tick goes on, and what the \
                 other CPUs pay. Watts are not measured: the share of time in which CPUs are not halted \
                 stands for them, so only the direction can be. Not the 80 ns that a boost clock brought.",
};

/// Three numbers of CPUs. Each includes further CPUs besides the polling one.
const PLACES: &[Repeat] = &[
    Repeat::cpus("3-cpus", 3),
    Repeat::cpus("4-cpus", 4),
    Repeat::cpus("6-cpus", 6),
];

/// Rows: our word for the CPUs that poll, the title of the row, and the published watts.
const ROWS: [(&str, &str, Option<f64>); 3] = [
    ("all", "all CPUs poll", Some(381.0)),
    ("1", "CPU 1 polls", Some(233.0)),
    ("none", "none polls", None),
];

/// Number of ticks that a CPU takes in 100 ms, at 250 Hz.
const TICKS: f64 = 25.0;

/// Accepted deviation of the number of ticks, in per cent. This deviation is one tick more or less in each pass
/// of 12.5 ms.
const TICKS_BAND: f64 = 32.0;

fn poll_cell<'r>(run: Run<'r>, set: &str) -> Result<MeasuredCell<'r>> {
    run.cell("chosen", &[("idle-poll", set)])
}

/// Returns the mean number of ticks per CPU in 100 ms, if there are `cpus` CPUs.
fn ticks_per_100_ms(found: MeasuredCell, cpus: f64) -> f64 {
    found.count("timer", "ticks") / cpus / (10.0 * found.seconds()).max(1e-9)
}

fn wakeups_table(runs: &Runs) -> Result<Table> {
    let mut table = Table::new(
        "Wake-ups of a task on CPU 1, every 500 us: lateness, time awake of all CPUs, ticks of all",
        &[
            "late p50, us",
            "late p90, us",
            "awake, %",
            "ticks in 100 ms",
            "published, W",
        ],
    );
    let mut row = |name: &str, found: MeasuredCell, watts: Option<f64>| {
        let p90 = found.p90();
        table.add_row(
            name,
            vec![
                two_decimals(found.value_in_us(found.median())),
                p90.map_or("-".into(), |p90| two_decimals(found.value_in_us(p90))),
                two_decimals(found.awake_percent()),
                two_decimals(ticks_per_100_ms(found, 1.0)),
                watts.map_or("-".into(), without_decimals),
            ],
        );
    };
    for (set, name, watts) in ROWS {
        row(name, poll_cell(runs.first(), set)?, watts);
    }
    row("CPU 1, by pointer", runs.cell("pointer", &[])?, None);
    Ok(table)
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let each = |of: &dyn Fn(MeasuredCell) -> f64, set: &str| -> Result<ByBoot<f64>> {
        runs.by_boot(|run| Ok(of(poll_cell(run, set)?)))
    };
    let late = |set| each(&|found| found.value_in_us(found.median()), set);
    let awake = |set| each(&|found| found.awake_percent(), set);
    let of_all = runs.by_boot(|run| {
        let found = poll_cell(run, "all")?;
        Ok(ticks_per_100_ms(found, found.cpus()))
    })?;
    let claims = vec![
        Claim::new(
            "cyclictest is as good as with idle=poll",
            Test::Equality { band: 5.0 },
            ("chosen", late("1")?),
            ("all", late("all")?),
        )
        .with_tested_part("median lateness, us")
        .with_reason(
            "CPUs run one after another here, so that a sample has the looks of the others that poll",
        ),
        Claim::new_below("it is better than without", ("chosen", late("1")?), ("none", late("none")?))
            .with_tested_part("median lateness, us"),
        Claim::new(
            "power falls from 381 to 233 W",
            Test::Size {
                expected: 100.0 * (233.0 / 381.0 - 1.0),
                band: 10.0,
            },
            ("chosen", awake("1")?),
            ("all", awake("all")?),
        )
        .with_tested_part("the share of time awake, which stands for power")
        .with_reason("a CPU that halts takes power too, and the rest of the machine does"),
        Claim::new(
            "the tick goes on while a CPU polls",
            Test::Equality { band: TICKS_BAND },
            ("ticks of a CPU in 100 ms, all poll", of_all),
            ("at 250 Hz", Constant(TICKS)),
        ),
    ];
    let wakeups = wakeups_table(runs)?;
    let charts = vec![
        Chart::bars(
            &wakeups,
            "Lateness of a wake-up, median",
            "us of the counter",
            &[Series::Here(0, "here")],
            |_| true,
        ),
        Chart::bars(
            &wakeups,
            "Time awake, which stands for power",
            "% of all CPUs; published: W",
            &[Series::Here(2, "here"), Series::Published(4, "power")],
            |_| true,
        ),
    ];
    Ok(Outcome {
        tables: vec![wakeups],
        charts,
        claims,
        notes: vec![
            "the loops of the first two rows are one; that of the third looks at its switch".into(),
            "before each block CPUs are switched to polling, and while they run back and to polling again"
                .into(),
        ],
    })
}
