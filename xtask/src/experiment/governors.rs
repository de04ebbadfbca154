// SPDX-License-Identifier: MIT OR Apache-2.0
//! `governors`: menu, teo, and teo that looks at utilisation.

use anyhow::Result;
use plan::Under;

use super::find::{Found, Run, Runs};
use super::outcome::{ByBoot, Claim, Outcome, Table, two};
use super::{Boot, Experiment, ONCE, SEEDS};
use crate::cli::Metric;

/// A part of the mix: so many waits, whose kind the values of dimensions say.
macro_rules! part {
    ($label:literal, $iterations:literal, $repeats:ident, $($list:expr),+) => {
        Boot {
            label: $label,
            under: Under::Rouse,
            cpus: None,
            lists: &[
                (
                    "wait",
                    "governor:menu-6.2,governor:teo-6.2,governor:teo-util-v6,governor:teo-util-6.5",
                ),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "elide"),
                $($list),+
            ],
            iterations: $iterations,
            repeats: $repeats,
        }
    };
}

/// A part whose device answers after so long on average, on the other CPU.
macro_rules! io {
    ($label:literal, $us:literal, $iterations:literal) => {
        part!(
            $label,
            $iterations,
            SEEDS,
            ("workload", "io"),
            ("completion", "other"),
            ("spread", "exponential"),
            ("device-us", $us)
        )
    };
}

/// A part with a pause or a period of so long.
macro_rules! paced {
    ($label:literal, $workload:literal, $us:literal, $iterations:literal) => {
        part!($label, $iterations, ONCE, ("workload", $workload), ("gap-us", $us))
    };
}

pub const EXPERIMENT: Experiment = Experiment {
    name: "governors",
    question: "how often does a governor choose too deep or too shallow a state, and what does that \
               cost a wake-up?",
    source: "K. Puchalski, \"[PATCH v6 2/2] cpuidle: teo: Introduce util-awareness\", January 2023: \
             Geekbench 5",
    // Of what utilisation was, half is left after 32 ms. A part lasts three times as long or
    // more, and each of its passes goes on from the one before.
    boots: &[
        io!("io-60", "60", 600),
        io!("io-400", "400", 180),
        paced!("notify-30", "notify", "30", 1200),
        paced!("notify-200", "notify", "200", 400),
        paced!("timer-60", "timer", "60", 1600),
        paced!("timer-400", "timer", "400", 250),
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the order of the governors of early 2023 in each column: menu of 6.2, teo of 6.2, and the patch as \
                 it was posted. Not the shares: the waits of Geekbench are others, and so are the states of the \
                 source's device, which does not poll. Here state 0 polls. Geekbench's score and the power are \
                 not measured.",
};

/// What the mix is made of.
const PARTS: [&str; 6] = [
    "io-60",
    "io-400",
    "notify-30",
    "notify-200",
    "timer-60",
    "timer-400",
];

/// Governors: ours, and their names in the table.
const GOVERNORS: [(&str, &str); 4] = [
    ("governor:menu-6.2", "menu, 6.2"),
    ("governor:teo-6.2", "teo, 6.2"),
    ("governor:teo-util-v6", "teo-util, as posted"),
    ("governor:teo-util-6.5", "teo-util, 6.5"),
];

/// Published rows, for menu, teo and teo-util.
const PUBLISHED: [(&str, [f64; 3]); 5] = [
    ("score", [2826.5, 2764.8, 2865.0]),
    ("power, mW", [2551.4, 2606.8, 2722.3]),
    ("too deep, %", [14.99, 9.65, 4.02]),
    ("too shallow, %", [2.5, 5.96, 14.59]),
    ("wake-up of asynctask, us", [78.16, 61.60, 54.45]),
];

/// What a governor made of a part, or of all.
#[derive(Clone, Copy, Default)]
struct Figures {
    too_deep: f64,
    too_shallow: f64,
    /// Median of the samples, us.
    wake_up: f64,
    /// Polls among the stays in idle states, per cent.
    polls: f64,
    awake: f64,
}

impl Figures {
    fn of(cell: &Found<'_>) -> Self {
        Self {
            too_deep: cell.misses("above"),
            too_shallow: cell.misses("below"),
            wake_up: cell.us(cell.median()),
            polls: cell.chosen("poll"),
            awake: cell.awake(),
        }
    }

    /// The mean of each.
    fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Self {
            too_deep: mean(|it| it.too_deep),
            too_shallow: mean(|it| it.too_shallow),
            wake_up: mean(|it| it.wake_up),
            polls: mean(|it| it.polls),
            awake: mean(|it| it.awake),
        }
    }
}

