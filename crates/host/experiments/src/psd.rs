// SPDX-License-Identifier: MIT OR Apache-2.0
//! `psd`: prevention of power-sleep demotion (PSD), and an independent re-test of it.
//!
//! In the source, eight jobs have one request each: rate times latency is eight requests in all but one row of its
//! tables. Therefore, a rate here is the inverse of a mean time, and the device takes as long for a request as in the
//! source. The time of a read is the published time without deep states. The time of other requests is from the
//! source's baseline, because it is unknown why writes were slower without deep states.

mod claims;
mod source_figures;

use anyhow::Result;
use plan::Under;

use super::outcome::{Chart, Outcome, Series, Table, two_decimals, without_decimals};
use super::runs::{MeasuredCell, Run, Runs, Words};
use super::{Boot, Experiment, ONCE, SEEDS};
use source_figures::{COLUMNS, ROWS};

/// A boot of workload `io`. The values in `$list` are added to the values that all boots have.
macro_rules! io {
    ($label:literal, $iterations:literal, $repeats:ident, $($list:expr),*) => {
        Boot {
            label: $label,
            under: Under::Rouse,
            cpus: Some(2),
            lists: &[
                ("workload", "io"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "elide"),
                $($list),*
            ],
            iterations: $iterations,
            repeats: $repeats,
        }
    };
}

/// The one CPU that measures. The machine has a second one for the probe that finds whether a store ends a WFE.
const ON_ONE: (&str, &str) = ("cpulist", "0");
const MENUS: (&str, &str) = ("wait", "governor:menu-6.14,governor:menu");
const MENU_6_14: (&str, &str) = ("wait", "governor:menu-6.14");
const READ: (&str, &str) = ("device-us", "324");
const UNIFORM: (&str, &str) = ("spread", "uniform");
/// The requests are either only reads or only writes, because the time of a read has no effect on a write, and vice
/// versa.
const READS_OR_WRITES: (&str, &str) = ("writes", "0,100");
const WRITE: (&str, &str) = ("write-us", "550");
const MIXED: (&str, &str) = ("writes", "50");
const MIXED_READ: (&str, &str) = ("device-us", "485");
const MIXED_WRITE: (&str, &str) = ("write-us", "342");
/// Exit latency of C6, which the source states as 170 us for its machine. The value 0 disables the state.
const C6: (&str, &str) = ("standby-us", "170");
const C6_OR_NOT: (&str, &str) = ("standby-us", "0,170");
const PSD: (&str, &str) = ("psd-ms", "3");
const PSD_OR_NOT: (&str, &str) = ("psd-ms", "0,3");
const LIMITS: (&str, &str) = ("psd-limit", "poll,wfi");

pub const EXPERIMENT: Experiment = Experiment {
    name: "psd",
    question: "should a CPU that waits for a fast device stay shallow for some milliseconds?",
    source: "C. I. King, \"[PATCH] cpuidle: psd: add power sleep demotion prevention for fast I/O \
             devices\", March 2025: fio on six NVMe drives, a Xeon 6741P with 96 threads; its re-test on \
             6.14-rc5, with the two series of patches apart and together; and the review",
    boots: &[
        io!(
            "apart",
            32,
            SEEDS,
            ON_ONE,
            MENUS,
            READ,
            READS_OR_WRITES,
            WRITE,
            UNIFORM,
            C6_OR_NOT,
            PSD_OR_NOT
        ),
        io!(
            "mixed",
            32,
            SEEDS,
            ON_ONE,
            MENUS,
            MIXED,
            MIXED_READ,
            MIXED_WRITE,
            UNIFORM,
            C6_OR_NOT,
            PSD_OR_NOT
        ),
        // No times in this boot are random.
        io!(
            "fixed", 32, ONCE, ON_ONE, MENUS, READ, C6_OR_NOT, PSD_OR_NOT
        ),
        io!(
            "limit",
            32,
            ONCE,
            ON_ONE,
            ("wait", "governor:menu-6.14,governor:teo"),
            READ,
            UNIFORM,
            C6,
            PSD_OR_NOT,
            LIMITS
        ),
        io!(
            "elsewhere",
            32,
            ONCE,
            MENU_6_14,
            READ,
            UNIFORM,
            C6,
            PSD_OR_NOT,
            ("completion", "0,50,85,90,100")
        ),
        io!(
            "windows",
            32,
            ONCE,
            ON_ONE,
            MENU_6_14,
            READ,
            UNIFORM,
            C6,
            ("psd-ms", "0,1,3,10"),
            ("hz", "100,250,1000")
        ),
        // The device takes so long that the window always ends before the request does, wherever in a tick the window
        // begins.
        io!(
            "lengths",
            12,
            ONCE,
            ON_ONE,
            MENU_6_14,
            ("device-us", "21700"),
            UNIFORM,
            C6,
            PSD,
            ("hz", "100,250,1000")
        ),
    ],
    metric: None,
    conclude,
    comparable: "signs, and how much of a request is the time to leave a deep state: requests take what they took \
                 there, and the deep state what Linux says of that machine. Not what lies between request and \
                 interrupts: how many of them a request has there, and how its time is distributed, is not known.",
};

