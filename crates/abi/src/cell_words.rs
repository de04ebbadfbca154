// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a cell is, in words that go through registers.

use core::fmt::{self, Write};

/// Text of at most 64 bytes, in the order of memory of a little-endian machine, filled up with 0. What
/// is longer is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellWords(pub [u64; Self::REGISTERS]);

impl CellWords {
    /// Registers that hold it.
    pub const REGISTERS: usize = 8;
    /// Bytes of a register.
    const BYTES: usize = 8;

    /// As long as the text is.
    fn len(&self) -> usize {
        self.bytes().count()
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        let bytes = self.0.iter().flat_map(|word| word.to_le_bytes());
        bytes.take_while(|byte| *byte != 0)
    }
}

/// Adds to the text, as far as there is room.
impl Write for CellWords {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.len()..Self::REGISTERS * Self::BYTES;
        for (at, byte) in room.zip(text.bytes()) {
            self.0[at / Self::BYTES] |= u64::from(byte) << (at % Self::BYTES * 8);
        }
        Ok(())
    }
}

/// Whatever a guest has put there, on one line.
impl fmt::Display for CellWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes()
            .try_for_each(|byte| write!(f, "{}", byte.escape_ascii()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_long_ones_are_cut_off() {
        let mut words = CellWords::default();
        assert_eq!(words.to_string(), "");
        write!(words, "pingpong").unwrap();
        assert_eq!(words.0[..2], [u64::from_le_bytes(*b"pingpong"), 0]);
        write!(words, " governor:menu inject").unwrap();
        assert_eq!(words.to_string(), "pingpong governor:menu inject");
        write!(words, "{}", "x".repeat(100)).unwrap();
        assert_eq!(words.to_string().len(), 64);
    }

    #[test]
    fn a_guest_can_write_no_line_of_its_own() {
        let hostile = CellWords([u64::from_le_bytes(*b"a\nrouse:"); 8]);
        assert!(hostile.to_string().starts_with("a\\nrouse:a"));
        assert!(CellWords([u64::MAX; 8]).to_string().is_ascii());
    }
}