/// The figures of every part.
fn parts(run: Run<'_>, governor: &str) -> Result<[Figures; PARTS.len()]> {
    let mut parts = [Figures::default(); PARTS.len()];
    for (figures, part) in parts.iter_mut().zip(PARTS) {
        *figures = Figures::of(&run.cell(part, &[("wait", governor)])?);
    }
    Ok(parts)
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut ours = Vec::new();
    for (governor, name) in GOVERNORS {
        ours.push((name, runs.by_boot(|run| parts(run, governor))?));
    }
    Ok(Outcome {
        tables: vec![whole(&ours), by_part(&ours), published()],
        charts: Vec::new(),
        claims: claims(&ours),
        notes: vec![
            "the score and the power of the source have no counterpart here".into(),
            "a wake-up is a whole sample: of io with the device's time, of notify the request and the answer, of \
             timer how late it is"
                .into(),
        ],
    })
}

/// A governor's name, and its parts in every boot.
type Ours = (&'static str, ByBoot<[Figures; PARTS.len()]>);

fn whole(ours: &[Ours]) -> Table {
    let mut table = Table::new(
        "The mix: mean of its parts, median of the boots",
        &["too deep %", "too shallow %", "wake-up p50, us", "polls %", "awake %"],
    );
    for (name, parts) in ours {
        let all = parts.map(|parts| Figures::mean(parts));
        let columns: [fn(&Figures) -> f64; 5] = [
            |it| it.too_deep,
            |it| it.too_shallow,
            |it| it.wake_up,
            |it| it.polls,
            |it| it.awake,
        ];
        let texts = columns.map(|column| two(all.map(column).median()));
        table.row(name, texts.to_vec());
    }
    table
}

fn by_part(ours: &[Ours]) -> Table {
    let mut table = Table::new("By part (workload, us): too deep % / too shallow % / p50, us", &PARTS);
    for (name, parts) in ours {
        let texts = (0..PARTS.len()).map(|part| {
            let median = |of: fn(&Figures) -> f64| parts.map(|parts| of(&parts[part])).median();
            let [deep, shallow] = [median(|it| it.too_deep), median(|it| it.too_shallow)];
            format!("{deep:.1} / {shallow:.1} / {:.1}", median(|it| it.wake_up))
        });
        table.row(name, texts.collect());
    }
    table
}

fn published() -> Table {
    let mut table = Table::new("Published: Geekbench 5", &["menu", "teo", "teo-util"]);
    for (row, values) in PUBLISHED {
        table.row(row, values.map(two).to_vec());
    }
    table
}

/// The order in each row of the source that has a counterpart; of the first three governors.
fn claims(ours: &[Ours]) -> Vec<Claim> {
    let below = |text: &str, one: usize, other: usize, of: fn(&Figures) -> f64| {
        let named = |index: usize| {
            let (name, parts) = &ours[index];
            (*name, parts.map(|parts| of(&Figures::mean(parts))))
        };
        Claim::below(text, named(one), named(other))
    };
    let (menu, teo, util) = (0, 1, 2);
    vec![
        below("teo is too deep less often than menu", teo, menu, |it| it.too_deep),
        below("teo-util is too deep less often than teo", util, teo, |it| it.too_deep),
        below("teo is too shallow more often than menu", menu, teo, |it| it.too_shallow),
        below("teo-util is too shallow more often than teo", teo, util, |it| it.too_shallow),
        below("teo wakes up faster than menu", teo, menu, |it| it.wake_up),
        below("teo-util wakes up faster than teo", util, teo, |it| it.wake_up),
    ]
}
