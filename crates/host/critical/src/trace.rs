// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instructions of samples, by block, and the text format of their file.

use std::fmt::Write as _;

use crate::{Counts, Recorded, Sample, Via};

/// A block of consecutive instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Code {
    /// The exception level of the block.
    pub level: u8,
    /// Address of the first instruction.
    pub address: u64,
    /// The instructions, as encoded words.
    pub words: Vec<u32>,
}

/// Instructions of one block that a CPU executed consecutively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The index of the block.
    pub block: u32,
    /// Position in the block at which the piece starts.
    pub first: u16,
    /// Position in the block after the piece's last instruction.
    pub end: u16,
    /// The CPU.
    pub cpu: u16,
    /// How the path reached the first of these instructions. `None` if they are off the path.
    pub path: Option<Via>,
    /// The timing of the piece, if it is a single instruction, on a machine that models time.
    pub timing: Option<Timing>,
}

/// When an instruction was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// Cycles from the beginning of the sample to the instruction before this one.
    pub at: u64,
    /// Cycles since the previous instruction: the path's previous instruction if this one is on the path.
    pub cycles: u64,
    /// The wait during which these cycles passed, if there was one.
    pub waited: Option<Waited>,
}

/// A wait of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waited {
    /// The CPU waited until a store or an interrupt of another CPU reached it.
    For(Via),
    /// The CPU halted, and the halt was not ended by another CPU.
    Halted,
}

impl Piece {
    /// Returns the number of cycles that the piece took if its timing is known, or else the number of its instructions.
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

/// One or more samples whose executed instructions are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The cell of the samples.
    pub cell: u64,
    /// Number of samples.
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
    /// Number of samples that were lost, because some of their blocks are unknown.
    pub lost: u64,
}

/// The entry of a CPU into a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number of instructions that all CPUs together had executed before the entry.
    pub from: u64,
    /// The index of the block.
    pub block: u32,
    /// Number of instructions in the block.
    pub len: u64,
}

/// Returns the pieces of a sample, given the blocks that were entered, in order. Returns `None` if these blocks do not
/// contain all instructions of the sample.
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

/// Adds the pieces for instructions `from` to `to`, all executed by one CPU.
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
        // If a block was left at once, none of its instructions was executed.
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

/// First line of the file.
const HEADING: &str = "rouse traces 1";

impl Traces {
    /// Returns the lines of the file.
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

    /// Parses the lines of the file. Returns `None` if the file is not complete.
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

    /// CPU 0 executes instructions 10 to 20. Instructions 10 to 18 are on the path. CPU 1 executes instructions 20 to
    /// 26, which are on the path from 22 on.
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
        // The sample begins in the middle of block 0. Block 1 is left after three instructions. The entry after it is
        // empty.
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
