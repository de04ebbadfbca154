// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instructions of samples, block by block, and the lines of their file.

use std::fmt::Write as _;

use crate::{Counts, Recorded, Sample, Via};

/// A block of instructions that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Code {
    /// Its exception level.
    pub level: u8,
    /// Address of its first instruction.
    pub address: u64,
    /// Its instructions.
    pub words: Vec<u32>,
}

/// Instructions of a block that a CPU executed one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The block, by index.
    pub block: u32,
    /// Index of the first instruction.
    pub first: u16,
    /// Index after the last instruction.
    pub end: u16,
    /// The CPU.
    pub cpu: u16,
    /// How the path came to the first of them; `None` off the path.
    pub path: Option<Via>,
    /// Its time, if it is one instruction of a machine that has time.
    pub timing: Option<Timing>,
}

/// When an instruction was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// Cycles from the beginning of the sample to the instruction before it.
    pub at: u64,
    /// Cycles since the instruction before it; on the path, since the instruction before it on the path.
    pub cycles: u64,
    /// The wait in which these cycles passed, if there was one.
    pub waited: Option<Waited>,
}

/// A wait of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waited {
    /// A store or an interrupt was on its way from another CPU.
    For(Via),
    /// The CPU halted, and no other CPU ended the halt.
    Halted,
}

impl Piece {
    /// Returns the cycles that the piece took if its time is known, or else the number of its instructions.
    #[must_use]
    pub fn cost(&self) -> u64 {
        match self.timing {
            Some(timing) => timing.cycles,
            None => u64::from(self.end - self.first),
        }
    }
}

/// Everything that was executed during a sample, in order.
pub type Pieces = Vec<Piece>;

/// One or more samples that were executed in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Their cell.
    pub cell: u64,
    /// Number of these samples.
    pub times: u64,
    /// The sample.
    pub sample: Sample,
    /// The instructions.
    pub pieces: Pieces,
}

/// The samples of a boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// The blocks of all pieces.
    pub blocks: Vec<Code>,
    /// The samples.
    pub traces: Vec<Trace>,
    /// Number of samples that are missing because not all of their blocks are known.
    pub lost: u64,
}

/// A block that was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number of instructions that all CPUs had executed before it.
    pub from: u64,
    /// The block, by index.
    pub block: u32,
    /// The number of its instructions.
    pub len: u64,
}

/// Returns the pieces of a sample from the blocks that were entered, in order; `None` if the blocks do not have all
/// instructions of the sample.
#[must_use]
pub fn pieces(entries: &[Entry], recorded: &Recorded) -> Option<Pieces> {
    let mut pieces = Pieces::new();
    let mut path = recorded.path.iter().copied().peekable();
    for stretch in &recorded.work {
        let mut from = stretch.from;
        while from < stretch.to {
            while path.next_if(|on| on.to <= from).is_some() {}
            let next = path.peek().copied();
            let on = next.filter(|on| on.from <= from);
            let border = match (on, next) {
                (Some(on), _) => on.to,
                (None, Some(next)) => next.from,
                (None, None) => stretch.to,
            };
            let to = stretch.to.min(border);
            let way = on.map(|on| match on.from == from {
                true => on.via,
                false => Via::Own,
            });
            add_pieces(&mut pieces, entries, stretch.cpu, (from, to), way)?;
            from = to;
        }
    }
    Some(pieces)
}

/// Adds pieces for the instructions `from` to `to`, which one CPU executed.
fn add_pieces(
    pieces: &mut Pieces,
    entries: &[Entry],
    cpu: usize,
    (mut from, to): (u64, u64),
    mut path: Option<Via>,
) -> Option<()> {
    let after = entries.partition_point(|entry| entry.from <= from);
    let mut rest = entries[after.checked_sub(1)?..].iter().peekable();
    while from < to {
        let entry = rest.next()?;
        let end = rest.peek().map_or(to, |next| next.from.min(to));
        // A block that was left at once has no instructions.
        if end <= from {
            continue;
        }
        if end - entry.from > entry.len {
            return None;
        }
        pieces.push(Piece {
            block: entry.block,
            first: u16::try_from(from - entry.from).ok()?,
            end: u16::try_from(end - entry.from).ok()?,
            cpu: u16::try_from(cpu).ok()?,
            path,
            timing: None,
        });
        path = path.map(|_| Via::Own);
        from = end;
    }
    Some(())
}

/// First line of a file.
const HEADING: &str = "rouse traces 1";

impl Traces {
    /// Returns the lines of a file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADING}\n");
        for block in &self.blocks {
            let _ = write!(text, "block {} {:x}", block.level, block.address);
            for word in &block.words {
                let _ = write!(text, " {word:x}");
            }
            text.push('\n');
        }
        for trace in &self.traces {
            let Sample {
                value,
                path,
                work,
                unclear,
                ..
            } = trace.sample;
            let _ = write!(
                text,
                "sample {} {} {value} {}",
                trace.cell,
                trace.times,
                u8::from(unclear)
            );
            for number in path.to_array().into_iter().chain(work.to_array()) {
                let _ = write!(text, " {number}");
            }
            text.push('\n');
            for piece in &trace.pieces {
                let path = piece.path.map_or(0, |via| 1 + via as u8);
                let Piece {
                    block,
                    first,
                    end,
                    cpu,
                    ..
                } = piece;
                let _ = write!(text, "{block} {first} {end} {cpu} {path} ");
            }
            text.push('\n');
        }
        let _ = writeln!(text, "end {}", self.lost);
        text
    }

    /// Parses the lines of a file; `None` if the file is not complete.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (HEADING, Some(("end", lost))) = (lines.next()?, lines.next_back()?.split_once(' '))
        else {
            return None;
        };
        let mut traces = Self {
            lost: lost.parse().ok()?,
            ..Self::default()
        };
        while let Some(line) = lines.next() {
            match line.split_once(' ')? {
                ("block", block) => traces.blocks.push(block_of(block)?),
                ("sample", sample) => {
                    let mut trace = trace_of(sample)?;
                    trace.pieces = pieces_of(lines.next()?)?;
                    let known = |piece: &Piece| {
                        let block = traces.blocks.get(piece.block as usize);
                        let words = block.map_or(0, |block| block.words.len());
                        piece.first < piece.end && usize::from(piece.end) <= words
                    };
                    trace.pieces.iter().all(known).then_some(())?;
                    traces.traces.push(trace);
                }
                _ => return None,
            }
        }
        Some(traces)
    }
}

