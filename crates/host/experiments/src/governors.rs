// SPDX-License-Identifier: MIT OR Apache-2.0
//! `governors`: compares menu, teo, and a variant of teo that considers utilisation.

use anyhow::Result;
use plan::Under;

use super::outcome::{ByBoot, Chart, Claim, Outcome, Series, Table, two_decimals};
use super::runs::{MeasuredCell, Run, Runs, Words};
use super::{Boot, Experiment, ONCE, Repeat};
use running::options::Metric;

/// The governors about which there are claims.
const CLAIMED: &[(&str, &str)] = &[(
    "wait",
    "governor:menu-6.2,governor:teo-6.2,governor:teo-util-v6",
)];

/// Creates a further repetition with other random times, and with only the governors about which there are claims.
const fn claims_repeat(name: &'static str, seed: u64) -> Repeat {
    Repeat {
        lists: CLAIMED,
        ..Repeat::seed(name, seed)
    }
}

/// Twelve repetitions, because two of the effects are at most twice as large as the variation between boots. Only the
/// first repetition has every governor.
const TWELVE: &[Repeat] = &[
    Repeat::seed("seed-1", 1),
    claims_repeat("seed-2", 2),
    claims_repeat("seed-3", 3),
    claims_repeat("seed-4", 4),
    claims_repeat("seed-5", 5),
    claims_repeat("seed-6", 6),
    claims_repeat("seed-7", 7),
    claims_repeat("seed-8", 8),
    claims_repeat("seed-9", 9),
    claims_repeat("seed-10", 10),
    claims_repeat("seed-11", 11),
    claims_repeat("seed-12", 12),
];

/// A part of the mix: `$iterations` waits of one kind. Values of dimensions select the kind.
macro_rules! part {
    ($label:literal, $states:literal, $iterations:literal, $repeats:ident, $($list:expr),+) => {
        Boot {
            label: $label,
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("wait", "governor:menu-6.2,governor:teo-6.2,governor:teo-util-v6,governor:teo-util-6.5"),
                ("states", $states),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "ipi"),
                $($list),+
            ],
            iterations: $iterations,
            repeats: $repeats,
        }
    };
}

/// A part of the mix whose device answers on the other CPU, after `$us` on average.
macro_rules! io {
    ($label:literal, $states:literal, $us:literal, $iterations:literal, $repeats:ident) => {
        part!(
            $label,
            $states,
            $iterations,
            $repeats,
            ("workload", "io"),
            ("completion", "other"),
            ("spread", "exponential"),
            ("device-us", $us)
        )
    };
}

/// A part of the mix whose requests arrive `$us` apart on average. Serving a request takes `$work`, in a task that
/// computes and therefore uses its CPU.
macro_rules! served {
    ($label:literal, $states:literal, $us:literal, $work:literal, $iterations:literal, $repeats:ident) => {
        part!(
            $label,
            $states,
            $iterations,
            $repeats,
            ("workload", "notify"),
            ("spread", "exponential"),
            ("arrival-us", $us),
            ("service-us", $work)
        )
    };
}

/// A part of the mix whose timer has the period `$us`.
macro_rules! timer {
    ($label:literal, $states:literal, $us:literal, $iterations:literal) => {
        part!(
            $label,
            $states,
            $iterations,
            ONCE,
            ("workload", "timer"),
            ("gap-us", $us)
        )
    };
}

