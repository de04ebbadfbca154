// SPDX-License-Identifier: MIT OR Apache-2.0
//! `frames`: the frames of a display under the governors of early 2023.

mod claims;
mod power;

use anyhow::{Result, anyhow};
use plan::Under;

use super::outcome::{ByBoot, Chart, Outcome, Series, Table, two_decimals};
use super::runs::{MeasuredCell, Runs};
use super::{Boot, Experiment, TWELVE_SEEDS};
use governing::States;
use power::{Spent, break_even};
use running::options::Metric;

/// Idle states with about a tenth of a phone's exit latencies, because a frame's period here is also a tenth of a
/// display's.
const STATES: &str = "wfi:1:1+standby:30:200";

pub const EXPERIMENT: Experiment = Experiment {
    name: "frames",
    question: "what does a governor that looks at utilisation do to the frames of a display, and to the wake-ups \
               that they cause?",
    source: "K. Puchalski, \"[PATCH v6 2/2] cpuidle: teo: Introduce util-awareness\", January 2023: Jankbench",
    boots: &[Boot {
        label: "frames",
        under: Under::Rouse,
        cpus: Some(3),
        lists: &[
            ("workload", "frames"),
            (
                "wait",
                "governor:menu-6.2,governor:teo-6.2,governor:teo-util-v6",
            ),
            ("states", STATES),
            ("trap", "none"),
            ("deliver", "inject"),
            ("wake", "ipi"),
            ("gap-us", "1667"),
        ],
        // Past utilisation decays by half in 32 ms. A pass lasts three times as long as that.
        iterations: 160,
        // About six of 160 frames are late with menu, and about five with teo. Three boots can't show this difference.
        repeats: TWELVE_SEEDS,
    }],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "which way a figure goes from one governor to another. Not how large it is: frames here are a tenth as \
                 long, their work is drawn, and no frequency is scaled. Nor the shares of stays: a frame here has four waits, \
                 of which one is short, and a real one has more. A frame ends here with its composition, so that all \
                 three wake-ups are in it. Power is a model: time by state times the powers of \
                 crates/host/governing/src/states.toml.",
};

/// Governors: our names for them, and the names in the tables.
const GOVERNORS: [(&str, &str); 3] = [
    ("governor:menu-6.2", "menu"),
    ("governor:teo-6.2", "teo"),
    ("governor:teo-util-v6", "teo-util"),
];
const MENU: usize = 0;
const TEO: usize = 1;
const UTIL: usize = 2;

/// Pairs of governors: the first is compared with the second.
const PAIRS: [(usize, usize); 3] = [(TEO, MENU), (UTIL, MENU), (UTIL, TEO)];

/// Figures of the frames with one governor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    /// Mean length of a frame, in ms.
    frame: f64,
    /// Share of frames that end after their deadline, in per cent.
    late: f64,
    spent: Spent,
    /// Share of stays in idle states that were too deep, in per cent. `too_shallow` is the share of stays that were too
    /// shallow.
    too_deep: f64,
    too_shallow: f64,
    /// Mean wake-up time for each of the three tasks, in us.
    begin: f64,
    render: f64,
    compose: f64,
}

impl Figures {
    fn of_cell(found: &MeasuredCell<'_>, states: &States) -> Self {
        let made = found.count("frames", "made").max(1.0);
        let wake_up = |ticks| found.value_in_us(found.time_counter("frames", ticks)) / made;
        Self {
            frame: found.value_in_us(found.mean()) / 1e3,
            late: 100.0 * found.count("frames", "late") / made,
            spent: Spent::of_cell(found, states),
            too_deep: found.misses("above"),
            too_shallow: found.misses("below"),
            begin: wake_up("begin-ticks"),
            render: wake_up("render-ticks"),
            compose: wake_up("compose-ticks"),
        }
    }
}

