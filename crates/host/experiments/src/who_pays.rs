// SPDX-License-Identifier: MIT OR Apache-2.0
//! `who-pays`: how much a way of waiting adds to the wake-up, and how much CPU time it leaves to another guest.

mod claims;
mod frontier;

use anyhow::Result;
use plan::Under;

use super::outcome::{Chart, Curve, Outcome, Table, without_decimals};
use super::runs::{MeasuredCell, Run, Runs};
use super::{Boot, Brief, Experiment, Repeat};
use frontier::Point;

/// Returns the words that all cells have, followed by further ones.
macro_rules! cells {
    ($($words:expr),* $(,)?) => {
        &[
            ("workload", "pingpong"),
            ("deliver", "inject"),
            ("neighbour", "work"),
            $($words),*
        ]
    };
}

/// Creates a boot of the cells in `lists`, with all gaps.
const fn boot(label: &'static str, lists: super::boot::Lists) -> Boot {
    Boot {
        label,
        under: Under::Rouse,
        cpus: Some(2),
        lists,
        iterations: 40,
        repeats: &[Repeat {
            brief: Some(Brief {
                lists: &[("gap-us", "5,20,50,200")],
                iterations: 8,
            }),
            ..Repeat::SAME
        }],
    }
}

/// Creates a boot of the cells in `lists`, with time slices. The boot has enough wake-ups for 90th percentiles.
const fn sliced_boot(label: &'static str, lists: super::boot::Lists) -> Boot {
    Boot {
        iterations: 200,
        repeats: &[Repeat {
            brief: Some(Brief {
                lists: &[],
                iterations: 100,
            }),
            ..Repeat::SAME
        }],
        ..boot(label, lists)
    }
}

/// Gaps between two round trips, in microseconds. A boot may have only some of them.
const GAPS: [&str; 6] = ["5", "20", "50", "200", "1000", "5000"];
/// [`GAPS`], joined by commas.
const ALL_GAPS: &str = "5,20,50,200,1000,5000";
/// The gap in the cells with time slices.
const SLICED_GAP: &str = "200";
/// Length of a time slice, in microseconds.
const SLICE_US: &str = "1000";

pub const EXPERIMENT: Experiment = Experiment {
    name: "who-pays",
    question: "what does a way of waiting cost a wake-up, and what does it leave to another guest of the CPU?",
    source: "the reason for which hypervisors trap WFI: another guest could use the CPU (Linux, \
             Documentation/virt/kvm/halt-polling.rst, and the discussions of polling in guests). The claims are ours",
    boots: &[
        boot(
            "polls",
            cells![
                ("wait", "spin,wfe,wfet"),
                ("trap", "none"),
                ("wake", "elide"),
                ("slice-us", "0"),
                ("gap-us", ALL_GAPS),
            ],
        ),
        boot(
            "limits",
            cells![
                ("wait", "poll-wfi"),
                ("trap", "wfi"),
                ("wake", "elide"),
                ("host-poll-us", "0"),
                ("poll-limit-us", "10,50,200"),
                ("slice-us", "0"),
                ("gap-us", ALL_GAPS),
            ],
        ),
        boot(
            "haltpoll",
            cells![
                ("wait", "governor:haltpoll"),
                ("trap", "wfi"),
                ("wake", "elide"),
                ("host-poll-us", "0"),
                ("slice-us", "0"),
                ("gap-us", ALL_GAPS),
            ],
        ),
        boot(
            "halts",
            cells![
                ("wait", "wfi"),
                ("trap", "none,wfi"),
                ("wake", "ipi"),
                ("host-poll-us", "0,50"),
                ("host-poll", "fixed,adaptive"),
                ("slice-us", "0"),
                ("gap-us", ALL_GAPS),
            ],
        ),
        sliced_boot(
            "sliced-polls",
            cells![
                ("wait", "spin"),
                ("trap", "none"),
                ("wake", "elide"),
                ("slice-us", SLICE_US),
                ("gap-us", SLICED_GAP),
            ],
        ),
        sliced_boot(
            "sliced-halts",
            cells![
                ("wait", "wfi"),
                ("trap", "none,wfi"),
                ("wake", "ipi"),
                ("host-poll-us", "0"),
                ("slice-us", SLICE_US),
                ("gap-us", SLICED_GAP),
            ],
        ),
    ],
    metric: None,
    conclude,
    comparable: "what each setting leaves to the neighbour, and which settings no other beats in both. The sender works between \
                 two round trips, so of the time of the two CPUs half can be given at most. In instructions (virt) CPUs run \
                 one after another: a poll sees a store at once, a switch costs its instructions only, and a gap is as many \
                 instructions of both CPUs. What a switch does to caches is seen where they are modelled (gem5, metal).",
};

