// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes the marks of samples in a user-space program on Linux.

use crate::mark::lower_byte;

/// Upper byte of the immediate of every such mark.
const MAGIC: u16 = 0x5300;

/// A mark. The mark is outside its sample: before the sample's first clock read or after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SampleMark {
    /// The next clock read begins a sample.
    Begin,
    /// The last clock read ended a sample.
    End,
    /// The last sample is counted.
    Record,
    /// The following samples belong to the cell whose number is in x0.
    Cell,
}

impl SampleMark {
    /// All marks.
    pub const ALL: [Self; 4] = [Self::Begin, Self::End, Self::Record, Self::Cell];

    /// Returns the immediate of the instruction.
    #[must_use]
    pub const fn immediate(self) -> u16 {
        MAGIC | self as u16
    }

    /// Returns the mark that `instruction` encodes, if any.
    #[must_use]
    pub fn decode(instruction: u32) -> Option<Self> {
        let byte = lower_byte(instruction, MAGIC)?;
        Self::ALL.get(usize::from(byte)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::encode_movz;
    use crate::{Edge, Mark, Path};

    #[test]
    fn marks_of_samples_and_of_paths_are_distinct() {
        for mark in SampleMark::ALL {
            let instruction = encode_movz(mark.immediate());
            assert_eq!(SampleMark::decode(instruction), Some(mark));
            assert_eq!(SampleMark::decode(instruction ^ 1 << 30), None);
            assert_eq!(SampleMark::decode(instruction & !1), None);
            assert_eq!(Mark::decode(instruction), None);
        }
        for &path in Path::ALL {
            let mark = Mark {
                path,
                edge: Edge::End,
            };
            assert_eq!(SampleMark::decode(mark.instruction()), None);
        }
        assert_eq!(SampleMark::decode(encode_movz(0x5304)), None);
    }
}
