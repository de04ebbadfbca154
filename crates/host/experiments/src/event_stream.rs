// SPDX-License-Identifier: MIT OR Apache-2.0
//! `event-stream`: the requested, configured and measured periods of the event stream, and the effect of the period on
//! the limit of a poll.
//!
//! The five requests give five different periods with a counter of any frequency from 25 MHz to 2 GHz, even if only
//! bits 0 to 15 of the counter can generate events. Without FEAT_ECV, a counter of 1 GHz has no period above 65.5 us,
//! and a counter of 2 GHz has none above 32.8 us.

use anyhow::Result;
use plan::Under;

use super::outcome::{ByBoot, Chart, Claim, Constant, Curve, Outcome, Table, Test, two_decimals};
use super::runs::{MeasuredCell, Runs};
use super::{Boot, Experiment, ONCE};

pub const EXPERIMENT: Experiment = Experiment {
    name: "event-stream",
    question: "has the event stream the period that is asked for, and what does it make of a poll's limit?",
    source: "Linux's event stream (100 us, of which the counter makes a power of two of its ticks: 62 to \
             131 us) under the limits of H. Okanovic's arm_poll_idle, April 2024 (10, 25, 50, 100 us); \
             A. Arora's timed loads, 2025-26, which bring WFET",
    boots: &[
        Boot {
            label: "periods",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "stream"),
                ("shape", "one"),
                ("wait", "wfe"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "ipi"),
                ("host-poll-us", "0"),
                ("event-stream-us", "2,4,8,16,32"),
            ],
            iterations: 8,
            repeats: ONCE,
        },
        Boot {
            label: "limits",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "overshoot"),
                ("shape", "one"),
                ("wait", "wfe,wfet"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "ipi"),
                ("host-poll-us", "0"),
                ("event-stream-us", "16,100"),
                ("poll-limit-us", "5,10,25,50,100,150,200"),
            ],
            iterations: 8,
            repeats: ONCE,
        },
        // This boot has fewer wake-ups, because spinning takes a simulator a long time.
        Boot {
            label: "spin",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "overshoot"),
                ("shape", "one"),
                ("wait", "spin"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "ipi"),
                ("host-poll-us", "0"),
                ("poll-limit-us", "5,25,100"),
            ],
            iterations: 4,
            repeats: ONCE,
        },
    ],
    metric: None,
    conclude,
    comparable: "periods and limits, which are times of the counter. How long a CPU takes to leave WFE \
                 is in the overshoot, but only a cycle-level simulator or hardware has a true one.",
};

/// Requested periods, in microseconds.
const ASKED: [&str; 5] = ["2", "4", "8", "16", "32"];

/// Poll limits, in microseconds.
const LIMITS: [&str; 7] = ["5", "10", "25", "50", "100", "150", "200"];

/// Poll limits of `spin`, in microseconds.
const SPUN: [&str; 3] = ["5", "25", "100"];

/// Accepted distance from a whole number of periods, as a share of one period. This distance is not 0, because leaving
/// WFE and beginning the next poll take time.
const OFF: f64 = 0.1;

/// A way to pause within a poll, with the polls for each limit. Each way is a line in the chart.
struct Way<'r> {
    name: String,
    class: &'static str,
    /// Whether the pauses end only at edges of the event stream.
    rounds: bool,
    /// The cell for each limit in microseconds; there is at least one.
    cells: Vec<(f64, MeasuredCell<'r>)>,
}

/// The ways to pause. Each has the boot's label, the wait, the requested period, and the style class of its line.
const WAYS: [(&str, &str, Option<&str>, &str); 5] = [
    ("limits", "wfe", Some("16"), "line c-green"),
    ("limits", "wfe", Some("100"), "line c-green dash"),
    ("limits", "wfet", Some("16"), "line c-purple"),
    ("limits", "wfet", Some("100"), "line c-purple dash"),
    ("spin", "spin", None, "line c-orange"),
];

