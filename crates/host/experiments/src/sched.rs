// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sched`: `perf bench sched` with and without polling before WFI.

use anyhow::Result;
use plan::Under;

use super::outcome::{
    ByBoot, Claim, Outcome, Series, Table, Test, percent_change, without_decimals,
};
use super::runs::{MeasuredCell, Run, Runs};
use super::{Boot, Experiment, PLACES};

pub const EXPERIMENT: Experiment = Experiment {
    name: "sched",
    question: "what does polling before WFI bring to tasks that wake each other?",
    source: "H. Okanovic, \"[PATCH 3/3] arm64: cpuidle: Add arm_poll_idle\", April 2024: perf bench \
             sched on c6g (Graviton2) and c7g (Graviton3), VM and metal, seconds",
    boots: &[
        Boot {
            label: "vm",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "messaging,pipe,notify"),
                ("wait", "wfi,poll-wfi"),
                ("trap", "wfi"),
                ("deliver", "inject"),
                ("wake", "ipi,elide"),
                ("host-poll-us", "0"),
            ],
            iterations: 200,
            repeats: PLACES,
        },
        Boot {
            label: "metal",
            under: Under::None,
            cpus: None,
            lists: &[
                ("workload", "messaging,pipe,notify"),
                ("wait", "wfi,poll-wfi"),
                ("trap", "none"),
                ("deliver", "direct"),
                ("wake", "ipi,elide"),
            ],
            iterations: 200,
            repeats: PLACES,
        },
    ],
    metric: None,
    conclude,
    comparable: "the sign and the order of the changes: VM against metal, wake-ups against busy run \
                 queues. Their size says how much of an operation is the wake-up: seconds there are what cores, caches \
                 and two system calls on each side take; here a small executor makes none, and instructions (virt) are \
                 what both CPUs execute one after the other.",
};

/// Times before and after, in seconds.
pub type Pair = (f64, f64);

/// Tests: perf's name, our workload, and the source's times before and after in four places. The places are a VM on
/// Graviton2, a VM on Graviton3, metal on Graviton2, and metal on Graviton3.
pub const TESTS: [(&str, &str, [Pair; 4]); 3] = [
    (
        "messaging",
        "messaging",
        [
            (18.974, 18.400),
            (13.852, 13.859),
            (17.621, 16.744),
            (13.430, 13.404),
        ],
    ),
    (
        "pipe",
        "pipe",
        [
            (30.158, 15.181),
            (18.289, 12.067),
            (17.609, 15.170),
            (14.103, 12.304),
        ],
    ),
    (
        "seccomp-notify",
        "notify",
        [
            (28.784, 13.754),
            (16.964, 11.430),
            (15.717, 13.536),
            (13.301, 11.491),
        ],
    ),
];

/// Places: the label of our boot, its name in texts, and the indices of the source's times to compare it with, for
/// Graviton2 and for Graviton3.
pub const PLACES_OF_SOURCE: [(&str, &str, [usize; 2]); 2] =
    [("vm", "VM", [0, 1]), ("metal", "metal", [2, 3])];

/// Accepted deviation of our change from the mean of the two published changes, in points. The two published changes
/// differ by up to 19 points.
const BAND: f64 = 10.0;

/// Largest accepted difference between the changes of pipe and notify, in points. In the source, it is at most 2 in any
/// column.
const APART: f64 = 2.0;

/// The costs of an operation before and after.
type Costs = [f64; 2];

/// Returns the costs of an operation before and after, in boot `boot`.
fn costs(run: Run<'_>, boot: &str, workload: &str) -> Result<Costs> {
    let before = run.cell(boot, &[("workload", workload), ("wait", "wfi")])?;
    let after = [
        ("workload", workload),
        ("wait", "poll-wfi"),
        ("wake", "elide"),
    ];
    let after = run.cell(boot, &after)?;
    Ok([cost(workload, &before), cost(workload, &after)])
}

