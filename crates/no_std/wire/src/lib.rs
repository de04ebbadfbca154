// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes and reads the record lines with which measurements leave the guest.
//!
//! ```text
//! @r1 17 stat id=3 name=total count=2000 min=540 #0c5f2a91
//! ```
//!
//! A line contains the format's version, a sequence number that grows by one from line to line, a
//! kind, fields, and the CRC-32 of everything before ` #`. So a reader notices a console that drops
//! or mixes characters, and a missing line leaves a gap in the sequence. Values have no spaces:
//! characters that must not appear in a line are written as `%xx`. `docs/records.md` lists the
//! kinds.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod foreign;

pub use foreign::{BREAK, Guard, OURS, Source};

use core::fmt::{self, Display, Write};

use arrayvec::ArrayString;
use crc::{CRC_32_ISO_HDLC, Crc};

/// Prefix of every line in this version of the format.
pub const MARK: &str = "@r1 ";
/// Maximum length of a line in bytes, without its line end.
pub const MAX_LINE: usize = 240;
/// Length of ` #xxxxxxxx` in bytes.
const TRAILER: usize = 10;

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// A line being written.
#[derive(Clone, Debug)]
pub struct Line {
    text: ArrayString<MAX_LINE>,
    overflow: bool,
}

impl Line {
    /// Starts line number `seq` of kind `kind`.
    #[must_use]
    pub fn new(seq: u64, kind: impl Display) -> Self {
        let mut line = Self {
            text: ArrayString::new(),
            overflow: false,
        };
        line.append_text(format_args!("{MARK}{seq} {kind}"));
        line
    }

    /// Adds a field; its value is escaped as needed.
    #[must_use]
    pub fn field(mut self, key: &str, value: impl Display) -> Self {
        self.append_text(format_args!(" {key}="));
        let escaped = write!(Escape(&mut self), "{value}");
        self.overflow |= escaped.is_err();
        self
    }

    /// Returns the number of bytes that fields can still take.
    #[must_use]
    pub fn room(&self) -> usize {
        self.text.remaining_capacity().saturating_sub(TRAILER)
    }

    /// Returns the complete line without a line end, or `None` if it became too long.
    #[must_use]
    pub fn finish(mut self) -> Option<ArrayString<MAX_LINE>> {
        let crc = CRC.checksum(self.text.as_bytes());
        let closed = write!(self.text, " #{crc:08x}");
        (!self.overflow && closed.is_ok()).then_some(self.text)
    }

    fn append_text(&mut self, text: fmt::Arguments<'_>) {
        self.overflow |= self.write_fmt(text).is_err();
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > self.room() {
            return Err(fmt::Error);
        }
        self.text.write_str(text)
    }
}

/// Whether a byte appears unescaped in a value.
const fn is_unescaped(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'%' | b'#' | b'=')
}

/// Whether `word` can name a kind or a field.
fn is_name(word: &str) -> bool {
    let of_name = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.');
    !word.is_empty() && word.bytes().all(of_name)
}

/// Whether `field` is a key and a value as [`Line::field`] writes them.
fn is_field(field: &str) -> bool {
    let is_escaped = |value: &str| value.bytes().all(|byte| is_unescaped(byte) || byte == b'%');
    field
        .split_once('=')
        .is_some_and(|(key, value)| is_name(key) && is_escaped(value))
}

struct Escape<'l>(&'l mut Line);

impl Write for Escape<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().try_for_each(|byte| {
            if is_unescaped(byte) {
                self.0.write_char(char::from(byte))
            } else {
                write!(self.0, "%{byte:02x}")
            }
        })
    }
}

/// The reason why a line is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The line does not contain the mark.
    NotARecord,
    /// The line's checksum is missing or wrong.
    Checksum,
    /// The checksum is right, but the form is wrong: a [`Line`] never has that form.
    Form,
}

/// A record that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Sequence number of the line.
    pub seq: u64,
    /// Kind of the record.
    pub kind: &'a str,
    fields: &'a str,
}

impl<'a> Record<'a> {
    /// Reads a line. Ignores text before the mark, which is other output without a line end, and
    /// text after the checksum.
    ///
    /// # Errors
    /// Returns [`Damage`], which describes the defect.
    pub fn parse(line: &'a str) -> Result<Self, Damage> {
        let start = line.find(MARK).ok_or(Damage::NotARecord)?;
        // No value contains a `#`.
        let (body, crc) = line[start..].split_once(" #").ok_or(Damage::Checksum)?;
        let crc = crc
            .get(..8)
            .filter(|crc| crc.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|crc| u32::from_str_radix(crc, 16).ok())
            .ok_or(Damage::Checksum)?;
        if CRC.checksum(body.as_bytes()) != crc {
            return Err(Damage::Checksum);
        }
        let mut parts = body[MARK.len()..].splitn(3, ' ');
        let seq = parts.next().filter(|seq| !seq.starts_with('+'));
        let kind = parts.next().filter(|kind| is_name(kind));
        let fields = parts.next();
        if !fields.is_none_or(|fields| fields.split(' ').all(is_field)) {
            return Err(Damage::Form);
        }
        Ok(Self {
            seq: seq.and_then(|seq| seq.parse().ok()).ok_or(Damage::Form)?,
            kind: kind.ok_or(Damage::Form)?,
            fields: fields.unwrap_or(""),
        })
    }

