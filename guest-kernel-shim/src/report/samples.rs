// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the samples of a cell, in the machine's unit.

use core::fmt::Write;

use arrayvec::ArrayString;
use hist::{Histogram, QUANTILES};

use super::block::Block;
use super::record::send_line;
use super::unit::Values;
use crate::workload::samples::Samples;
use crate::workload::stages::STAGES;

/// How much of a cell is reported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Only the statistics.
    Statistics,
    /// Also the histogram of the whole sample, from end to end.
    Total,
    /// All histograms.
    All,
}

/// Writes the samples of a cell as `values`.
pub fn write_samples(block: &Block, samples: &Samples, detail: Detail, values: Values) {
    let put = |name, histogram: &Histogram| {
        write_statistics(block, name, histogram, values);
        if detail == Detail::All || detail == Detail::Total && name == "total" {
            write_buckets(block, name, histogram, values);
        }
    };
    put("total", &samples.total);
    write_raw(block, samples, values);
    let stamped = samples.stamped.as_deref();
    let stages = stamped.map(|stamped| STAGES.iter().copied().zip(&stamped.stages));
    let traced = stamped.map(|stamped| ("traced", &stamped.traced));
    let others = [("handler", &samples.handler)].into_iter().chain(traced);
    for (name, histogram) in stages.into_iter().flatten().chain(others) {
        if histogram.count() != 0 {
            put(name, histogram);
        }
    }
}

fn write_statistics(block: &Block, name: &str, samples: &Histogram, values: Values) {
    let value = |ticks| values.convert(ticks);
    let line = block
        .record("stat")
        .field("name", name)
        .field("count", samples.count())
        .field("min", value(samples.min()));
    let line = QUANTILES.iter().fold(line, |line, &(name, per_mille)| {
        line.field(name, value(samples.quantile(per_mille)))
    });
    let line = line.field("max", value(samples.max()));
    send_line(line.field("sum", value(samples.sum())));
}

/// Writes the histogram, in as many lines as it needs.
fn write_buckets(block: &Block, name: &str, samples: &Histogram, values: Values) {
    let put = |text: &str| {
        let line = block.record("hist").field("name", name);
        send_line(line.field("b", text));
    };
    let mut text = ArrayString::<160>::new();
    for (lowest, count) in samples.buckets() {
        // A bucket takes at most 20 digits for its value, 10 for its count, and two separators.
        if text.remaining_capacity() < 32 {
            put(&text);
            text.clear();
        }
        let separator = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{separator}{}:{count}", values.convert(lowest));
    }
    put(&text);
}

/// Writes the samples themselves, if they were kept, in as many lines as they need.
fn write_raw(block: &Block, samples: &Samples, values: Values) {
    let put = |text: &str| {
        let line = block.record("raw").field("name", "total");
        send_line(line.field("v", text));
    };
    let mut text = ArrayString::<160>::new();
    let kept = samples.raw.as_deref().unwrap_or_default();
    for &ticks in &kept[..samples.kept] {
        // A value has at most 20 digits.
        if text.remaining_capacity() < 21 {
            put(&text);
            text.clear();
        }
        let separator = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{separator}{}", values.convert(ticks));
    }
    if !text.is_empty() {
        put(&text);
    }
}
