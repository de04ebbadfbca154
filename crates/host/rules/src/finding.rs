// SPDX-License-Identifier: MIT OR Apache-2.0
//! A finding is an instruction that breaks a rule, with its address. The program that checks the rules passes findings
//! as lines of text to the program that shows them.

use std::fmt;

/// The position of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The exception level of the instruction.
    pub level: u8,
    /// The address of the instruction.
    pub pc: u64,
}

/// An execution that broke a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: String,
    /// The number that the emulator gives to the CPU that broke the rule.
    pub cpu: u16,
    /// The instruction that has to be changed, or before which another instruction is missing.
    pub place: Place,
    /// Another instruction that is involved.
    pub other: Option<Place>,
    /// Describes how the rule was broken.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { level, pc } = self.place;
        write!(f, "{} {} {level} {pc:#x} ", self.rule, self.cpu)?;
        match self.other {
            Some(Place { level, pc }) => write!(f, "{level} {pc:#x}")?,
            None => f.write_str("- -")?,
        }
        write!(f, " {}", self.what)
    }
}

impl Finding {
    /// Parses a line that [`fmt::Display`] wrote. Returns `None` for any other line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(7, ' ');
        let mut word = || words.next();
        let place = |level: &str, pc: &str| {
            Some(Place {
                level: level.parse().ok()?,
                pc: u64::from_str_radix(pc.strip_prefix("0x")?, 16).ok()?,
            })
        };
        let (rule, cpu) = (word()?.to_owned(), word()?.parse().ok()?);
        let first = place(word()?, word()?)?;
        let other = match (word()?, word()?) {
            ("-", "-") => None,
            (level, pc) => Some(place(level, pc)?),
        };
        Some(Self {
            rule,
            cpu,
            place: first,
            other,
            what: word()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back() {
        let place = Place {
            level: 2,
            pc: 0x4020_1234,
        };
        for other in [None, Some(Place { level: 1, pc: 8 })] {
            let finding = Finding {
                rule: "wait-can-end".into(),
                cpu: 1,
                place,
                other,
                what: "WFI, and no interrupt ends it".into(),
            };
            assert_eq!(Finding::parse(&finding.to_string()), Some(finding));
        }
        for wrong in ["", "x 1 2", "x 1 2 0x1 - 3 y", "x y 2 0x1 - - z"] {
            assert_eq!(Finding::parse(wrong), None);
        }
    }
}
