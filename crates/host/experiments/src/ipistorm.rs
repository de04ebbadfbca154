// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ipistorm`: the effect of eliding the interrupt of a function call.

use std::collections::BTreeSet;

use anyhow::Result;
use plan::Under;

use super::outcome::{ByBoot, Claim, Outcome, Series, Table, Test, two_decimals, without_decimals};
use super::runs::{MeasuredCell, Runs};
use super::{Boot, Experiment, ONCE, Repeat};
use running::options::Metric;

/// The ten runs of the source.
const STORM: Boot = Boot {
    label: "storm",
    under: Under::Rouse,
    cpus: Some(32),
    lists: &[
        ("workload", "ipistorm"),
        ("wait", "poll-wfi"),
        ("trap", "none"),
        ("deliver", "direct"),
        ("wake", "elide"),
        ("call-by", "all"),
        ("offset", "8"),
        ("cpulist", "8,9,10,11,12,13,14,15,16,17"),
        ("crowd", "none,31"),
    ],
    iterations: 40,
    repeats: ONCE,
};

pub const EXPERIMENT: Experiment = Experiment {
    name: "ipistorm",
    question: "a CPU that polls is asked to run a function: does it have to schedule for that?",
    source: "K. P. Nayak, \"[PATCH] sched/fair: Skip newidle_balance() when an idle CPU is woken up \
             to process an IPI\", January 2024, and its successors: normalised time of ipistorm \
             numipi=100000 single=1 offset=8 cpulist=8 wait=1, ten runs",
    boots: &[
        STORM,
        // This shorter boot has only the cells whose counters are in the table.
        Boot {
            label: "storm-short",
            iterations: 8,
            repeats: &[Repeat {
                lists: &[("cpulist", CALLERS[0]), ("crowd", "31")],
                ..Repeat::SAME
            }],
            ..STORM
        },
        Boot {
            label: "few",
            under: Under::Rouse,
            cpus: Some(8),
            lists: &[
                ("workload", "ipistorm"),
                ("wait", "poll-wfi"),
                ("trap", "none"),
                ("deliver", "direct,inject"),
                ("wake", "elide"),
                ("call-by", "all"),
                ("crowd", "none,7"),
            ],
            iterations: 400,
            repeats: ONCE,
        },
        Boot {
            label: "wake",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "pingpong"),
                ("wait", "poll-wfi"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "ipi,elide"),
            ],
            iterations: 200,
            repeats: ONCE,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the order of the systems. Not the distances: here they are instructions of the caller \
                 and of the CPU that it calls, one after the other, there time of two CPUs at once, with \
                 a scheduler of many more instructions. `direct` is nearer to the source, which ran on \
                 metal. numipi is 40 here: in instruction mode calls repeat each other.",
};

/// The calling CPUs in the ten runs.
const CALLERS: [&str; 10] = ["8", "9", "10", "11", "12", "13", "14", "15", "16", "17"];
/// Accepted deviation of a size, in points.
const BAND: f64 = 5.0;

/// Systems: our name, the source's name, and the published figures on EPYC4 and on EPYC3.
const SYSTEMS: [(&str, &str, Option<f64>, Option<f64>); 5] = [
    ("resched", "base", Some(1.0), Some(1.0)),
    ("ipi", "revert", Some(0.6559), Some(0.40)),
    ("skip-newidle", "skip-newidle", Some(0.5519), None),
    ("notify", "TIF_NOTIFY_IPI", None, Some(0.4512)),
    ("sm-idle", "SM_IDLE", None, Some(0.2489)),
];

/// Returns the cells with a system's calls in all ten runs.
fn storm_cells<'r>(runs: &'r Runs, by: &str, crowd: &str) -> Result<Vec<MeasuredCell<'r>>> {
    let find = |&caller: &&str| {
        let words = [("call-by", by), ("cpulist", caller), ("crowd", crowd)];
        runs.cell("storm", &words)
    };
    CALLERS.iter().map(find).collect()
}

/// Returns the instructions that the caller and the callee execute for a call, for each run.
fn instructions_of_call(runs: &Runs, by: &str, crowd: &str) -> Result<ByBoot<f64>> {
    let cells = storm_cells(runs, by, crowd)?;
    let each = CALLERS.iter().zip(cells);
    let each =
        each.map(|(caller, found)| Ok((format!("CPU {caller}"), found.party_instructions()?)));
    runs.with_caveats(|| each.collect())
}

fn table(runs: &Runs) -> Result<Table> {
    let mut table = Table::new(
        "Instructions of caller and callee for a call, normalised to base, 32 CPUs: no CPU has two \
         tasks, CPU 31 has; what one more call adds to the counters (CPU 31 has two)",
        &[
            "none",
            "",
            "one",
            "",
            "all CPUs",
            "passes",
            "searches",
            "looked at",
            "IPIs",
            "EPYC4",
            "EPYC3",
        ],
    );
    let base = ["none", "31"].map(|crowd| instructions_of_call(runs, "resched", crowd));
    let [base, base_crowd] = base;
    let (base, base_crowd) = (base?.median(), base_crowd?.median());
    for (by, name, epyc4, epyc3) in SYSTEMS {
        let (alone, crowd) = (
            instructions_of_call(runs, by, "none")?,
            instructions_of_call(runs, by, "31")?,
        );
        let cells = storm_cells(runs, by, "31")?;
        let found = cells[0];
        let per_call = |group, name| two_decimals(found.count_per_operation(group, name));
        let published = |value: Option<f64>| value.map_or("-".into(), two_decimals);
        table.add_row(
            &format!("{name} ({by})"),
            vec![
                two_decimals(alone.median() / base),
                without_decimals(alone.median()),
                two_decimals(crowd.median() / base_crowd),
                without_decimals(crowd.median()),
                without_decimals(found.median()),
                per_call("sched", "from-idle"),
                per_call("sched", "searches"),
                per_call("sched", "looked"),
                per_call("ipi", "sent"),
                published(epyc4),
                published(epyc3),
            ],
        );
    }
    Ok(table)
}

