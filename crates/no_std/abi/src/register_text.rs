// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packs text that is passed in registers.

use core::fmt::{self, Write};

/// Text with up to 8 bytes per register, in the memory order of a little-endian machine. A 0 ends
/// the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<const REGISTERS: usize>(pub [u64; REGISTERS]);

/// Words that describe a cell.
pub type CellWords = Words<8>;
/// Text for the console.
pub type ConsoleWords = Words<16>;

/// Bytes that a register holds.
const BYTES: usize = 8;

impl<const REGISTERS: usize> Words<REGISTERS> {
    /// Number of registers that hold the text.
    pub const REGISTERS: usize = REGISTERS;
    /// Bytes that the registers can hold.
    pub const ROOM: usize = REGISTERS * BYTES;

    /// Stores `byte` at index `at`, which must be unused and below [`ROOM`](Self::ROOM).
    pub fn put(&mut self, at: usize, byte: u8) {
        self.0[at / BYTES] |= u64::from(byte) << (at % BYTES * 8);
    }

    /// Returns the bytes of the text.
    pub fn bytes(&self) -> impl Iterator<Item = u8> {
        let bytes = self.0.iter().flat_map(|word| word.to_le_bytes());
        bytes.take_while(|byte| *byte != 0)
    }
}

/// Starts without text.
impl<const REGISTERS: usize> Default for Words<REGISTERS> {
    fn default() -> Self {
        Self([0; REGISTERS])
    }
}

/// Appends to the text; cuts off what does not fit.
impl<const REGISTERS: usize> Write for Words<REGISTERS> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes().count()..Self::ROOM;
        for (at, byte) in room.zip(text.bytes()) {
            self.put(at, byte);
        }
        Ok(())
    }
}

/// Prints a guest's arbitrary text on one line, with each `@` escaped: no parser takes it for a record.
impl<const REGISTERS: usize> fmt::Display for Words<REGISTERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().try_for_each(|byte| match byte {
            b'@' => f.write_str("\\x40"),
            _ => write!(f, "{}", byte.escape_ascii()),
        })
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
    fn every_byte_of_a_full_console_text_comes_back() {
        let mut words = ConsoleWords::default();
        let text: [u8; ConsoleWords::ROOM] = core::array::from_fn(|at| 1 + at as u8);
        for (at, &byte) in text.iter().enumerate() {
            words.put(at, byte);
        }
        assert!(words.bytes().eq(text));
        assert_eq!(words.0[15].to_le_bytes(), text[120..]);
    }

    #[test]
    fn a_guest_can_write_no_line_of_its_own() {
        let hostile: CellWords = Words([u64::from_le_bytes(*b"a\nrouse:"); 8]);
        assert!(hostile.to_string().starts_with("a\\nrouse:a"));
        assert!(Words([u64::MAX; 8]).to_string().is_ascii());
        let record: CellWords = Words([u64::from_le_bytes(*b"@r1 0 en"); 8]);
        assert!(record.to_string().starts_with("\\x40r1 0 en"));
    }
}