fn conclude(runs: &Runs) -> Result<Outcome> {
    let (periods, mut claims) = periods(runs)?;
    let mut notes = vec![
        "a poll that ended at an edge of the stream is followed by one that begins there, so that limit \
         and overshoot together are whole periods"
            .into(),
    ];
    let mut ways = Vec::new();
    for (run, wait, stream, class) in WAYS {
        match polls_with_pause(runs, (run, wait), stream, class)? {
            Ok(way) => ways.push(way),
            Err(why) if notes.contains(&why) => {}
            Err(why) => notes.push(why),
        }
    }
    let rounding = || ways.iter().filter(|way| way.rounds);
    claims.extend(rounding().flat_map(Way::claims_of_rounding));
    let shortest = rounding().map(Way::period).min_by(f64::total_cmp);
    if let Some(shortest) = shortest {
        let exact = ways.iter().filter(|way| !way.rounds);
        claims.extend(exact.map(|way| way.claim_limits_kept(shortest)));
    }
    Ok(Outcome {
        tables: vec![periods, overshoots(&ways)],
        charts: vec![chart(&ways)],
        claims,
        notes,
    })
}

/// Returns a table of the requested, configured and measured periods, and the claims about them.
fn periods(runs: &Runs) -> Result<(Table, Vec<Claim>)> {
    let mut rows = Vec::new();
    let mut claims = Vec::new();
    let mut unit = "";
    for asked in ASKED {
        let found = runs.cell("periods", &[("event-stream-us", asked)])?;
        let made = found.period_us();
        let [p50, min, max] =
            [found.median(), found.min(), found.max()].map(|one| found.value_in_us(one));
        let part = p50 / made;
        unit = found.unit();
        rows.push((asked, [made, p50, min, max].map(two_decimals), part));
        let claim = Claim::new(
            format!("asked for {asked} us, the stream has the period that the counter makes, us"),
            Test::Equality { band: 2.0 },
            ("measured", found.figure(p50)),
            ("made", Constant(made)),
        );
        claims.push(claim);
    }
    let title = format!(
        "Period of the event stream by what is asked for (us), in us{}",
        unit_note(unit)
    );
    let columns = ["made", "p50", "min", "max", "p50/made"];
    let mut table = Table::new(&title, &columns);
    for (asked, texts, part) in rows {
        table.add_row(
            asked,
            texts.into_iter().chain([format!("{part:.3}")]).collect(),
        );
    }
    Ok((table, claims))
}

/// Returns a note on the unit of a table's values in microseconds.
fn unit_note(unit: &str) -> String {
    match unit {
        "insns" => " of the counter, which counts instructions".into(),
        "ticks" => String::new(),
        unit => format!(" (measured in {unit})"),
    }
}

/// Returns the polls that pause in one way, or the reason why they were skipped.
fn polls_with_pause<'r>(
    runs: &'r Runs,
    (run, wait): (&str, &str),
    stream: Option<&str>,
    class: &'static str,
) -> Result<Result<Way<'r>, String>> {
    let limits = if stream.is_some() { &LIMITS[..] } else { &SPUN };
    let mut cells = Vec::new();
    for limit in limits {
        let mut words = vec![("wait", wait), ("poll-limit-us", *limit)];
        words.extend(stream.map(|asked| ("event-stream-us", asked)));
        match runs.cell_or_why(run, &words)? {
            Ok(found) => cells.push((limit.parse()?, found)),
            Err(why) => return Ok(Err(format!("skipped: {why}"))),
        }
    }
    let mark = if cells
        .iter()
        .any(|(_, found)| !found.not_modelled().is_empty())
    {
        page::columns::MARK
    } else {
        ""
    };
    let name = match stream {
        Some(_) => format!("{wait}{mark}, {:.1} us", cells[0].1.period_us()),
        None => wait.into(),
    };
    Ok(Ok(Way {
        name,
        class,
        rounds: wait == "wfe",
        cells,
    }))
}

