// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the text file next to a boot image, which configures a run without a build: it contains
//! boot arguments, and people can edit it.
//!
//! ```text
//! # What is measured; `cargo xtask run --help` says what there is.
//! rouse.workload=pingpong rouse.wait=wfi,poll-wfi
//! rouse.trap=all      # this too
//! ```
//!
//! The words of all lines, in their order, are the boot arguments. Spaces, tabs and line ends
//! separate words. A `#` at the start of a word begins a comment, which goes to the end of its
//! line. Everything, including comments, must be printable ASCII, so that a file of another kind or
//! encoding is rejected and not partly obeyed. Lines end with `\n` or `\r\n`.
//!
//! The crate touches no register and allocates nothing.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

use core::fmt;

/// The path of the file on the EFI system partition, in the syntax of UEFI.
pub const PATH: &str = r"\ROUSE.TXT";

/// The maximum size of a file in bytes.
pub const LIMIT: usize = 4096;

/// Reads a file's words into `room`, separated by single spaces. A `room` of [`LIMIT`] bytes is
/// always enough.
///
/// # Errors
/// Returns an [`Error`] that shows which byte of the file is wrong, and the remedy.
pub fn parse<'a>(file: &[u8], room: &'a mut [u8]) -> Result<&'a str, Error> {
    let mut place = Place { line: 1, column: 1 };
    let mut words = Words { room, length: 0 };
    let mut at = At::Gap;
    for (index, &byte) in file.iter().enumerate() {
        let wrong = |defect| Error { place, defect };
        if index == LIMIT {
            return Err(wrong(Defect::TooLong));
        }
        let ends_line = byte == b'\n' || (byte == b'\r' && file.get(index + 1) == Some(&b'\n'));
        at = match (at, byte) {
            _ if ends_line => At::Gap,
            (_, byte) if !matches!(byte, b' '..=b'~' | b'\t') => {
                return Err(wrong(Defect::Byte(byte)));
            }
            (At::Comment, _) | (At::Gap, b'#') => At::Comment,
            (_, b' ' | b'\t') => At::Gap,
            (at, byte) => {
                let put = words.add_byte(at == At::Gap, byte);
                put.ok_or(wrong(Defect::NoRoom))?;
                At::Word
            }
        };
        place = place.after_byte(byte);
    }
    Ok(words.into_text())
}

/// The part of a line that the parser has reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Gap,
    Word,
    Comment,
}

/// The words that were read so far.
struct Words<'a> {
    room: &'a mut [u8],
    length: usize,
}

impl<'a> Words<'a> {
    /// Adds a byte; `first` tells whether it begins a word. Returns `None` if the buffer is full.
    fn add_byte(&mut self, first: bool, byte: u8) -> Option<()> {
        if first && self.length > 0 {
            self.push_byte(b' ')?;
        }
        self.push_byte(byte)
    }

    fn push_byte(&mut self, byte: u8) -> Option<()> {
        *self.room.get_mut(self.length)? = byte;
        self.length += 1;
        Some(())
    }

    fn into_text(self) -> &'a str {
        // Only ASCII was added, which is valid UTF-8.
        core::str::from_utf8(&self.room[..self.length]).unwrap_or_default()
    }
}

/// A position in the file, numbered as in editors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the byte in the line, from 1.
    pub column: usize,
}

impl Place {
    fn after_byte(self, byte: u8) -> Self {
        match byte {
            b'\n' => Self {
                line: self.line + 1,
                column: 1,
            },
            _ => Self {
                column: self.column + 1,
                ..self
            },
        }
    }
}

/// The defect of a file, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The position of the invalid byte.
    pub place: Place,
    /// The defect of the byte.
    pub defect: Defect,
}

/// The defect of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The byte is not printable ASCII.
    Byte(u8),
    /// The byte is beyond the maximum size of a file.
    TooLong,
    /// The caller's buffer is full before the byte.
    NoRoom,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(f, "line {line}, column {column}: ")?;
        match self.defect {
            Defect::Byte(byte) => write!(
                f,
                "byte {byte:#04x}; use printable ASCII, spaces, tabs and line ends"
            ),
            Defect::TooLong => write!(
                f,
                "the file goes on after {LIMIT} bytes; shorten it to that"
            ),
            Defect::NoRoom => write!(f, "no room for more boot arguments; shorten the file"),
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(file: &[u8]) -> Result<String, Error> {
        parse(file, &mut [0; LIMIT]).map(str::to_owned)
    }

    fn error_text(file: &[u8]) -> String {
        read(file).unwrap_err().to_string()
    }

    #[test]
    fn lines_are_joined_and_comments_left_out() {
        let file = b"# one\n\n a=1\tb=2  # two # three\r\n  #\r\nc=#3\n";
        assert_eq!(read(file).unwrap(), "a=1 b=2 c=#3");
        assert_eq!(read(b"").unwrap(), "");
        assert_eq!(read(b"# only this").unwrap(), "");
        assert_eq!(read(b"last").unwrap(), "last");
    }

    #[test]
    fn a_wrong_byte_is_named_with_its_place() {
        assert!(error_text(b"a\nb \xe4").starts_with("line 2, column 3: byte 0xe4;"));
        assert!(error_text(b"# \x00").starts_with("line 1, column 3: byte 0x00;"));
        // A carriage return alone does not end a line.
        assert!(error_text(b"a\rb\n").starts_with("line 1, column 2: byte 0x0d;"));
        assert!(error_text(b"a\r").starts_with("line 1, column 2: byte 0x0d;"));
        assert!(error_text(b"\xef\xbb\xbfa").starts_with("line 1, column 1: byte 0xef;"));
    }

    #[test]
    fn a_file_has_a_greatest_length() {
        let mut file = [b'x'; LIMIT + 1];
        assert!(error_text(&file).starts_with("line 1, column 4097: "));
        assert_eq!(read(&file[..LIMIT]).unwrap().len(), LIMIT);
        file[LIMIT - 1] = b'\n';
        assert!(error_text(&file).starts_with("line 2, column 1: "));
    }

    #[test]
    fn too_little_room_is_no_panic() {
        let error = parse(b"a b", &mut [0; 2]).unwrap_err();
        assert_eq!(error.defect, Defect::NoRoom);
        assert_eq!(parse(b"a b", &mut [0; 3]), Ok("a b"));
    }

    proptest! {
        #[test]
        fn whatever_the_file_it_ends_with_words_or_a_place_in_it(file: Vec<u8>) {
            match read(&file) {
                Ok(text) => {
                    prop_assert!(text.len() <= file.len());
                    // If the output is read as a file, the result is the same.
                    prop_assert_eq!(read(text.as_bytes()).unwrap(), text);
                }
                Err(error) => {
                    let lines: Vec<&[u8]> = file.split(|&byte| byte == b'\n').collect();
                    let line = lines[error.place.line - 1];
                    // The end of the line counts as its last byte.
                    prop_assert!(error.place.column <= line.len() + 1);
                }
            }
        }

        #[test]
        fn words_come_out_in_order(
            words in prop::collection::vec("[!\"$-~][!-~]{0,9}", 0..20),
            gaps in prop::collection::vec("[ \t\n]|\r\n|  #[ -~]{0,9}\n", 20),
        ) {
            let file: String = words.iter().zip(&gaps).map(|(word, gap)| format!("{word}{gap}")).collect();
            prop_assert_eq!(read(file.as_bytes()).unwrap(), words.join(" "));
        }
    }
}
