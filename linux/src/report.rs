// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the results as the records that docs/records.md describes.

use std::io::{self, Write};

use hist::{Histogram, QUANTILES, Ratio};
use plan::{Cell, DIMENSIONS, Info, PASSES, Pace, Place};
use wire::Line;

use crate::counts::Counts;
use crate::output::Output;

/// Prefix of the record kinds in a block if more passes of the block's cell follow.
const PART: &str = "part-";
/// Number of counters that fit in a line, whatever their values are.
const PER_LINE: usize = 5;
/// Number of bytes to keep from the beginning of a program's output, and from its end.
const HALF: usize = 16 << 10;
/// Maximum number of bytes of the output in a line, after escaping.
const TEXT: usize = 150;
/// Maximum number of bytes of a reason to skip a cell, after escaping.
const WHY: usize = 190;
/// Maximum number of bytes for buckets in a line.
const BUCKETS: usize = 160;

/// A cell and its results so far.
#[derive(Debug)]
pub struct Told<'e> {
    /// The cell's number in its boot.
    pub id: usize,
    /// The cell's parameters.
    pub cell: &'e Cell,
    /// Why the cell does not run, if it is skipped.
    pub skipped: Option<&'e str>,
    /// The cell's samples.
    pub total: &'e Histogram,
    /// Counts during the cell's samples.
    pub counts: &'e Counts,
    /// Number of counted wake-ups.
    pub made: u64,
    /// The cell's progress.
    pub pace: &'e Pace,
    /// The retained end of a program's output.
    pub output: &'e [u8],
    /// The number of bytes before `output`.
    pub before: u64,
    /// A remark on a program's run.
    pub note: Option<&'static str>,
    /// The cpuidle driver and governor.
    pub idles_by: &'e str,
    /// The idle states: see [`crate::idle::table`].
    pub idle_states: &'e str,
}

/// Properties of the boot that are the same for all cells.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'f> {
    /// Name of the level below Linux.
    pub under: &'f str,
    /// Number of CPUs.
    pub cpus: usize,
    /// Maximum number of samples.
    pub iterations: u32,
    /// Whether to report only statistics.
    pub compact: bool,
    /// Cycles per tick, if values are cycles.
    pub cycles: Option<Ratio>,
    /// Number of completed passes over cells, and their estimated time in microseconds.
    pub done: (usize, u64),
}

/// Writes the block of a cell.
///
/// # Errors
/// The block can't be written.
pub fn write_cell<W: Write>(
    output: &mut Output<W>,
    told: &Told<'_>,
    frame: &Frame<'_>,
) -> io::Result<()> {
    let part = told.skipped.is_none() && told.pace.ended.is_none();
    let first = output.next_number();
    let mut block = BlockWriter {
        output,
        id: told.id,
        part,
        cycles: frame.cycles,
    };
    block.describe(told, frame)?;
    match told.skipped {
        Some(why) => {
            // The reason may contain the name of a program, which may be long.
            let why = &why[..fitting_bytes(why, WHY)];
            block.send("skipped", |line| line.field("why", why))?;
        }
        None => {
            block.statistics(told.total)?;
            if !frame.compact {
                block.buckets(told.total)?;
            }
            block.counts(told.counts, frame.compact || part)?;
        }
    }
    if !part {
        block.output_of_program(told)?;
    }
    let records = block.output.next_number() + 1 - first;
    block.send("done", |line| {
        let line = line.field("under", frame.under);
        let line = line.field("at", frame.done.0).field("at_us", frame.done.1);
        let line = match told.skipped {
            Some(_) => line,
            None => add_pace(line, told),
        };
        line.field("records", records)
    })
}

fn add_pace(line: Line, told: &Told<'_>) -> Line {
    let line = line
        .field("passes", told.pace.passes)
        .field("passes_planned", PASSES);
    let line = line.field("made", told.made);
    match told.pace.ended {
        None => line,
        Some(end) => line.field("ended", end),
    }
}

struct BlockWriter<'o, W> {
    output: &'o mut Output<W>,
    id: usize,
    part: bool,
    cycles: Option<Ratio>,
}

