// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits a stream of bytes into lines.

use std::mem;

/// The length of the longest line. Longer lines are split.
const LONGEST: usize = 1 << 16;

/// Splits output into lines. A line ends at a line feed, or at a carriage return after which the next character would
/// overwrite the line. So each state of a progress line is a line here.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// Whether a carriage return has arrived.
    returned: bool,
}

impl Lines {
    /// Adds a byte. Returns the line that ended before the byte or with it.
    pub fn push(&mut self, byte: u8) -> Option<String> {
        let line = match byte {
            b'\n' => return Some(self.end_line()),
            b'\r' => {
                self.returned = !self.begun.is_empty();
                return None;
            }
            _ => (self.returned || self.begun.len() == LONGEST).then(|| self.end_line()),
        };
        self.begun.push(byte);
        line
    }

    /// Returns the complete characters of the unfinished line.
    pub fn unfinished_line(&self) -> &str {
        let whole = match str::from_utf8(&self.begun) {
            Ok(text) => return text,
            // Bytes that are not UTF-8 are handled when the line ends.
            Err(error) => &self.begun[..error.valid_up_to()],
        };
        str::from_utf8(whole).unwrap_or_default()
    }

    /// Ends the unfinished line, if any, at the end of the stream.
    pub fn last(&mut self) -> Option<String> {
        (!self.begun.is_empty()).then(|| self.end_line())
    }

    fn end_line(&mut self) -> String {
        self.returned = false;
        String::from_utf8_lossy(&mem::take(&mut self.begun)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> (Vec<String>, String) {
        let mut lines = Lines::default();
        let ended = text.iter().filter_map(|&byte| lines.push(byte)).collect();
        (ended, lines.unfinished_line().to_owned())
    }

    #[test]
    fn lines_end_at_either_end_and_once() {
        for (text, ended, begun) in [
            ("a\nb\r\nc\r\r\nd", vec!["a", "b", "c"], "d"),
            ("\n\r\n\n", vec!["", "", ""], ""),
            (
                "10%\r20%\r30%\rdone\n",
                vec!["10%", "20%", "30%", "done"],
                "",
            ),
            ("10%\r", vec![], "10%"),
            ("a\n\rb\n\r", vec!["a", "b"], ""),
            ("login: ", vec![], "login: "),
        ] {
            let expected = (ended.into_iter().map(String::from).collect(), begun.into());
            assert_eq!(lines(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn what_has_begun_is_whole_characters_and_the_rest_comes_at_the_end() {
        assert_eq!(lines(b"a\xc3"), (vec![], "a".into()));
        assert_eq!(lines(b"a\xc3\xa4"), (vec![], "a\u{e4}".into()));
        assert_eq!(lines(b"a\xff b"), (vec![], "a".into()));
        assert_eq!(
            lines(b"a\xff b\n"),
            (vec!["a\u{fffd} b".into()], String::new())
        );
        let mut cut = Lines::default();
        assert_eq!(
            (cut.push(0xc3), cut.last()),
            (None, Some("\u{fffd}".into()))
        );
        assert_eq!(cut.last(), None);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let (ended, begun) = lines(&[b'x'; 2 * LONGEST + 1]);
        assert_eq!(ended.len(), 2);
        assert_eq!(begun, "x");
    }
}