/// Makes claims about how much less time each system takes than the system `base`, on one machine.
fn size_claims(runs: &Runs, machine: &str, of: fn(usize) -> Option<f64>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (n, (by, name, ..)) in SYSTEMS.into_iter().enumerate().skip(1) {
        let Some(there) = of(n) else { continue };
        for (crowd, when) in [("none", "no CPU has two tasks"), ("31", "one has")] {
            let (ours, base) = (
                instructions_of_call(runs, by, crowd)?,
                instructions_of_call(runs, "resched", crowd)?,
            );
            let size = Test::Size {
                expected: 100.0 * (there - 1.0),
                band: BAND,
            };
            let source = format!("{name} takes {there:.2} of base ({machine})");
            let claim = Claim::new(source, size, (name, ours), ("base", base));
            claims.push(claim.with_tested_part(when).with_reason(
                "what is saved is another part of a call here: our scheduler is short, and caller and \
                 callee are added up",
            ));
        }
    }
    Ok(claims)
}

fn order_claims(runs: &Runs) -> Result<Vec<Claim>> {
    let of = |by: &str, crowd: &str| instructions_of_call(runs, by, crowd);
    let pass = "without a second task anywhere 6.7 leaves the search at once, so that the patch saves next to \
                nothing, and the pass of the scheduler is left";
    let bit = "here the bit leads past the scheduler altogether, and the short path is a few instructions on \
               top; there the bit's idle loop did more";
    Ok(vec![
        Claim::new_below(
            "the patch is better than always interrupting (EPYC4)",
            ("skip-newidle", of("skip-newidle", "31")?),
            ("revert", of("ipi", "31")?),
        )
        .with_tested_part("while a CPU has two tasks"),
        Claim::new_below(
            "the patch is better than always interrupting (EPYC4)",
            ("skip-newidle", of("skip-newidle", "none")?),
            ("revert", of("ipi", "none")?),
        )
        .with_tested_part("while no CPU has two tasks")
        .with_reason(pass),
        Claim::new_below(
            "returning at once is better than always interrupting (EPYC3)",
            ("SM_IDLE", of("sm-idle", "none")?),
            ("revert", of("ipi", "none")?),
        ),
        Claim::new_below(
            "always interrupting is better than a bit of its own (EPYC3)",
            ("revert", of("ipi", "none")?),
            ("notify", of("notify", "none")?),
        )
        .with_reason(
            "sender and receiver are counted one after the other, so that what the interrupt costs \
             the receiver is always in the call",
        ),
        Claim::new_below(
            "returning at once is better than a bit of its own (EPYC3)",
            ("SM_IDLE", of("sm-idle", "none")?),
            ("notify", of("notify", "none")?),
        )
        .with_reason(bit),
    ])
}

/// Makes claims about our own figures, because the other claims rely on them.
fn own_claims(runs: &Runs) -> Result<Vec<Claim>> {
    let few = |by: &str| {
        let words = [("call-by", by), ("deliver", "direct"), ("crowd", "none")];
        runs.cell("few", &words)?.party_instructions()
    };
    let many = runs.single_figure_with_caveats(|| {
        let (revert, base) = (
            instructions_of_call(runs, "ipi", "none")?,
            instructions_of_call(runs, "resched", "none")?,
        );
        Ok(revert.median() / base.median())
    })?;
    let with_8 = runs.single_figure_with_caveats(|| Ok(few("ipi")? / few("resched")?))?;
    // The way of waiting has no effect on which instructions are counted.
    let [many, with_8] = [many, with_8].map(|figure| figure.with_missing_probes(BTreeSet::new()));
    Ok(vec![Claim::new(
        "what bystanders execute is not in the figures",
        Test::Equality { band: 1.0 },
        ("revert to base with 32 CPUs", many),
        ("with 8", with_8),
    )])
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut claims = size_claims(runs, "EPYC4", |n| SYSTEMS[n].2)?;
    claims.extend(size_claims(runs, "EPYC3", |n| SYSTEMS[n].3)?);
    claims.extend(order_claims(runs)?);
    let wake = |how| runs.cell("wake", &[("wake", how)]);
    let median = |how| runs.single_figure_with_caveats(|| Ok(wake(how)?.median()));
    let (always, elided) = (median("ipi")?, median("elide")?);
    let tbench = Test::Size {
        expected: 10.0,
        band: 2.0,
    };
    claims.push(
        Claim::new(
            "the revert makes tbench 8 to 11 % slower (1 to 256 clients)",
            tbench,
            ("always interrupted", always),
            ("elided", elided),
        )
        .with_tested_part("wake-ups of tasks, and nothing else")
        .with_reason("here the wake-up is all of it; tbench works between two of them"),
    );
    claims.extend(own_claims(runs)?);
    let table = table(runs)?;
    let series = [
        Series::Here(1, "no CPU has two tasks"),
        Series::Here(3, "CPU 31 has"),
        Series::Published(9, "EPYC4"),
        Series::Published(10, "EPYC3"),
    ];
    Ok(Outcome::of_table(
        table,
        ("A call, normalised to base", "base = 1"),
        &series,
        claims,
        &[
            "the ten runs call from ten CPUs, 8 to 17, each the CPU 8 further; column `all CPUs` has what \
             all 32 execute in a call, 30 of them as bystanders",
        ],
    ))
}
