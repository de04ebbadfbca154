// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples that are divided into the path and other work, and the text format of their file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::{Counts, Exits};

/// One sample. Equal samples are stored once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// The value that the guest measured: how far the counter advanced.
    pub value: u64,
    /// Instructions that all CPUs together executed.
    pub work: Counts,
    /// Instructions of the CPUs that took part in the sample: the measuring CPU, and each CPU that sent to or received
    /// from a CPU taking part, during the sample.
    pub parties: Counts,
    /// Instructions on the path.
    pub path: Counts,
    /// Exceptions that were taken to EL2, by cause.
    pub exits: Exits,
    /// Whether a CPU halted. If no CPU has any work, the counter skips to the expiry of the next timer.
    pub halted: bool,
    /// Whether the emulator switched CPUs at a point where none of them waited. Each CPU's number of instructions is
    /// then unknown.
    pub unclear: bool,
}

/// Samples by cell, each with the number of its occurrences.
pub type Samples = BTreeMap<(u64, Sample), u64>;

/// First line of the file.
const HEADING: &str = "rouse samples 3";
/// How many numbers a line has.
const NUMBERS: usize = 3 + 3 * Counts::LEN + 9 + 2;

impl Sample {
    /// Returns how far the counter advanced while no instruction was executed. An error describes a contradiction in
    /// the sample.
    pub fn skipped(&self) -> Result<u64, String> {
        let executed = self.work.total();
        match self.value.checked_sub(executed) {
            None => Err(format!(
                "{executed} instructions were executed in a sample of {}",
                self.value
            )),
            Some(skipped) if skipped != 0 && !self.halted => Err(format!(
                "{executed} instructions were executed in a sample of {} in which no CPU halted",
                self.value
            )),
            Some(skipped) => Ok(skipped),
        }
    }

    /// Checks that the numbers of the sample are possible: the path and the bookkeeping must be parts of the executed
    /// instructions.
    pub fn check(&self) -> Result<(), String> {
        self.skipped()?;
        let inside = |part: Counts| {
            let mut parts = self.work.to_array().into_iter().zip(part.to_array());
            parts.all(|(work, part)| part <= work)
        };
        let within = |counts: &Counts| counts.bookkeeping() <= counts.total();
        let all = [self.work, self.parties, self.path];
        match all.into_iter().all(inside) && all.iter().all(within) {
            true => Ok(()),
            false => Err(format!("a part is more than the whole: {self:?}")),
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        [self.value]
            .into_iter()
            .chain(self.work.to_array())
            .chain(self.parties.to_array())
            .chain(self.path.to_array())
            .chain(self.exits)
            .chain([self.halted.into(), self.unclear.into()])
    }
}

/// Returns the lines of a file that contains `samples`.
#[must_use]
pub fn to_text(samples: &Samples) -> String {
    let mut text = format!("{HEADING}\n");
    for ((cell, sample), times) in samples {
        let _ = write!(text, "{cell} {times}");
        for number in sample.numbers() {
            let _ = write!(text, " {number}");
        }
        text.push('\n');
    }
    text += "end\n";
    text
}

/// Parses the lines of the file. An error names the first line that is not a sample.
pub fn from_text(text: &str) -> Result<Samples, String> {
    let mut lines = text.lines();
    if lines.next() != Some(HEADING) || lines.next_back() != Some("end") {
        return Err("it is not whole".into());
    }
    let mut samples = Samples::new();
    for line in lines {
        let numbers = line.split(' ').map(str::parse);
        let numbers: Result<Vec<u64>, _> = numbers.collect();
        let numbers = numbers.ok().filter(|numbers| numbers.len() == NUMBERS);
        let Some(numbers) = numbers else {
            return Err(format!("`{line}` is not a sample"));
        };
        let mut next = numbers.into_iter();
        let mut take = || next.next().unwrap_or_default();
        let (cell, times) = (take(), take());
        let sample = Sample {
            value: take(),
            work: Counts::from_array(std::array::from_fn(|_| take())),
            parties: Counts::from_array(std::array::from_fn(|_| take())),
            path: Counts::from_array(std::array::from_fn(|_| take())),
            exits: std::array::from_fn(|_| take()),
            halted: take() != 0,
            unclear: take() != 0,
        };
        *samples.entry((cell, sample)).or_default() += times;
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        Sample {
            value: 10,
            work: Counts {
                levels: [0, 6, 4, 0],
                classes: [3, 1, 0, 0],
            },
            parties: Counts {
                levels: [0, 6, 2, 0],
                classes: [2, 1, 0, 0],
            },
            path: Counts {
                levels: [0, 5, 2, 0],
                classes: [1, 1, 0, 0],
            },
            exits: [0, 0, 1, 1, 0, 0, 0, 0, 0],
            halted: false,
            unclear: false,
        }
    }

    #[test]
    fn lines_are_read_back() {
        let samples = Samples::from([((3, sample()), 500), ((4, Sample::default()), 1)]);
        let text = to_text(&samples);
        assert_eq!(from_text(&text), Ok(samples));
        for damaged in [
            "",
            &text[..text.len() - 5],
            &text.replace("500", "x"),
            &text.replacen("500 ", "", 1),
        ] {
            assert!(from_text(damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn what_does_not_add_up_is_an_error() {
        let good = sample();
        assert_eq!((good.check(), good.skipped()), (Ok(()), Ok(0)));
        let skips = Sample {
            value: 1000,
            halted: true,
            ..good
        };
        assert_eq!(skips.skipped(), Ok(990));
        let planted = [
            Sample { value: 9, ..good },
            // Nothing in this sample explains why the counter advanced so far.
            Sample { value: 11, ..good },
            Sample {
                parties: Counts {
                    levels: [0, 7, 2, 0],
                    ..good.parties
                },
                ..good
            },
            Sample {
                path: Counts {
                    levels: [0, 5, 5, 0],
                    ..good.path
                },
                ..good
            },
            Sample {
                path: Counts {
                    classes: [1, 1, 1, 0],
                    ..good.path
                },
                ..good
            },
            Sample {
                work: Counts {
                    classes: [9, 2, 0, 0],
                    ..good.work
                },
                ..good
            },
        ];
        for one in planted {
            assert!(one.check().is_err(), "{one:?}");
        }
    }
}
