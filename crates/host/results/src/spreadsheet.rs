// SPDX-License-Identifier: MIT OR Apache-2.0
//! `results.csv`: one row per cell, and the same columns for every run.

use anyhow::{Context, Result};

use crate::{Cell, Critical, Results, keys};

const STATS: [&str; 8] = ["count", "min", "p50", "p90", "p99", "p999", "max", "mean"];
const EXITS: [&str; 10] = [
    "wfi",
    "wfe",
    "sgi",
    "irq",
    "hvc",
    "smc",
    "sysreg",
    "mmio",
    "maintenance",
    "other",
];
const IPIS: [&str; 3] = ["sent", "elided", "coalesced"];
const WAKES: [&str; 1] = ["timeout"];
/// Titles of the columns for the path and the parts of samples.
const PATH: [&str; 15] = [
    "path_samples",
    "path_unclear",
    "path_net",
    "path_min",
    "path_p50",
    "path_p90",
    "path_p99",
    "path_max",
    "path_mean",
    "work_el0",
    "work_el1",
    "work_el2",
    "work_el3",
    "work_skipped",
    "work_bookkeeping",
];

/// Returns the text of the file.
pub fn csv(results: &Results) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header_row())?;
    for cell in &results.cells {
        let row = cell_row(cell);
        writer.write_record(row.iter().map(|text| foreign::cell(text).into_owned()))?;
    }
    let bytes = writer.into_inner().context("results.csv")?;
    Ok(String::from_utf8(bytes)?)
}

fn header_row() -> Vec<String> {
    let plain = keys().chain(["iterations", "unit"]).chain(STATS);
    let mut header: Vec<String> = plain.map(|name| name.replace('-', "_")).collect();
    for (group, names) in [("exits", &EXITS[..]), ("ipis", &IPIS), ("wakes", &WAKES)] {
        header.extend(names.iter().map(|name| format!("{group}_{name}")));
    }
    header.extend(["skipped", "run", "event_stream_made_ns"].map(String::from));
    header.extend(["passes", "passes_planned", "ended", "made"].map(String::from));
    header.extend(PATH.map(String::from));
    header.extend(["sender", "receiver"].map(String::from));
    header
}

fn cell_row(cell: &Cell) -> Vec<String> {
    let mut row = cell.key();
    row.extend([cell.iterations.to_string(), cell.unit.clone()]);
    match &cell.stats {
        None => row.extend(STATS.map(|_| String::new())),
        Some(stats) => {
            let percentiles = [stats.p50, stats.p90, stats.p99, stats.p999];
            let exact = [&[stats.count, stats.min], &percentiles[..], &[stats.max]].concat();
            row.extend(exact.iter().map(u64::to_string));
            row.push(format!("{:.3}", stats.mean));
        }
    }
    for (counts, names) in [
        (&cell.exits, &EXITS[..]),
        (&cell.ipis, &IPIS),
        (&cell.wakes, &WAKES),
    ] {
        let count = |name: &&str| counts.get(*name).map(u64::to_string).unwrap_or_default();
        row.extend(names.iter().map(count));
    }
    row.push(cell.skipped.clone().unwrap_or_default());
    row.push(cell.run.clone());
    row.push(cell.event_stream_made_ns.to_string());
    // An unknown number is an empty text.
    let known = |number: u64| match number {
        0 => String::new(),
        number => number.to_string(),
    };
    row.extend([cell.passes, cell.passes_planned].map(known));
    row.push(cell.ended.map(|end| end.to_string()).unwrap_or_default());
    row.push(known(cell.made));
    match &cell.critical {
        None => row.extend(PATH.map(|_| String::new())),
        Some(critical) => row.extend(path_texts(critical)),
    }
    row.extend([cell.sender.clone(), cell.receiver.clone()]);
    row
}

/// Returns the texts of the columns [`PATH`].
fn path_texts(critical: &Critical) -> [String; PATH.len()] {
    let Critical {
        samples,
        unclear,
        path,
        net,
        work,
        ..
    } = critical;
    let exact = |number: u64| number.to_string();
    [
        exact(*samples),
        exact(*unclear),
        exact(net.p50),
        exact(path.min),
        exact(path.p50),
        exact(path.p90),
        exact(path.p99),
        exact(path.max),
        format!("{:.3}", path.mean),
        exact(work.el0),
        exact(work.el1),
        exact(work.el2),
        exact(work.el3),
        exact(work.skipped),
        exact(work.total_bookkeeping()),
    ]
}
