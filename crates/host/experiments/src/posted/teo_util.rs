// SPDX-License-Identifier: MIT OR Apache-2.0
//! `posted-teo-util`: compares the patch's TEO, which considers utilisation, with TEO and menu of the same kernel.

use anyhow::Result;
use plan::Under;
use running::options::Metric;

use super::{KERNEL, UNTRAPPED, two_cpu_boot};
use crate::Experiment;
use crate::governors::{PUBLISHED_ORDERS, order_claims};
use crate::outcome::{ByBoot, Chart, Outcome, Series, Table, two_decimals};
use crate::runs::{MeasuredCell, Run, Runs};

pub const EXPERIMENT: Experiment = Experiment {
    name: "posted-teo-util",
    question: "what does utilisation change in TEO of Linux 6.1?",
    source: "K. Puchalski, \"[PATCH v6 2/2] cpuidle: teo: Introduce util-awareness\", January 2023: Geekbench 5 on a Pixel 6",
    boots: &[
        two_cpu_boot(
            "menu",
            Under::Rouse,
            400,
            &[
                (KERNEL, "6.1"),
                WORKLOADS,
                GAPS,
                UNTRAPPED,
                ("linux-cpuidle", "governor:menu"),
            ],
        ),
        two_cpu_boot(
            "teo",
            Under::Rouse,
            400,
            &[
                (KERNEL, "6.1"),
                WORKLOADS,
                GAPS,
                UNTRAPPED,
                ("linux-cpuidle", "governor:teo"),
            ],
        ),
        two_cpu_boot(
            "teo-util",
            Under::Rouse,
            400,
            &[
                (KERNEL, "6.1+004"),
                WORKLOADS,
                GAPS,
                UNTRAPPED,
                ("linux-cpuidle", "governor:teo"),
            ],
        ),
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the order of the governors in each column. Not the shares: the waits of Geekbench are others, and the machine has \
                 two states here, WFI and one of PSCI (10 us to enter, 100 to leave, residency 200).",
};

const WORKLOADS: (&str, &str) = ("workload", "linux-timer,linux-pipe");
const GAPS: (&str, &str) = ("gap-us", "150,400");

/// Parts of the mix: the name of each, and the words that select its cells.
const PARTS: [(&str, &[(&str, &str)]); 3] = [
    (
        "timer-150",
        &[("workload", "linux-timer"), ("gap-us", "150")],
    ),
    (
        "timer-400",
        &[("workload", "linux-timer"), ("gap-us", "400")],
    ),
    ("pipe", &[("workload", "linux-pipe")]),
];

/// Labels of the boots, which are also the governors' names.
const GOVERNORS: [&str; 3] = ["menu", "teo", "teo-util"];

/// Figures of a governor in one part.
#[derive(Clone, Copy)]
struct Figures {
    too_deep: f64,
    too_shallow: f64,
    wake_up: f64,
}

/// A function that selects a figure.
type Of = fn(&Figures) -> f64;

impl Figures {
    fn of_cell(cell: &MeasuredCell<'_>) -> Self {
        Self {
            too_deep: cell.misses_of(&STATES, "above"),
            too_shallow: cell.misses_of(&STATES, "below"),
            wake_up: cell.value_in_us(cell.mean()),
        }
    }
}

/// Names of Linux's idle states, in lower case.
const STATES: [&str; 2] = ["wfi", "standby"];

fn figures_by_part(run: Run<'_>, governor: &str) -> Result<[Figures; PARTS.len()]> {
    let mut all = Vec::new();
    for (_, words) in PARTS {
        all.push(Figures::of_cell(&run.cell(governor, words)?));
    }
    Ok(all
        .try_into()
        .unwrap_or_else(|_| unreachable!("as many as there are parts")))
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "By part: too deep % / too shallow % / mean wake-up, us; median of the boots",
        &PARTS.map(|(name, _)| name),
    );
    let mut mix = Table::new(
        "The mix, mean of its parts; published: Geekbench 5",
        &[
            "too deep %",
            "published",
            "too shallow %",
            "published",
            "wake-up, us",
            "published",
        ],
    );
    let mut ours = Vec::new();
    for (n, governor) in GOVERNORS.into_iter().enumerate() {
        let figures = runs.by_boot(|run| figures_by_part(run, governor))?;
        let median = |part: usize, of: Of| figures.map(|parts| of(&parts[part])).median();
        let texts = (0..PARTS.len()).map(|part| {
            let (deep, shallow) = (
                median(part, |it| it.too_deep),
                median(part, |it| it.too_shallow),
            );
            format!(
                "{deep:.1} / {shallow:.1} / {:.1}",
                median(part, |it| it.wake_up)
            )
        });
        table.add_row(governor, texts.collect());
        let columns: [Of; 3] = [|it| it.too_deep, |it| it.too_shallow, |it| it.wake_up];
        let columns = columns.map(|of| mean_of_parts(&figures, of));
        let published = PUBLISHED_ORDERS.iter().map(|column| column[n]);
        let texts = columns.iter().zip(published);
        let texts =
            texts.flat_map(|(ours, there)| [two_decimals(ours.median()), two_decimals(there)]);
        mix.add_row(governor, texts.collect());
        ours.push((governor, columns));
    }
    let claims = order_claims(&ours);
    let chart = Chart::bars(
        &mix,
        "Idle states that were too deep, and too shallow",
        "% of the stays",
        &[
            Series::Here(0, "too deep"),
            Series::Published(1, "too deep"),
            Series::Here(2, "too shallow"),
            Series::Published(3, "too shallow"),
        ],
        |_| true,
    );
    Ok(Outcome {
        tables: vec![mix, table],
        charts: vec![chart],
        claims,
        notes: vec![
            "too deep and too shallow are cpuidle's own counts (above, below) of all CPUs, also between samples".into(),
        ],
    })
}

/// Returns the mean of a figure over all parts, boot by boot.
fn mean_of_parts(figures: &ByBoot<[Figures; PARTS.len()]>, of: Of) -> ByBoot<f64> {
    figures.map(|parts| parts.iter().map(of).sum::<f64>() / parts.len() as f64)
}