pub const EXPERIMENT: Experiment = Experiment {
    name: "governors",
    question: "how often does a governor choose too deep or too shallow a state, and what does that \
               cost a wake-up?",
    source: "K. Puchalski, \"[PATCH v6 2/2] cpuidle: teo: Introduce util-awareness\", January 2023: \
             Geekbench 5",
    // Past utilisation decays by half in 32 ms. A part lasts most of this time or longer, and each of its passes
    // continues where the previous pass ended. Tasks that use a tenth of their CPU exceed the governor's threshold of
    // 1/64 after a few milliseconds.
    boots: &[
        io!("io", "wfi+standby", "60,400", 100, TWELVE),
        served!("serve-100", "wfi+standby", "100", "20", 240, TWELVE),
        served!("serve-400", "wfi+standby", "400", "40", 80, TWELVE),
        timer!("timer-60", "wfi+standby", "60", 320),
        timer!("timer-400", "wfi+standby", "400", 64),
        served!("poll-serve-100", "poll+wfi+standby", "100", "20", 120, ONCE),
        served!("poll-serve-400", "poll+wfi+standby", "400", "40", 40, ONCE),
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the order of the governors of early 2023 in each column: menu of 6.2, teo of 6.2, and the patch as \
                 it was posted. Not the shares: the waits of Geekbench are others, and so are the times of its \
                 device's states, of which the parts of the mix have as many, none that polls. Geekbench's score and \
                 the power are not measured; energy by a proxy is in `frames`.",
};

/// Parts of the mix: their names, their boots, and further words that select their cells.
const PARTS: [(&str, &str, Words<'static>); 6] = [
    ("io-60", "io", &[("device-us", "60")]),
    ("io-400", "io", &[("device-us", "400")]),
    ("serve-100", "serve-100", &[]),
    ("serve-400", "serve-400", &[]),
    ("timer-60", "timer-60", &[]),
    ("timer-400", "timer-400", &[]),
];

/// Parts with a polling state. The source's device has no such state.
const POLLING: [&str; 2] = ["poll-serve-100", "poll-serve-400"];

/// Governors: our names for them, and their names in the table.
const GOVERNORS: [(&str, &str); 4] = [
    ("governor:menu-6.2", "menu, 6.2"),
    ("governor:teo-6.2", "teo, 6.2"),
    ("governor:teo-util-v6", "teo-util, as posted"),
    ("governor:teo-util-6.5", "teo-util, 6.5"),
];

/// Published shares of menu, teo and teo-util, in per cent. `WAKE_UP` has their published times of a wake-up, in us.
const TOO_DEEP: [f64; 3] = [14.99, 9.65, 4.02];
const TOO_SHALLOW: [f64; 3] = [2.5, 5.96, 14.59];
const WAKE_UP: [f64; 3] = [78.16, 61.60, 54.45];

/// The published figures in the order in which [`order_claims`] compares them.
pub const PUBLISHED_ORDERS: [[f64; 3]; 3] = [TOO_DEEP, TOO_SHALLOW, WAKE_UP];

/// Rows of the published table. The values are for menu, teo and teo-util.
const PUBLISHED: [(&str, [f64; 3]); 5] = [
    ("score", [2826.5, 2764.8, 2865.0]),
    ("power, mW", [2551.4, 2606.8, 2722.3]),
    ("too deep, %", TOO_DEEP),
    ("too shallow, %", TOO_SHALLOW),
    ("wake-up of asynctask, us", WAKE_UP),
];

/// Figures of a governor for a part, or for all parts.
#[derive(Clone, Copy, Default)]
struct Figures {
    too_deep: f64,
    too_shallow: f64,
    /// Mean of the samples, in us. The median would not show halts that occur only sometimes.
    wake_up: f64,
    /// Share of polls among all stays in idle states, in per cent.
    polls: f64,
    awake: f64,
}

impl Figures {
    fn of_cell(cell: &MeasuredCell<'_>) -> Self {
        Self {
            too_deep: cell.misses("above"),
            too_shallow: cell.misses("below"),
            wake_up: cell.value_in_us(cell.mean()),
            polls: cell.state_share("poll"),
            awake: cell.awake_percent(),
        }
    }

    /// Returns the mean of each figure.
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

/// Returns the figures for each part.
fn figures_by_part(run: Run<'_>, governor: &str) -> Result<[Figures; PARTS.len()]> {
    let mut parts = [Figures::default(); PARTS.len()];
    for (figures, (_, boot, words)) in parts.iter_mut().zip(PARTS) {
        let words = [words, &[("wait", governor)]].concat();
        *figures = Figures::of_cell(&run.cell(boot, &words)?);
    }
    Ok(parts)
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut ours = Vec::new();
    for (governor, name) in GOVERNORS {
        let claimed = CLAIMED
            .iter()
            .any(|(_, waits)| waits.split(',').any(|wait| wait == governor));
        let figures = match claimed {
            true => runs.by_boot(|run| figures_by_part(run, governor))?,
            false => runs.with_caveats(|| {
                Ok(vec![(
                    "seed-1".into(),
                    figures_by_part(runs.first(), governor)?,
                )])
            })?,
        };
        ours.push((name, figures));
    }
    let (mix, published) = (whole_mix_table(&ours), published_table());
    let charts = vec![
        Chart::bars(
            &mix,
            "Idle states that were too deep, and too shallow",
            "% of the stays",
            &[Series::Here(0, "too deep"), Series::Here(1, "too shallow")],
            |_| true,
        ),
        Chart::bars(
            &published,
            "The same, published",
            "% of the stays",
            &[
                Series::Published(0, "menu"),
                Series::Published(1, "teo"),
                Series::Published(2, "teo-util"),
            ],
            |name| name.starts_with("too "),
        ),
    ];
    Ok(Outcome {
        tables: vec![mix, parts_table(&ours), polling_table(runs)?, published],
        charts,
        claims: claims(&ours),
        notes: vec![
            "teo-util of 6.5, about which there is no claim, is in the first boot of each part only".into(),
            "the score and the power of the source have no counterpart here".into(),
            "a wake-up is a whole sample: of io with the device's time; of serve from the arrival of a request to \
             the task that serves it, which may still be at the one before; of timer how late it is"
                .into(),
            "serve has tasks that work on their requests, 20 us of 100 and 40 of 400: where nothing works, \
             utilisation stays below what the patch looks for"
                .into(),
        ],
    })
}

/// A governor's name, and its figures for the parts in every boot.
type Ours = (&'static str, ByBoot<[Figures; PARTS.len()]>);

fn whole_mix_table(ours: &[Ours]) -> Table {
    let mut table = Table::new(
        "The mix: mean of its parts, median of the boots",
        &[
            "too deep %",
            "too shallow %",
            "wake-up, us",
            "polls %",
            "awake %",
        ],
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
        let texts = columns.map(|column| two_decimals(all.map(column).median()));
        table.add_row(name, texts.to_vec());
    }
    table
}

fn parts_table(ours: &[Ours]) -> Table {
    let mut table = Table::new(
        "By part (workload, us): too deep % / too shallow % / mean wake-up, us",
        &PARTS.map(|(name, ..)| name),
    );
    for (name, parts) in ours {
        let texts = (0..PARTS.len()).map(|part| {
            let median = |of: fn(&Figures) -> f64| parts.map(|parts| of(&parts[part])).median();
            let [deep, shallow] = [median(|it| it.too_deep), median(|it| it.too_shallow)];
            format!("{deep:.1} / {shallow:.1} / {:.1}", median(|it| it.wake_up))
        });
        table.add_row(name, texts.collect());
    }
    table
}

/// Returns a table of the parts that have a polling state. Governors with utilisation never choose that state.
fn polling_table(runs: &Runs) -> Result<Table> {
    let mut table = Table::new(
        "With a state that polls: too deep % / too shallow % / polls % / mean wake-up, us",
        &POLLING,
    );
    for (governor, name) in GOVERNORS {
        let texts = POLLING.map(|part| {
            let cell = runs.cell(part, &[("wait", governor)])?;
            let it = Figures::of_cell(&cell);
            Ok(format!(
                "{:.1} / {:.1} / {:.1} / {:.1}",
                it.too_deep, it.too_shallow, it.polls, it.wake_up
            ))
        });
        table.add_row(name, texts.into_iter().collect::<Result<_>>()?);
    }
    Ok(table)
}

fn published_table() -> Table {
    let mut table = Table::new("Published: Geekbench 5", &["menu", "teo", "teo-util"]);
    for (row, values) in PUBLISHED {
        table.add_row(row, values.map(two_decimals).to_vec());
    }
    table
}

/// Claims the order of the first three governors, for each row of the source that has a counterpart here.
fn claims(ours: &[Ours]) -> Vec<Claim> {
    let named = ours.iter().take(3).map(|(name, parts)| {
        let of = |of: Of| parts.map(|parts| of(&Figures::mean(parts)));
        let columns: [Of; 3] = [|it| it.too_deep, |it| it.too_shallow, |it| it.wake_up];
        (*name, columns.map(of))
    });
    order_claims(&named.collect::<Vec<_>>())
}

/// A function that selects a figure.
type Of = fn(&Figures) -> f64;

/// Claims the published orders of menu, teo and teo-util. For each governor, `ours` has the name, the shares of stays
/// that are too deep and too shallow, and the time of a wake-up.
pub fn order_claims(ours: &[(&str, [ByBoot<f64>; 3])]) -> Vec<Claim> {
    let below = |text: &str, one: usize, other: usize, column: usize| {
        let named = |n: usize| (ours[n].0, ours[n].1[column].clone());
        let there = PUBLISHED_ORDERS[column];
        Claim::new_below(text, named(one), named(other)).at_least_share_of(there[one], there[other])
    };
    let (menu, teo, util) = (0, 1, 2);
    let (deep, shallow, wake_up) = (0, 1, 2);
    vec![
        below("teo is too deep less often than menu", teo, menu, deep),
        below("teo-util is too deep less often than teo", util, teo, deep),
        below(
            "teo is too shallow more often than menu",
            menu,
            teo,
            shallow,
        ),
        below(
            "teo-util is too shallow more often than teo",
            teo,
            util,
            shallow,
        ),
        below("teo wakes up faster than menu", teo, menu, wake_up),
        below("teo-util wakes up faster than teo", util, teo, wake_up),
    ]
}
