// SPDX-License-Identifier: MIT OR Apache-2.0
//! `clients`: what it costs pairs of client and server if every wake-up is an interrupt,
//! by how many there are.
//!
//! The source's machine has 512 hardware threads, and as many tasks as that with 256
//! clients, each of which has a server. Ours stands beside the row of the source that has as many
//! tasks per CPU.

use anyhow::Result;
use plan::Under;

use super::find::{Found, Run, Runs};
use super::outcome::{ByBoot, Claim, Outcome, Table, Test, Way, whole};
use super::{Boot, Experiment, Repeat};
use crate::cli::Metric;

/// CPUs, and how many of the source's clients stand for one pair: 512 threads by that.
const CPUS: u32 = 8;
const CLIENTS_PER_PAIR: usize = 64;

/// How much client and server do with a request, each: what is chosen here decides the
/// size of the effect, and a claim has to hold for all.
const WORK: &[Repeat] = &[
    Repeat {
        name: "1-us",
        lists: &[("gap-us", "1"), ("service-us", "1")],
        ..Repeat::SAME
    },
    Repeat {
        name: "3-us",
        lists: &[("gap-us", "3"), ("service-us", "3")],
        ..Repeat::SAME
    },
    Repeat {
        name: "9-us",
        lists: &[("gap-us", "9"), ("service-us", "9")],
        ..Repeat::SAME
    },
];

pub const EXPERIMENT: Experiment = Experiment {
    name: "clients",
    question: "what does it cost clients and servers to interrupt CPUs that poll, and up to how many clients?",
    source: "K. P. Nayak, \"[PATCH] sched/fair: Skip newidle_balance() when an idle CPU is woken up to \
             process an IPI\", January 2024: tbench and netperf, throughput of the kernel that always \
             interrupts against the one that does not, 512 hardware threads",
    boots: &[Boot {
        label: "pairs",
        under: Under::Rouse,
        cpus: Some(CPUS),
        lists: &[
            ("workload", "notify"),
            ("wait", "poll-wfi"),
            ("trap", "none"),
            ("deliver", "direct,inject"),
            ("wake", "ipi,elide"),
            ("groups", "1,2,4,8,16"),
        ],
        iterations: 60,
        repeats: WORK,
    }],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the sign of the effect, and that it vanishes where CPUs have enough tasks not to idle. Not \
                 its size: that is decided by how much work a request is, and here CPUs run one after another. \
                 `direct` is nearer to the source, which ran on metal.",
};

/// Pairs, and what the source's patched kernel loses with as many tasks per CPU, per cent:
/// tbench, netperf (with 1024 clients it was not run).
const ROWS: [(&str, f64, Option<f64>); 5] = [
    ("1", -9.72, Some(-10.11)),
    ("2", -8.36, Some(-10.94)),
    ("4", -3.30, Some(-0.16)),
    ("8", -1.73, Some(2.10)),
    ("16", -1.39, None),
];

/// What the source's throughput loses where the effect is gone, per cent: tbench with 256 clients.
const GONE: f64 = 3.3;

/// Requests per second.
fn throughput(found: &Found<'_>) -> f64 {
    found.samples() / found.seconds().max(1e-9)
}

fn find<'r>(run: Run<'r>, deliver: &str, pairs: &str, wake: &str) -> Result<Found<'r>> {
    let words = [("groups", pairs), ("wake", wake), ("deliver", deliver)];
    run.cell("pairs", &words)
}

/// Throughput where every wake-up is an interrupt, and where those of polling CPUs are not.
fn pair(runs: &Runs, deliver: &str, pairs: &str) -> Result<[ByBoot<f64>; 2]> {
    let of = |wake| runs.by_boot(|run| Ok(throughput(&find(run, deliver, pairs, wake)?)));
    Ok([of("ipi")?, of("elide")?])
}

/// What is lost, per cent.
fn loss(runs: &Runs, deliver: &str, pairs: &str) -> Result<ByBoot<f64>> {
    runs.by_boot(|run| {
        let of = |wake| Ok::<_, anyhow::Error>(throughput(&find(run, deliver, pairs, wake)?));
        Ok(100.0 * (1.0 - of("ipi")? / of("elide")?))
    })
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    Ok(Outcome {
        tables: vec![table(runs)?],
        charts: Vec::new(),
        claims: claims(runs)?,
        notes: vec![
            "a pair is that of workload notify: a request, an answer, and some work on either side; client and server \
             are on neighbouring CPUs"
                .into(),
            "the patches are about function calls; where a CPU is woken for a task they change nothing, and the \
             source's throughput with them is that without"
                .into(),
        ],
    })
}

fn table(runs: &Runs) -> Result<Table> {
    let mut table = Table::new(
        "Requests/s of all pairs where wake-ups are elided, 8 CPUs, work 1 us; change where they are not (work 1, 3, 9 us)",
        &[
            "direct",
            "change",
            "us",
            "inject",
            "change",
            "IPIs",
            "clients there",
            "tbench",
            "netperf",
        ],
    );
    for (number, (pairs, tbench, netperf)) in ROWS.into_iter().enumerate() {
        let changes = |deliver| -> Result<String> {
            let losses = loss(runs, deliver, pairs)?;
            let texts: Vec<String> = losses.values().map(|loss| format!("{:+.1}", -loss)).collect();
            Ok(format!("{} %", texts.join(", ")))
        };
        let elided = find(runs.first(), "direct", pairs, "elide")?;
        let interrupted = find(runs.first(), "direct", pairs, "ipi")?;
        let injected = find(runs.first(), "inject", pairs, "elide")?;
        let sent = interrupted.count("ipi", "sent") / interrupted.samples().max(1.0);
        table.row(
            &format!("{pairs} pairs"),
            vec![
                whole(throughput(&elided)),
                changes("direct")?,
                format!("{:.2}", elided.us(elided.median())),
                whole(throughput(&injected)),
                changes("inject")?,
                format!("{sent:.2}"),
                (CLIENTS_PER_PAIR << number).to_string(),
                format!("{tbench:+.2} %"),
                netperf.map_or("-".into(), |change| format!("{change:+.2} %")),
            ],
        );
    }
    Ok(table)
}

fn claims(runs: &Runs) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for deliver in ["direct", "inject"] {
        let all = |pairs, source: &str, test| {
            let [interrupted, elided] = pair(runs, deliver, pairs)?;
            let claim = Claim::new(source, test, ("interrupted", interrupted), ("elided", elided));
            Ok::<_, anyhow::Error>(claim.tested(format!("{deliver}, {pairs} pairs, requests/s")))
        };
        let falls = Test::Sign { way: Way::Falls };
        claims.push(all("1", "tbench -9.7 %, netperf -10.1 % with 64 clients", falls)?);
        let gone = Test::Equality { band: GONE };
        claims.push(
            all("4", "tbench -3.3 %, netperf -0.2 % with 256 clients: as many tasks as CPUs", gone)?.else_because(
                "half of the tasks wait for the other half, so every CPU idles in turn; the source's scheduler \
                 may put client and server on one CPU, which this one does not",
            ),
        );
        claims.push(all("16", "tbench -1.4 % with 1024 clients", gone)?);
        claims.push(
            Claim::below(
                "the loss falls with clients (-9.7 % to -1.4 %)",
                ("lost with 16 pairs", loss(runs, deliver, "16")?),
                ("with 1", loss(runs, deliver, "1")?),
            )
            .tested(deliver)
            .in_unit("points"),
        );
    }
    Ok(claims)
}