/// The figures of a cell that are compared.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// Requests per second of one submitter.
    rate: f64,
    /// Share of the time in which the CPU was not halted, in per cent.
    awake: f64,
    /// Mean time of a read, in microseconds. `write_us` has the mean time of a write. Either is NaN if there were no
    /// such requests.
    read_us: f64,
    write_us: f64,
}

impl Figures {
    fn of_cell(found: &MeasuredCell<'_>) -> Self {
        let mean = |ticks, number| {
            found.value_in_us(found.time_counter("io", ticks) / found.count("io", number))
        };
        Self {
            rate: 1e6 / found.value_in_us(found.mean()).max(1e-9),
            awake: found.awake_percent(),
            read_us: mean("read-ticks", "reads"),
            write_us: mean("write-ticks", "writes"),
        }
    }
}

/// Returns the cell for a column of the re-test, in the boot of `load`.
fn cell_of_column<'r>(
    run: Run<'r>,
    load: Words<'_>,
    boot: &str,
    column: usize,
) -> Result<MeasuredCell<'r>> {
    let (_, wait, psd, standby) = COLUMNS[column];
    let mut words = vec![("wait", wait), ("psd-ms", psd), ("standby-us", standby)];
    words.extend(load);
    run.cell(boot, &words)
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let retest = retest_table(runs)?;
    let series: Vec<Series> = COLUMNS
        .iter()
        .enumerate()
        .map(|(column, it)| Series::Here(column, it.0))
        .collect();
    let chart = |title: &str, of: &str, series: &[Series]| {
        Chart::bars(
            &retest,
            title,
            "change against the first, %",
            series,
            |name| name.ends_with(of),
        )
    };
    let charts = vec![
        chart("The re-test: requests per second", ": change", &series),
        chart(
            "The same, published",
            ": published change",
            &series
                .iter()
                .map(|one| one.as_published())
                .collect::<Vec<_>>(),
        ),
    ];
    Ok(Outcome {
        tables: vec![retest, limits_table(runs)?, completions_table(runs)?, ticks_table(runs)?],
        charts,
        claims: claims::all_claims(runs)?,
        notes: vec![
            "the source's machine: C6 takes 170 us to leave and pays off from 650 us on (`intel_idle`); here standby takes \
             170 us and pays off from 510 us on"
                .into(),
            "menu of today (7.1) stands for the series of R. Wysocki, which 6.15 has; later changes are in it".into(),
        ],
    })
}