fn block_of(text: &str) -> Option<Code> {
    let mut words = text.split(' ');
    let level = words.next()?.parse().ok()?;
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let words = words.map(|word| u32::from_str_radix(word, 16).ok());
    Some(Code {
        level,
        address,
        words: words.collect::<Option<_>>()?,
    })
}

fn trace_of(text: &str) -> Option<Trace> {
    let numbers = text.split(' ').map(|word| word.parse().ok());
    let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
    let [cell, times, value, unclear, counts @ ..] = &numbers[..] else {
        return None;
    };
    let (path, work) = counts.split_first_chunk::<{ Counts::LEN }>()?;
    let sample = Sample {
        value: *value,
        unclear: *unclear != 0,
        path: Counts::from_array(*path),
        work: Counts::from_array(work.try_into().ok()?),
        ..Sample::default()
    };
    Some(Trace {
        cell: *cell,
        times: *times,
        sample,
        pieces: Pieces::new(),
    })
}

fn pieces_of(text: &str) -> Option<Pieces> {
    let numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
    let numbers: Vec<u32> = numbers.collect::<Option<_>>()?;
    let (chunks, []) = numbers.as_chunks::<5>() else {
        return None;
    };
    let piece = |&[block, first, end, cpu, path]: &[u32; 5]| {
        let path = match path.checked_sub(1) {
            Some(via) => Some(*Via::ALL.get(via as usize)?),
            None => None,
        };
        Some(Piece {
            block,
            first: first.try_into().ok()?,
            end: end.try_into().ok()?,
            cpu: cpu.try_into().ok()?,
            path,
            timing: None,
        })
    };
    chunks.iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stretch;

    fn stretch(cpu: usize, from: u64, to: u64, via: Via) -> Stretch {
        Stretch { cpu, from, to, via }
    }

    fn entry(from: u64, block: u32, len: u64) -> Entry {
        Entry { from, block, len }
    }

    /// CPU 0 executes instructions 10 to 20, which are on the path up to 18. CPU 1 executes 20 to 26, which are on the
    /// path from 22 on.
    fn recorded() -> Recorded {
        Recorded {
            cell: 3,
            sample: Sample::default(),
            path: vec![stretch(0, 10, 18, Via::Own), stretch(1, 22, 26, Via::Store)],
            work: vec![stretch(0, 10, 20, Via::Own), stretch(1, 20, 26, Via::Own)],
        }
    }

    #[test]
    fn blocks_are_cut_at_the_borders_of_the_path() {
        // The sample begins in block 0; block 1 was left after three instructions, and an empty entry follows.
        let entries = [
            entry(8, 0, 5),
            entry(13, 1, 9),
            entry(16, 2, 4),
            entry(16, 3, 4),
            entry(20, 4, 6),
        ];
        let all = pieces(&entries, &recorded()).unwrap();
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.block, one.first, one.end, one.cpu, one.path))
            .collect();
        assert_eq!(
            told,
            [
                (0, 2, 5, 0, Some(Via::Own)),
                (1, 0, 3, 0, Some(Via::Own)),
                (3, 0, 2, 0, Some(Via::Own)),
                (3, 2, 4, 0, None),
                (4, 0, 2, 1, None),
                (4, 2, 6, 1, Some(Via::Store)),
            ]
        );
    }

    #[test]
    fn blocks_that_lack_instructions_are_no_sample() {
        let lacks = [entry(8, 0, 5), entry(13, 1, 2), entry(20, 4, 6)];
        assert_eq!(pieces(&lacks, &recorded()), None);
        assert_eq!(pieces(&[entry(11, 0, 50)], &recorded()), None);
        assert_eq!(pieces(&[], &recorded()), None);
    }

    #[test]
    fn a_file_is_read_back() {
        let code = |address| Code {
            level: 1,
            address,
            words: vec![0xd503_201f; 6],
        };
        let traces = Traces {
            blocks: (0..5).map(|n| code(0xffff_8000_0000_0000 + n)).collect(),
            traces: vec![Trace {
                cell: 3,
                times: 7,
                sample: Sample {
                    value: 16,
                    ..Sample::default()
                },
                pieces: pieces(
                    &[
                        entry(8, 0, 6),
                        entry(13, 1, 6),
                        entry(19, 2, 6),
                        entry(24, 4, 6),
                    ],
                    &recorded(),
                )
                .unwrap(),
            }],
            lost: 2,
        };
        let text = traces.to_text();
        assert_eq!(Traces::from_text(&text), Some(traces));
        for damaged in [
            String::new(),
            text.replace("end 2\n", ""),
            text.replace("block 1", "block x"),
            text.replace("sample 3 7", "sample 3"),
            text.replacen("0 2 5 0 1", "9 2 5 0 1", 1),
        ] {
            assert_eq!(Traces::from_text(&damaged), None, "{damaged}");
        }
    }
}