impl Way<'_> {
    /// Returns the period of the event stream, in microseconds.
    fn period(&self) -> f64 {
        self.cells[0].1.period_us()
    }

    /// Returns each limit with its median overshoot, in microseconds.
    fn overshoots(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let cells = self.cells.iter();
        cells.map(|(limit, found)| (*limit, found.value_in_us(found.median())))
    }

    /// Returns the longest overshoot over all limits, in microseconds.
    fn longest_overshoot(&self) -> f64 {
        let cells = self.cells.iter();
        cells
            .map(|(_, found)| found.value_in_us(found.max()))
            .fold(0.0, f64::max)
    }

    /// Returns a figure of the cells. The claim can use the dependencies of any one cell, because all cells wait in
    /// the same way.
    fn figure(&self, value: f64) -> ByBoot<f64> {
        self.cells[0].1.figure(value)
    }

    /// Claims that the event stream rounds the limits up.
    fn claims_of_rounding(&self) -> Vec<Claim> {
        let period = self.period();
        let off = self.overshoots().map(|(limit, over)| {
            let periods = (limit + over) / period;
            (periods - periods.round().max(1.0)).abs()
        });
        let off = off.fold(0.0, f64::max);
        let longest = self.longest_overshoot() / period;
        let source =
            format!("WFE with a period of {period:.1} us rounds every limit up to whole periods");
        let whole = Claim::new(
            source,
            Test::Equality { band: OFF },
            ("the furthest from it", self.figure(off.max(longest - 1.0))),
            ("the next edge", Constant(0.0)),
        );
        let mut claims = vec![whole.difference_in("periods")];
        let below = self.overshoots().filter(|(limit, _)| *limit < period);
        let lengths: Vec<f64> = below.map(|(limit, over)| limit + over).collect();
        if lengths.len() > 1 {
            let shortest = lengths.iter().copied().fold(f64::MAX, f64::min);
            let longest = lengths.iter().copied().fold(0.0, f64::max);
            let claim = Claim::new(
                format!("limits below its period of {period:.1} us do not differ"),
                Test::Equality { band: OFF * period },
                ("the longest poll", self.figure(longest)),
                ("the shortest", self.figure(shortest)),
            );
            claims.push(claim.difference_in("us"));
        }
        claims
    }

    /// Claims that polls keep their limits within a band that is a share of the `shortest` period.
    fn claim_limits_kept(&self, shortest: f64) -> Claim {
        let worst = self.overshoots().map(|(_, over)| over).fold(0.0, f64::max);
        let claim = Claim::new(
            format!("{} keeps every limit", self.name),
            Test::Equality {
                band: OFF * shortest,
            },
            ("the longest overshoot", self.figure(worst)),
            ("the limit", Constant(0.0)),
        );
        claim.difference_in("us")
    }
}

/// Returns a table of the overshoots. For WFE, it also gives the length of the whole poll in periods.
fn overshoots(ways: &[Way<'_>]) -> Table {
    let names: Vec<&str> = ways.iter().map(|way| way.name.as_str()).collect();
    let unit = ways.first().map_or("", |way| way.cells[0].1.unit());
    let title = format!(
        "Overshoot of a poll by its limit (us), p50 in us{}, and whole poll in periods",
        unit_note(unit)
    );
    let mut table = Table::new(&title, &names);
    for limit in LIMITS {
        let at = limit.parse().unwrap_or(0.0);
        let text = |way: &Way<'_>| match way.overshoots().find(|one| one.0 == at) {
            None => "-".into(),
            Some((limit, over)) if way.rounds => {
                format!("{over:.2} ({:.2})", (limit + over) / way.period())
            }
            Some((_, over)) => two_decimals(over),
        };
        table.add_row(limit, ways.iter().map(text).collect());
    }
    table
}

fn chart(ways: &[Way<'_>]) -> Chart {
    let lines = ways.iter().map(|way| Curve {
        name: way.name.clone(),
        class: way.class,
        points: way.overshoots().collect(),
    });
    Chart::Curves {
        title: "By how much a poll passes its limit".into(),
        along: "limit, us",
        unit: "overshoot p50, us".into(),
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests;