/// Returns the table of the source's re-test. The table has every column three times: for reads, for writes, and for
/// mixed requests.
fn retest_table(runs: &Runs) -> Result<Table> {
    let names = COLUMNS.map(|(name, ..)| name);
    let mut table = Table::new(
        "The re-test: requests per second and CPU, and published",
        &names,
    );
    for row in ROWS {
        let cells = (0..COLUMNS.len())
            .map(|column| cell_of_column(runs.first(), row.words, row.boot, column))
            .collect::<Result<Vec<_>>>()?;
        let figures: Vec<Figures> = cells.iter().map(Figures::of_cell).collect();
        let mut add =
            |what: &str, texts: Vec<String>| table.add_row(&format!("{}: {what}", row.name), texts);
        let change = |rate: f64, base: f64| format!("{:+.2} %", 100.0 * (rate / base - 1.0));
        add(
            "requests/s",
            figures.iter().map(|it| without_decimals(it.rate)).collect(),
        );
        add(
            "change",
            figures
                .iter()
                .map(|it| change(it.rate, figures[0].rate))
                .collect(),
        );
        if row.boot == "mixed" {
            add(
                "a read, us",
                figures
                    .iter()
                    .map(|it| without_decimals(it.read_us))
                    .collect(),
            );
            add(
                "a write, us",
                figures
                    .iter()
                    .map(|it| without_decimals(it.write_us))
                    .collect(),
            );
        }
        add(
            "too deep, %",
            cells
                .iter()
                .map(|cell| two_decimals(cell.misses("above")))
                .collect(),
        );
        add(
            "awake, %",
            figures.iter().map(|it| two_decimals(it.awake)).collect(),
        );
        for (what, values) in row.published {
            let text = |value: &f64| {
                if value.is_nan() {
                    "-".into()
                } else {
                    format!("{value:.3}")
                }
            };
            add(what, values.iter().map(text).collect());
        }
        if let Some((_, rates)) = row.published.first() {
            let text = |&rate: &f64| {
                if rate.is_nan() {
                    "-".into()
                } else {
                    change(rate, rates[0])
                }
            };
            add("published change", rates.iter().map(text).collect());
        }
    }
    Ok(table)
}

/// Adds a row with the requests per second of `cells`, their changes, and their shares of time awake. The first cell is
/// the base of the changes.
fn add_effects(table: &mut Table, name: &str, cells: &[MeasuredCell<'_>]) {
    let figures: Vec<Figures> = cells.iter().map(Figures::of_cell).collect();
    let text = |it: &Figures| {
        let change = 100.0 * (it.rate / figures[0].rate - 1.0);
        format!(
            "{} ({change:+.1} %), {:.0} %",
            without_decimals(it.rate),
            it.awake
        )
    };
    table.add_row(name, figures.iter().map(text).collect());
}

fn limits_table(runs: &Runs) -> Result<Table> {
    let mut table = Table::new(
        "How shallow the window is, reads (uniform): requests/s (change), awake",
        &["without PSD", "polls", "no deeper than wfi"],
    );
    for wait in ["governor:menu-6.14", "governor:teo"] {
        let words: [&[(&str, &str)]; 3] = [
            &[("wait", wait), ("psd-ms", "0")],
            &[("wait", wait), ("psd-ms", "3"), ("psd-limit", "poll")],
            &[("wait", wait), ("psd-ms", "3"), ("psd-limit", "wfi")],
        ];
        let cells = words.map(|words| runs.cell("limit", words));
        let cells = cells.into_iter().collect::<Result<Vec<_>>>()?;
        add_effects(&mut table, wait, &cells);
    }
    Ok(table)
}

fn completions_table(runs: &Runs) -> Result<Table> {
    let mut table = Table::new(
        "Completions on the CPU that submitted, 2 CPUs, reads (uniform): requests/s (change), awake",
        &["without PSD", "PSD"],
    );
    for percent in ["100", "90", "85", "50", "0"] {
        let cells = ["0", "3"]
            .map(|psd| runs.cell("elsewhere", &[("completion", percent), ("psd-ms", psd)]));
        add_effects(
            &mut table,
            &format!("{percent} %"),
            &cells.into_iter().collect::<Result<Vec<_>>>()?,
        );
    }
    Ok(table)
}

fn ticks_table(runs: &Runs) -> Result<Table> {
    let mut table = Table::new(
        "Ticks and windows, reads (uniform): requests/s (change), awake",
        &["without PSD", "1 ms", "3 ms", "10 ms"],
    );
    for hz in ["100", "250", "1000"] {
        let cells =
            ["0", "1", "3", "10"].map(|psd| runs.cell("windows", &[("hz", hz), ("psd-ms", psd)]));
        let long = runs.cell("lengths", &[("hz", hz)])?;
        let name = format!("{hz} Hz; 3 ms: open for {:.2} ms", claims::window_ms(&long));
        add_effects(
            &mut table,
            &name,
            &cells.into_iter().collect::<Result<Vec<_>>>()?,
        );
    }
    Ok(table)
}