/// Returns the change of the costs, in per cent.
fn change_in_percent([before, after]: &Costs) -> f64 {
    100.0 * (after / before - 1.0)
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        &format!(
            "An operation before (wfi) -> after (poll-wfi, eliding), 2 CPUs, in {}; published changes",
            runs.unit()
        ),
        &[
            "VM", "", "metal", "", "VM G2", "VM G3", "metal G2", "metal G3",
        ],
    );
    let mut claims = Vec::new();
    // The changes are sorted by test, and then by boot.
    let mut changes = Vec::new();
    for (name, workload, published) in TESTS {
        let mut texts = Vec::new();
        for (boot, place, beside) in PLACES_OF_SOURCE {
            let [before, after] = costs(runs.first(), boot, workload)?;
            texts.push(format!(
                "{} -> {}",
                without_decimals(before),
                without_decimals(after)
            ));
            texts.push(percent_change(before, after));
            // The CPUs of this workload are rarely idle, so the way of waiting can't change its cost.
            if workload == "messaging" {
                continue;
            }
            let ours = runs.by_boot(|run| costs(run, boot, workload))?;
            let there = beside.map(|column| published[column]);
            claims.push(claim_published_size(name, place, there, &ours));
            changes.push(ours.map(change_in_percent));
        }
        texts.extend(published.map(|(before, after)| percent_change(before, after)));
        table.add_row(name, texts);
    }
    let [pipe, pipe_metal, notify, notify_metal] = &changes[..] else {
        unreachable!("two tests in two places");
    };
    for (name, vm, metal) in [
        ("pipe", pipe, pipe_metal),
        ("seccomp-notify", notify, notify_metal),
    ] {
        let claim = Claim::new_below(
            format!("{name} gains more in a VM than on metal"),
            ("change in a VM", vm.clone()),
            ("on metal", metal.clone()),
        );
        claims.push(claim.difference_in("points"));
    }
    for (place, pipe, notify) in [("VM", pipe, notify), ("metal", pipe_metal, notify_metal)] {
        let claim = Claim::new(
            format!("{place}: pipe and seccomp-notify change alike (no more than 2 points apart)"),
            Test::Equality { band: APART },
            ("pipe", pipe.clone()),
            ("notify", notify.clone()),
        );
        let claim = claim.difference_in("points");
        claims.push(claim.with_reason(DIFFERENT_WORK));
    }
    let series = [
        Series::Here(1, "VM"),
        Series::Here(3, "metal"),
        Series::Published(4, "VM, Graviton2"),
        Series::Published(5, "VM, Graviton3"),
        Series::Published(6, "metal, Graviton2"),
        Series::Published(7, "metal, Graviton3"),
    ];
    Ok(Outcome::of_table(
        table,
        ("What polling changes of an operation", "change, %"),
        &series,
        claims,
        &[
            "pipe and notify are pairs of tasks on the executor; the wake-up alone is workload pingpong \
             (experiment where-to-poll)",
        ],
    ))
}

/// Why the changes of pipe and notify may differ.
const DIFFERENT_WORK: &str = "other work is around the wake-up in the one than in the other";

/// Claims that our change has the published size.
fn claim_published_size(name: &str, place: &str, there: [Pair; 2], ours: &ByBoot<Costs>) -> Claim {
    let changes = there.map(|(before, after)| 100.0 * (after / before - 1.0));
    let [g2, g3] = changes;
    let test = Test::Size {
        expected: f64::midpoint(g2, g3),
        band: BAND,
    };
    let source = format!("{name}, {place}: {g2:+.0} % (Graviton2), {g3:+.0} % (Graviton3)");
    let [before, after] = [0, 1].map(|which| ours.map(|costs| costs[which]));
    Claim::new(source, test, ("after", after), ("before", before)).with_reason(
        "wake-ups are another part of an operation here, of a small executor without system calls; in instructions (virt), \
         those of other CPUs that poll count too",
    )
}

/// Returns the cost of an operation, which is the median. The loops of `messaging` overlap, so its cost is the total
/// time divided by the number of loops.
fn cost(workload: &str, found: &MeasuredCell<'_>) -> f64 {
    match workload {
        "messaging" => found.time_counter("span", "ticks") / found.operations(),
        _ => found.median(),
    }
}
