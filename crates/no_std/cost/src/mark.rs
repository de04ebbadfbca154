// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes and decodes the marks.

use crate::Path;

/// The instruction MOVZ XZR, #0.
const MOVZ: u32 = 0xd280_001f;
/// Mask of the instruction's immediate.
const IMMEDIATE: u32 = 0xffff << 5;
/// Upper byte of every mark's immediate.
const MAGIC: u16 = 0x5200;

/// Returns the instruction MOVZ XZR with `immediate`.
pub(crate) const fn encode_movz(immediate: u16) -> u32 {
    MOVZ | (immediate as u32) << 5
}

/// Returns the lower byte of the immediate if `instruction` is MOVZ XZR with upper byte `magic`.
pub(crate) const fn lower_byte(instruction: u32, magic: u16) -> Option<u8> {
    let immediate = (instruction >> 5) as u16;
    if instruction & !IMMEDIATE == MOVZ && immediate & 0xff00 == magic {
        Some(immediate as u8)
    } else {
        None
    }
}

/// One end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The path begins directly after the mark.
    Begin,
    /// The path has ended directly before the mark.
    End,
}

/// A mark, which delimits a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The path that the mark delimits.
    pub path: Path,
    /// The end of the path at which the mark is.
    pub edge: Edge,
}

impl Mark {
    /// Returns the immediate of the instruction.
    #[must_use]
    pub const fn immediate(self) -> u16 {
        MAGIC | (self.path as u16) << 1 | matches!(self.edge, Edge::End) as u16
    }

    /// Returns the instruction that encodes the mark.
    #[must_use]
    pub const fn instruction(self) -> u32 {
        encode_movz(self.immediate())
    }

    /// Returns the mark that `instruction` encodes, if any.
    #[must_use]
    pub fn decode(instruction: u32) -> Option<Self> {
        let byte = lower_byte(instruction, MAGIC)?;
        let path = *Path::ALL.get(usize::from(byte) >> 1)?;
        let edge = if byte & 1 == 0 {
            Edge::Begin
        } else {
            Edge::End
        };
        Some(Self { path, edge })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_recognised_and_nothing_else() {
        for &path in Path::ALL {
            for edge in [Edge::Begin, Edge::End] {
                let mark = Mark { path, edge };
                assert_eq!(Mark::decode(mark.instruction()), Some(mark));
                // These bits change the register, the immediate, and the opcode to MOVK.
                for other in [1 << 0, 1 << 20, 1 << 29] {
                    assert_eq!(Mark::decode(mark.instruction() ^ other), None);
                }
            }
        }
        let after = Path::ALL.len() as u32;
        assert_eq!(
            Mark::decode(MOVZ | u32::from(MAGIC) << 5 | after << 6),
            None
        );
    }

    #[test]
    fn the_instruction_is_what_an_assembler_makes_of_it() {
        let mark = Mark {
            path: Path::Hypercall,
            edge: Edge::Begin,
        };
        // This is `movz xzr, #0x5200`.
        assert_eq!(mark.instruction(), 0xd28a_401f);
    }
}