/// A setting: its name, its boot, and its words in that boot.
#[derive(Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    boot: &'static str,
    words: &'static [(&'static str, &'static str)],
}

impl Setting {
    const fn new(
        name: &'static str,
        boot: &'static str,
        words: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { name, boot, words }
    }

    /// Returns the setting's cell with gap `gap`. `None` if the cell was skipped, as a WFET is without FEAT_WFxT.
    pub fn find_cell<'r>(&self, run: Run<'r>, gap: &str) -> Result<Option<MeasuredCell<'r>>> {
        let words = [self.words, &[("gap-us", gap)]].concat();
        Ok(run.cell_or_why(self.boot, &words)?.ok())
    }
}

pub const SPIN: Setting = Setting::new("spin", "polls", &[("wait", "spin")]);
pub const WFE: Setting = Setting::new("wfe", "polls", &[("wait", "wfe")]);
pub const WFET: Setting = Setting::new("wfet", "polls", &[("wait", "wfet")]);
pub const POLL_10: Setting = Setting::new("poll-wfi, 10 us", "limits", &[("poll-limit-us", "10")]);
pub const POLL_50: Setting = Setting::new("poll-wfi, 50 us", "limits", &[("poll-limit-us", "50")]);
pub const POLL_200: Setting =
    Setting::new("poll-wfi, 200 us", "limits", &[("poll-limit-us", "200")]);
pub const HALTPOLL: Setting = Setting::new("haltpoll", "haltpoll", &[]);
pub const HALT: Setting = Setting::new(
    "wfi trapped",
    "halts",
    &[("trap", "wfi"), ("host-poll-us", "0")],
);
pub const HOST_POLL: Setting = Setting::new(
    "wfi trapped, host polls 50 us",
    "halts",
    &[
        ("trap", "wfi"),
        ("host-poll-us", "50"),
        ("host-poll", "fixed"),
    ],
);
pub const ADAPTIVE: Setting = Setting::new(
    "wfi trapped, host polls adaptively",
    "halts",
    &[
        ("trap", "wfi"),
        ("host-poll-us", "50"),
        ("host-poll", "adaptive"),
    ],
);
pub const UNTRAPPED: Setting = Setting::new("wfi not trapped", "halts", &[("trap", "none")]);

/// Settings in the order of the tables.
const SETTINGS: [Setting; 11] = [
    SPIN, WFE, WFET, POLL_10, POLL_50, POLL_200, HALTPOLL, HOST_POLL, ADAPTIVE, HALT, UNTRAPPED,
];

/// Settings that are also measured with time slices.
pub const SLICED: [Setting; 3] = [
    Setting::new("spin", "sliced-polls", &[]),
    Setting::new("wfi trapped", "sliced-halts", &[("trap", "wfi")]),
    Setting::new("wfi not trapped", "sliced-halts", &[("trap", "none")]),
];

/// Returns the gaps that were measured.
fn measured_gaps(runs: &Runs) -> Vec<&'static str> {
    let has = |gap: &&str| runs.has_cell("polls", &[("gap-us", gap)]);
    GAPS.into_iter().filter(has).collect()
}

/// Returns the gaps that occur in `points`.
fn gaps_of(points: &[Point]) -> Vec<&'static str> {
    let has = |gap: &&str| points.iter().any(|point| point.gap == *gap);
    GAPS.into_iter().filter(has).collect()
}