impl<W: Write> BlockWriter<'_, W> {
    /// Converts a value in ticks to the unit of the records.
    fn to_unit(&self, ticks: u64) -> u64 {
        self.cycles.map_or(ticks, |ratio| ratio.convert(ticks))
    }

    fn send(&mut self, kind: &str, fields: impl FnOnce(Line) -> Line) -> io::Result<()> {
        let part = if self.part { PART } else { "" };
        let line = self
            .output
            .record(format_args!("{part}{kind}"))
            .field("id", self.id);
        self.output.send(fields(line))
    }

    fn describe(&mut self, told: &Told<'_>, frame: &Frame<'_>) -> io::Result<()> {
        let of = |place| {
            DIMENSIONS
                .iter()
                .filter(move |info| info.place == place && info.is_told(told.cell))
        };
        let put =
            |line: Line, info: &Info| line.field(&info.key.replace('-', "_"), info.text(told.cell));
        self.send("cell", |line| {
            of(Place::Always).fold(line.field("under", frame.under), put)
        })?;
        self.send("more", |line| {
            let line = line
                .field("cpus", frame.cpus)
                .field("iterations", frame.iterations);
            of(Place::Unusual).fold(line, put)
        })?;
        // These fields have a record of their own, since names and tables may be long.
        self.send("more", |line| {
            let line = line.field("idles_by", told.idles_by);
            match told.idle_states {
                "" => line,
                states => line.field("idle_states", states),
            }
        })
    }

    fn statistics(&mut self, total: &Histogram) -> io::Result<()> {
        let quantiles =
            QUANTILES.map(|(name, per_mille)| (name, self.to_unit(total.quantile(per_mille))));
        let [min, max, sum] = [total.min(), total.max(), total.sum()].map(|of| self.to_unit(of));
        self.send("stat", |line| {
            let line = line
                .field("name", "total")
                .field("count", total.count())
                .field("min", min);
            let line = quantiles
                .iter()
                .fold(line, |line, &(name, value)| line.field(name, value));
            line.field("max", max).field("sum", sum)
        })
    }

    fn buckets(&mut self, total: &Histogram) -> io::Result<()> {
        let mut text = String::new();
        let cycles = self.cycles;
        let buckets = total.buckets().map(|(lowest, count)| {
            let lowest = cycles.map_or(lowest, |ratio| ratio.convert(lowest));
            format!("{lowest}:{count}")
        });
        for bucket in buckets {
            if text.len() + 1 + bucket.len() > BUCKETS {
                self.send("hist", |line| line.field("name", "total").field("b", &text))?;
                text.clear();
            }
            text += if text.is_empty() { "" } else { "," };
            text += &bucket;
        }
        self.send("hist", |line| line.field("name", "total").field("b", &text))
    }

    /// Writes the beginning and the end of a program's output.
    fn output_of_program(&mut self, told: &Told<'_>) -> io::Result<()> {
        let Told { output, before, .. } = *told;
        let (begins, ends) = match output.len().checked_sub(2 * HALF) {
            None if before == 0 => (output, &output[..0]),
            Some(_) if before == 0 => (&output[..HALF], &output[output.len() - HALF..]),
            // The output before these bytes is lost.
            _ => (&output[..0], &output[output.len().saturating_sub(HALF)..]),
        };
        let cut = before + (output.len() - begins.len() - ends.len()) as u64;
        if let Some(note) = told.note {
            self.send("output", |line| line.field("note", note))?;
        }
        for (part, cut) in [(begins, 0), (ends, cut)] {
            let mut text = &*String::from_utf8_lossy(part);
            let mut cut = (cut > 0).then_some(cut);
            while !text.is_empty() {
                let (some, rest) = text.split_at(fitting_bytes(text, TEXT));
                let cut = cut.take();
                self.send("output", |line| match cut {
                    Some(cut) => line.field("cut", cut).field("text", some),
                    None => line.field("text", some),
                })?;
                text = rest;
            }
        }
        Ok(())
    }

    fn counts(&mut self, counts: &Counts, compact: bool) -> io::Result<()> {
        let told = counts.iter().filter(|(_, count)| !compact || **count != 0);
        let told: Vec<_> = told.collect();
        for some in told.chunks(PER_LINE) {
            self.send("count", |line| {
                some.iter()
                    .fold(line, |line, (name, count)| line.field(name, count))
            })?;
        }
        Ok(())
    }
}

/// Returns the length of the longest prefix of `text` that takes at most `most` bytes in a line. The prefix consists of
/// whole characters, at least one.
fn fitting_bytes(text: &str, most: usize) -> usize {
    let cost = |c: char| match c.is_ascii_graphic() && !['%', '#', '='].contains(&c) {
        true => 1,
        false => 3 * c.len_utf8(),
    };
    let mut used = 0;
    let mut ends = text
        .char_indices()
        .map(|(at, c)| (at + c.len_utf8(), cost(c)));
    let first = ends.next().map_or(0, |(end, cost)| {
        used = cost;
        end
    });
    let more = ends.take_while(|(_, cost)| {
        used += cost;
        used <= most
    });
    more.last().map_or(first, |(end, _)| end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Workload;
    use wire::Record;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(fitting_bytes("", 9), 0);
        assert_eq!(fitting_bytes("ab cd", 9), 5);
        // A space takes three bytes in a record, and this letter six.
        assert_eq!(fitting_bytes("ab cd", 5), 3);
        assert_eq!(fitting_bytes("a\u{e4}b", 6), 1);
        assert_eq!(fitting_bytes("\u{e4}b", 2), 2);
    }

    #[test]
    fn a_block_says_how_many_records_it_has() {
        let mut total = Histogram::new();
        (0..500).for_each(|n| total.record(20_000 + 50 * n));
        let counts: Counts = (0..12)
            .map(|n| (format!("linux.counter-{n}"), u64::MAX))
            .collect();
        let cell = Cell {
            workload: Workload::LinuxPipe,
            ..Cell::default()
        };
        let mut written = Vec::new();
        let mut output = Output::new(&mut written);
        let told = Told {
            id: 3,
            cell: &cell,
            skipped: None,
            total: &total,
            counts: &counts,
            made: 500,
            pace: &Pace::default(),
            output: &[b'x'; 40_000],
            before: 0,
            note: None,
            idles_by: "none/menu",
            idle_states: "",
        };
        let frame = Frame {
            under: "rouse",
            cpus: 2,
            iterations: 2000,
            compact: false,
            cycles: None,
            done: (1, 9),
        };
        super::write_cell(&mut output, &told, &frame).unwrap();
        let text = String::from_utf8(written).unwrap();
        let records: Vec<Record<'_>> = text
            .lines()
            .map(|line| Record::parse(line).unwrap())
            .collect();
        let last = records.last().unwrap();
        assert_eq!(
            (last.kind, last.number("records")),
            ("part-done", Some(records.len() as u64))
        );
        assert!(records.iter().zip(0..).all(|(record, n)| record.seq == n));
        assert!(records.iter().all(|record| record.number("id") == Some(3)));
        assert_eq!(records[0].get("workload"), Some("linux-pipe"));
        assert_eq!(
            records[2].text("idles_by").unwrap().to_string(),
            "none/menu"
        );
        let buckets = records.iter().filter(|record| record.kind == "part-hist");
        assert!(buckets.count() > 10);
    }
}
