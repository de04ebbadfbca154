// SPDX-License-Identifier: MIT OR Apache-2.0
//! `posted-irq-delay`: the gain of the patch on simulated cores, over the time that an interrupt takes to reach a core.
//!
//! gem5 delivers an interrupt to a core in no time. A server's interconnect takes some time, but how long is not
//! published. So this experiment adds a delay (`boards/gem5/gem5.patch`), and shows which delay would produce the
//! published gain.

use anyhow::Result;
use plan::Under;
use running::options::Metric;

use super::arm_poll_idle::{PAIRS, SOURCE, change_in_percent};
use super::{KERNEL, SET, UNTRAPPED};
use crate::Experiment;
use crate::boot::{Boot, Lists, ONCE};
use crate::outcome::{Chart, Claim, Outcome, Series, Table, Test, Way, without_decimals};
use crate::runs::Runs;
use crate::sched::{PLACES_OF_SOURCE, TESTS};

/// Delays in nanoseconds, each with the labels of its boots.
const DELAYS: [(&str, [&str; 2]); 5] = [
    ("0", ["before-0", "after-0"]),
    ("100", ["before-100", "after-100"]),
    ("300", ["before-300", "after-300"]),
    ("1000", ["before-1000", "after-1000"]),
    ("3000", ["before-3000", "after-3000"]),
];

/// Returns the lists of the boots of a delay.
macro_rules! lists {
    ($kernel:literal, $set:literal) => {
        &[(KERNEL, $kernel), WORKLOADS, UNTRAPPED, (SET, $set)]
    };
}

pub const EXPERIMENT: Experiment = Experiment {
    name: "posted-irq-delay",
    question: "what would arm_poll_idle bring if an interrupt took time to reach a core, in Linux 6.12?",
    source: SOURCE,
    boots: &[
        boot(DELAYS[0].1[0], lists!("6.12", "irq-ns=0")),
        boot(DELAYS[0].1[1], lists!("6.12+000", "irq-ns=0")),
        boot(DELAYS[1].1[0], lists!("6.12", "irq-ns=100")),
        boot(DELAYS[1].1[1], lists!("6.12+000", "irq-ns=100")),
        boot(DELAYS[2].1[0], lists!("6.12", "irq-ns=300")),
        boot(DELAYS[2].1[1], lists!("6.12+000", "irq-ns=300")),
        boot(DELAYS[3].1[0], lists!("6.12", "irq-ns=1000")),
        boot(DELAYS[3].1[1], lists!("6.12+000", "irq-ns=1000")),
        boot(DELAYS[4].1[0], lists!("6.12", "irq-ns=3000")),
        boot(DELAYS[4].1[1], lists!("6.12+000", "irq-ns=3000")),
    ],
    metric: Some(Metric::Cycles),
    conclude,
    comparable: "at which delay the gain here would be the published one on metal. Delays are ours: no figure of a server's is \
                 published. Not the seconds.",
};

const WORKLOADS: (&str, &str) = ("workload", "linux-pipe,linux-seccomp-notify");

const fn boot(label: &'static str, lists: Lists) -> Boot {
    Boot {
        label,
        under: Under::None,
        cpus: Some(2),
        lists,
        iterations: 24,
        repeats: ONCE,
    }
}

/// Returns the cycles of an operation without and with the patch.
fn before_and_after(runs: &Runs, labels: [&str; 2], workload: &str) -> Result<(f64, f64)> {
    let of = |label| -> Result<f64> {
        let cell = runs.first().cell(label, &[("workload", workload)])?;
        Ok(cell.median())
    };
    Ok((of(labels[0])?, of(labels[1])?))
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let (_, _, columns) = PLACES_OF_SOURCE[1];
    let tests: Vec<_> = TESTS
        .into_iter()
        .filter(|(name, ..)| PAIRS.contains(name))
        .collect();
    let mut titles = Vec::new();
    for (name, ..) in &tests {
        titles.extend([format!("{name}, cycles"), format!("{name}, %")]);
    }
    titles.extend(["pipe on G2, %", "pipe on G3, %"].map(str::to_owned));
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::new(
        "Cycles per operation without the patch, and the change by it in per cent, over the delay of an interrupt in nanoseconds; \
         published changes of pipe on metal",
        &titles,
    );
    let published = columns.map(|n| change_in_percent(tests[0].2[n]));
    for (delay, labels) in DELAYS {
        let mut texts = Vec::new();
        for (name, ..) in &tests {
            let pair = before_and_after(runs, labels, &format!("linux-{name}"))?;
            texts.push(without_decimals(pair.0));
            texts.push(format!("{:+.1}", change_in_percent(pair)));
        }
        texts.extend(published.map(|change| format!("{change:+.1}")));
        table.add_row(delay, texts);
    }
    let claims: Result<Vec<Claim>> = tests.iter().map(|(name, ..)| grows(runs, name)).collect();
    let chart = Chart::curves_over_rows(
        &table,
        "Change of an operation by the patch",
        "delay of an interrupt, ns",
        "change, %",
        &[
            Series::Here(1, PAIRS[0]),
            Series::Here(3, PAIRS[1]),
            Series::Published(4, "metal, Graviton2, pipe"),
            Series::Published(5, "metal, Graviton3, pipe"),
        ],
    );
    Ok(Outcome {
        tables: vec![table],
        charts: vec![chart],
        claims: claims?,
        notes: vec![
            "kernels are Debian's source of 6.12 with the configuration of `cargo xtask kernel`, governor menu, with nothing below them; the \
             delay is from the interrupt controller to a core (boards/gem5/gem5.patch)"
                .into(),
        ],
    })
}

/// Claims that the gain grows with the delay: time with the patch, divided by time without it, becomes smaller.
fn grows(runs: &Runs, name: &str) -> Result<Claim> {
    let workload = format!("linux-{name}");
    let share = |labels| {
        runs.single_figure_with_caveats(|| {
            let (before, after) = before_and_after(runs, labels, &workload)?;
            Ok(100.0 * after / before)
        })
    };
    let [(_, none), .., (_, longest)] = DELAYS;
    Ok(Claim::new(
        format!("{name}: the patch saves interrupts, so it gains more the longer they take"),
        Test::Sign { way: Way::Falls },
        ("at 3000 ns, % of before", share(longest)?),
        ("at 0 ns, % of before", share(none)?),
    ))
}