    /// Iterates over the fields in order, each as its key and its still escaped value.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.fields
            .split(' ')
            .filter_map(|field| field.split_once('='))
    }

    /// Returns the still escaped value of field `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.fields().find(|field| field.0 == key).map(|f| f.1)
    }

    /// Returns the value of field `key` as a number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    /// Returns the text of field `key`.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<Unescape<'a>> {
        self.get(key).map(Unescape)
    }
}

/// Shows an escaped value as the text that it represents.
#[derive(Clone, Copy, Debug)]
pub struct Unescape<'a>(pub &'a str);

impl Display for Unescape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find('%') {
            f.write_str(&rest[..at])?;
            let code = rest.get(at + 1..at + 3);
            match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
                Some(byte) if byte.is_ascii() => f.write_char(char::from(byte))?,
                // Writers only escape ASCII, so this is damage, which a visible mark shows.
                _ => f.write_char('\u{fffd}')?,
            }
            rest = rest.get(at + 3..).unwrap_or("");
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line() -> String {
        let line = Line::new(17, "stat").field("id", 3).field("why", "a b#%=");
        line.finish().unwrap().to_string()
    }

    #[test]
    fn what_is_written_reads_back() {
        let text = line();
        let record = Record::parse(&text).unwrap();
        assert_eq!((record.seq, record.kind), (17, "stat"));
        assert_eq!(record.number("id"), Some(3));
        assert_eq!(record.text("why").unwrap().to_string(), "a b#%=");
    }

    #[test]
    fn text_in_front_is_ignored_and_none_is_no_record() {
        let text = format!("boot noise {}\r", line());
        assert_eq!(Record::parse(&text).unwrap().seq, 17);
        assert_eq!(Record::parse("hello"), Err(Damage::NotARecord));
    }

    #[test]
    fn text_behind_is_ignored() {
        for behind in ["\r", "rouse: exit status 0", "0", " #12345678"] {
            let text = format!("{}{behind}", line());
            assert_eq!(Record::parse(&text).unwrap().seq, 17, "{behind}");
        }
    }

    #[test]
    fn what_no_line_is_like_is_refused() {
        let parsed = |body: &str| {
            let body = format!("{MARK}{body}");
            let line = format!("{body} #{:08x}", CRC.checksum(body.as_bytes()));
            Record::parse(&line).map(|record| record.fields().count())
        };
        assert_eq!(parsed("1 core-clock sys.a-b=%20 c_d="), Ok(2));
        assert_eq!(parsed("1 end"), Ok(0));
        for body in [
            "1 0  \r#=",
            "1 note \r#=",
            "1 note a=1\t#b=2",
            "1 note a=1  b=2",
            "1 note a=1 ",
            "1 note ",
            "1  a=1",
            "1 ",
            "1",
            "+1 note",
            "1 Note",
            "1 note a",
            "1 note =1",
            "1 note A=1",
            "1 note a%=1",
            "1 note a=b=c",
            "1 note a=\u{e4}",
            "1 note a=\u{1b}",
        ] {
            assert_eq!(parsed(body), Err(Damage::Form), "{body:?}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_refused() {
        let text = "x".repeat(MAX_LINE);
        assert!(Line::new(0, "note").field("text", text).finish().is_none());
    }

    #[test]
    fn a_line_takes_what_it_has_room_for_and_not_a_byte_more() {
        let started = || Line::new(0, "note").field("id", 1);
        let value = "x".repeat(started().room() - " text=".len());
        let full = started().field("text", &value);
        assert_eq!(full.room(), 0);
        assert_eq!(full.finish().unwrap().len(), MAX_LINE);
        let longer = started().field("text", format!("{value}x"));
        assert!(longer.finish().is_none());
    }

    #[test]
    fn a_key_that_does_not_fit_is_not_left_out() {
        let line = Line::new(0, "note");
        let value = "x".repeat(line.room() - " text=".len() - 3);
        let line = line.field("text", value);
        // The value without its key would fit.
        assert_eq!(line.room(), 3);
        assert!(line.field("key", 1).finish().is_none());
    }

    #[test]
    fn what_is_no_escape_of_a_byte_of_ascii_stays_visible() {
        for (escaped, shown) in [
            ("a%20b", "a b"),
            ("%7f", "\u{7f}"),
            ("a%80b", "a\u{fffd}b"),
            ("a%ffb", "a\u{fffd}b"),
            ("a%zzb", "a\u{fffd}b"),
            ("a%2", "a\u{fffd}"),
        ] {
            assert_eq!(Unescape(escaped).to_string(), shown, "{escaped}");
        }
    }

    #[test]
    fn the_checksum_is_the_documented_one() {
        assert_eq!(CRC.checksum(b"123456789"), 0xcbf4_3926);
    }

    proptest! {
        #[test]
        fn no_single_error_passes(at in 0usize..200, byte in any::<u8>()) {
            let mut bytes = line().into_bytes();
            let at = at % bytes.len();
            prop_assume!(bytes[at] != byte);
            bytes[at] = byte;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            // The case of the checksum's digits is the only harmless difference.
            let whole = line();
            if let Ok(record) = Record::parse(&text) {
                prop_assert_eq!(record, Record::parse(&whole).unwrap());
            }
        }

        #[test]
        fn parsing_never_panics(text in ".*") {
            if let Ok(record) = Record::parse(&text) {
                for (_, value) in record.fields() {
                    let _ = Unescape(value).to_string();
                }
            }
        }
    }
}