/// A row of the source's table.
struct SourceRow {
    name: &'static str,
    /// Published figures of menu, teo and teo-util.
    published: [f64; 3],
    /// Changes of teo and teo-util relative to menu, in per cent, if the source states them.
    changes: Option<[f64; 2]>,
    of: fn(&Figures) -> f64,
    /// Why our result differs from the source's, for each of [`PAIRS`].
    why: [Option<&'static str>; PAIRS.len()],
}

/// Why frames are not longer with teo here.
const BEGIN: &str = "what teo chooses otherwise here is how the UI waits for its timer: as every other wait of that CPU is \
                     short, it takes WFI, and frames begin sooner (row \"wake-up of the UI\"); why they take longer there is \
                     not said";
/// Why teo-util shortens frames by less here.
const LEAVING: &str = "what is saved here is three times the exit latency of standby, 30 us of 1.3 ms each; no frequency is scaled";
/// Why deeper states are cheaper here.
const LONG: &str = "most waits here are so long that standby pays (row \"too shallow\"), and WFI takes 400 against its 150; \
                    the source means devices on which the two are close, and the note says how close they would have to be";
/// Why wake-ups take equally long with menu and with teo here.
const ALIKE: &str = "both take standby here, as these waits outlast its residency; what is left is the instructions of \
                     the two governors, as with a table of standby alone";
/// Why wake-ups are so much shorter with teo-util here.
const BARE: &str = "a wake-up here is the time to leave the state and a microsecond or two; what else it takes on a phone is \
                     not modelled";

const ROWS: [SourceRow; 7] = [
    SourceRow {
        name: "frame duration, ms",
        published: [13.9, 14.7, 12.6],
        changes: Some([6.0, -9.0]),
        of: |it| it.frame,
        why: [Some(BEGIN), Some(LEAVING), None],
    },
    SourceRow {
        name: "jank, %",
        published: [1.5, 2.1, 1.3],
        changes: Some([36.99, -17.37]),
        of: |it| it.late,
        why: [Some(BEGIN), None, None],
    },
    SourceRow {
        name: "power, mW; here 1000ths of a CPU",
        published: [144.6, 136.9, 121.3],
        changes: Some([-5.27, -16.08]),
        of: |it| it.spent.power(),
        why: [Some(LONG); 3],
    },
    SourceRow {
        name: "too deep, %",
        published: [26.00, 11.00, 2.54],
        changes: None,
        of: |it| it.too_deep,
        why: [None; 3],
    },
    SourceRow {
        name: "too shallow, %",
        published: [4.74, 11.89, 21.93],
        changes: None,
        of: |it| it.too_shallow,
        why: [None; 3],
    },
    SourceRow {
        name: "wake-up of RenderThread, us",
        published: [139.5, 116.5, 91.11],
        changes: Some([-16.49, -34.7]),
        of: |it| it.render,
        why: [Some(ALIKE), Some(BARE), None],
    },
    SourceRow {
        name: "wake-up of surfaceflinger, us",
        published: [124.0, 151.9, 87.65],
        changes: Some([22.47, -29.33]),
        of: |it| it.compose,
        why: [Some(ALIKE), Some(BARE), None],
    },
];

/// The figures of every governor in every boot.
type Ours = ByBoot<[Figures; GOVERNORS.len()]>;

fn conclude(runs: &Runs) -> Result<Outcome> {
    let states = States::named(STATES)?;
    let ours = runs.by_boot(|run| {
        let figures = |(wait, _)| {
            Ok(Figures::of_cell(
                &run.cell("frames", &[("wait", wait)])?,
                &states,
            ))
        };
        let all = GOVERNORS
            .map(figures)
            .into_iter()
            .collect::<Result<Vec<_>>>()?;
        all.try_into().map_err(|_| anyhow!("a governor is missing"))
    })?;
    let changes = changes_table(&ours);
    let series = [
        Series::Here(0, "teo"),
        Series::Here(1, "teo-util"),
        Series::Published(2, "teo"),
        Series::Published(3, "teo-util"),
    ];
    let chart = Chart::bars(&changes, "Change against menu", "%", &series, |_| true);
    Ok(Outcome {
        tables: vec![figures_table(&ours), changes],
        charts: vec![chart],
        claims: claims::all_claims(&ours),
        notes: vec![power_note(&ours, &states)],
    })
}

/// Returns the source's table with our figures next to it, which are medians of the boots.
fn figures_table(ours: &Ours) -> Table {
    let mut table = Table::new(
        "Frames of 1.667 ms: median of the boots, and published (frames of 16.67 ms)",
        &[
            "menu",
            "teo",
            "teo-util",
            "published: menu",
            "teo",
            "teo-util",
        ],
    );
    let medians = |of: fn(&Figures) -> f64| {
        [MENU, TEO, UTIL].map(|which| two_decimals(figure_by_boot(ours, which, of).median()))
    };
    for row in &ROWS {
        let texts = medians(row.of)
            .into_iter()
            .chain(row.published.map(two_decimals));
        table.add_row(row.name, texts.collect());
    }
    let none = [(); GOVERNORS.len()].map(|()| "-".to_owned());
    let texts = medians(|it| it.begin).into_iter().chain(none);
    table.add_row("wake-up of the UI, us", texts.collect());
    table
}

/// Returns a table that shows how the figures change relative to menu.
fn changes_table(ours: &Ours) -> Table {
    let mut table = Table::new(
        "Change against menu, median of the boots, and published",
        &["teo", "teo-util", "published: teo", "teo-util"],
    );
    for row in ROWS.iter() {
        let Some(published) = row.changes else {
            continue;
        };
        let ours = [TEO, UTIL].map(|which| {
            let change =
                ours.map(|all| 100.0 * ((row.of)(&all[which]) / (row.of)(&all[MENU]) - 1.0));
            change.median()
        });
        let text = |change: f64| match change.is_finite() {
            true => format!("{change:+.2} %"),
            false => "-".into(),
        };
        table.add_row(
            row.name,
            ours.into_iter().chain(published).map(text).collect(),
        );
    }
    table
}

/// Returns a figure of one governor, boot by boot.
fn figure_by_boot(ours: &Ours, which: usize, of: fn(&Figures) -> f64) -> ByBoot<f64> {
    ours.map(|all| of(&all[which]))
}

/// Describes the power of WFI at which the order of the governors by power would change.
fn power_note(ours: &Ours, states: &States) -> String {
    let power = |state: usize| states.costs[state].power;
    let even = ours.map(|all| break_even(&all[UTIL].spent, &all[MENU].spent, states));
    format!(
        "power: a CPU that runs takes 1000, WFI {}, standby {} and a price for each stay, as much as it saves against WFI \
         in its target residency. With the same price teo-util would take what menu takes if WFI took {:.0}, and less \
         below that",
        power(0),
        power(1),
        even.median()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_those_of_the_figures_as_far_as_these_are_exact() {
        for row in &ROWS {
            let [menu, teo, util] = row.published;
            for (of, change) in [teo, util]
                .into_iter()
                .zip(row.changes.into_iter().flatten())
            {
                // The published figures are rounded. The jank figures have two decimals.
                let digit = if row.name.starts_with("jank") {
                    0.05
                } else {
                    0.06
                };
                let least = 100.0 * ((of - digit) / (menu + digit) - 1.0) - 0.2;
                let most = 100.0 * ((of + digit) / (menu - digit) - 1.0) + 0.2;
                assert!(
                    (least..=most).contains(&change),
                    "{}: {change}, {least} to {most}",
                    row.name
                );
            }
        }
    }

    #[test]
    fn the_states_are_those_of_the_boots_with_powers_of_the_file() {
        let states = States::named(STATES).unwrap();
        let powers: Vec<u64> = states.costs.iter().map(|cost| cost.power).collect();
        assert_eq!(powers, [400, 150]);
        assert_eq!(states.costs[1].price, 250 * 200_000);
        assert!(
            EXPERIMENT
                .boots
                .iter()
                .all(|boot| boot.lists.contains(&("states", STATES)))
        );
    }
}