/// Describes a break-even length in words. A negative length means that no wait is short enough.
fn break_even_in_words(us: f64) -> String {
    const OF: &str = "(from the CPUs' own time at gaps of 5 and 50 us)";
    if us < 0.05 {
        return format!(
            "polling takes more of the CPUs than a trapped WFI, however short a wait is {OF}"
        );
    }
    format!(
        "polling takes less of the CPUs than a trapped WFI where a wait is shorter than {us:.1} us of the counter {OF}"
    )
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let gaps = measured_gaps(runs);
    let points = frontier::collect_points(runs.first(), &SETTINGS, &gaps)?;
    let unit = SPIN
        .find_cell(runs.first(), GAPS[0])?
        .map_or("", |found| found.unit());
    let break_even = frontier::break_even(runs.first())?;
    let notes = vec![
        break_even_in_words(break_even),
        "an untrapped WFI leaves the neighbour nothing: the CPU halts, and no exit says so".into(),
    ];
    Ok(Outcome {
        tables: vec![
            table_by_gap(
                &format!(
                    "Median of a round trip, {unit}, by the gap between two; the neighbour works, no slices"
                ),
                &points,
                |point| without_decimals(point.latency),
            ),
            table_by_gap(&format!("The longest, {unit}"), &points, |point| {
                without_decimals(point.longest)
            }),
            table_by_gap(
                "Of the time of both CPUs, what the neighbours got, %; 50 is what is not needed for the gap itself",
                &points,
                |point| format!("{:.1}", point.share),
            ),
            frontiers_table(&points),
            slices_table(runs.first(), unit)?,
        ],
        charts: vec![chart(&points, unit)],
        claims: claims::claims(runs)?,
        notes,
    })
}

/// Returns a table of settings by gaps.
fn table_by_gap(title: &str, points: &[Point], text: impl Fn(&Point) -> String) -> Table {
    let gaps = gaps_of(points);
    let titles: Vec<String> = gaps.iter().map(|gap| format!("{gap} us")).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::new(title, &titles);
    for setting in SETTINGS {
        let texts = gaps.iter().map(|gap| {
            let point = points
                .iter()
                .find(|point| point.setting == setting.name && point.gap == *gap);
            point.map_or("-".into(), &text)
        });
        table.add_row(setting.name, texts.collect());
    }
    table
}

/// Returns, for each gap, the settings that no other setting beats in both latency and share.
fn frontiers_table(points: &[Point]) -> Table {
    let mut table = Table::new(
        "Settings of which no other is faster and leaves more, from the fastest on",
        &["settings"],
    );
    for gap in gaps_of(points) {
        let names: Vec<&str> = frontier::unbeaten_points(points, gap)
            .iter()
            .map(|point| point.setting)
            .collect();
        table.add_row(&format!("{gap} us"), vec![names.join("; ")]);
    }
    table
}

/// Returns the latencies and the neighbours' shares for the settings with time slices.
fn slices_table(run: Run<'_>, unit: &str) -> Result<Table> {
    let title = format!(
        "With slices of {SLICE_US} us, {SLICED_GAP} us between two round trips: {unit}, and the time that the neighbours got, %"
    );
    let mut table = Table::new(&title, &["p50", "p90", "max", "given time", "taken time"]);
    for setting in SLICED {
        let Some(found) = setting.find_cell(run, SLICED_GAP)? else {
            continue;
        };
        let neighbours = found.neighbours()?;
        let per_cent = |part: f64| format!("{:.1}", 100.0 * part);
        table.add_row(
            setting.name,
            vec![
                without_decimals(found.median()),
                found.p90().map_or("-".into(), without_decimals),
                without_decimals(found.max()),
                per_cent(neighbours.given),
                per_cent(neighbours.taken),
            ],
        );
    }
    Ok(table)
}

/// Classes of the lines in the style sheet, by gap.
const CLASSES: [&str; GAPS.len()] = [
    "line c-blue",
    "line c-orange",
    "line c-green",
    "line c-red",
    "line c-purple",
    "line c-grey",
];

/// Draws the frontier: for each gap, a line through the settings that no other setting beats in both latency and share.
fn chart(points: &[Point], unit: &str) -> Chart {
    let lines = gaps_of(points)
        .into_iter()
        .zip(CLASSES)
        .map(|(gap, class)| Curve {
            name: format!("{gap} us apart"),
            class,
            points: frontier::unbeaten_points(points, gap)
                .iter()
                .map(|point| (point.share, point.latency))
                .collect(),
        });
    Chart::Curves {
        title: "Median of a round trip against what the neighbours got: the settings that no other beats in both".into(),
        along: "time of both CPUs that the neighbours got, %",
        unit: unit.to_owned(),
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests;
