// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guards a console that we use against the text of a guest that is not ours.
//!
//! A line of EL2 or of our guest contains [`OURS`] or [`MARK`]. Code that passes on a foreign
//! guest's text breaks each such mark, wherever it occurs, with a backslash before its last
//! character. So a reader finds only our own marks, on any console and in any log of it.

use crate::MARK;

/// Prefix of lines from EL2 or from our guest that are not records.
pub const OURS: &str = "rouse: ";
/// Character that breaks a mark.
pub const BREAK: u8 = b'\\';

/// The author of a guest's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Our guest, whose marks all count.
    #[default]
    Ours,
    /// Another kernel on which our program measures; only its records count.
    Program,
    /// Another guest: none of its marks count.
    Foreign,
}

impl Source {
    /// All sources.
    pub const ALL: [Self; 3] = [Self::Ours, Self::Program, Self::Foreign];

    /// Returns the word for the source.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Program => "program",
            Self::Foreign => "foreign",
        }
    }

    /// Returns the number of the source.
    #[must_use]
    pub const fn encode(self) -> u64 {
        self as u64
    }

    /// Returns the source with number `number`; an unknown number means a source that is not trusted.
    #[must_use]
    pub fn decode(number: u64) -> Self {
        let known = usize::try_from(number).ok();
        *known
            .and_then(|number| Self::ALL.get(number))
            .unwrap_or(&Self::Foreign)
    }

    /// Returns the marks that must not pass: none, one or both.
    const fn forbidden_marks(self) -> &'static [&'static str] {
        match self {
            Self::Ours => &[],
            Self::Program => &[OURS],
            Self::Foreign => &[OURS, MARK],
        }
    }
}

/// Breaks marks in the text of one source, byte by byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    source: Source,
    /// For each mark, the number of its leading characters that end the text so far.
    seen: [usize; 2],
}

impl Guard {
    /// Creates a guard for text from `source`.
    #[must_use]
    pub const fn new(source: Source) -> Self {
        Self {
            source,
            seen: [0; 2],
        }
    }

    /// Passes on one byte; returns the byte to write before it, if any.
    #[must_use]
    pub fn pass(&mut self, byte: u8) -> Option<u8> {
        // A reader may drop a control character, and thus join the text around it.
        if byte.is_ascii_control() && byte != b'\n' {
            return None;
        }
        let mut whole = false;
        for (mark, seen) in self.source.forbidden_marks().iter().zip(&mut self.seen) {
            let mark = mark.as_bytes();
            // No mark contains its first character twice, so after a mismatch, only this byte can
            // begin another match.
            *seen = match byte {
                _ if byte == mark[*seen] => *seen + 1,
                _ => usize::from(byte == mark[0]),
            };
            if *seen == mark.len() {
                *seen = 0;
                whole = true;
            }
        }
        whole.then_some(BREAK)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::Line;
    use proptest::prelude::*;

    fn passed(source: Source, text: &[u8]) -> std::vec::Vec<u8> {
        let mut guard = Guard::new(source);
        let bytes = text.iter();
        bytes
            .flat_map(|&byte| guard.pass(byte).into_iter().chain([byte]))
            .collect()
    }

    fn text(source: Source, text: &str) -> std::string::String {
        std::string::String::from_utf8(passed(source, text.as_bytes())).unwrap()
    }

    #[test]
    fn a_mark_is_broken_wherever_it_stands() {
        for (from, foreign, program) in [
            (
                "rouse: exit status 0",
                "rouse:\\ exit status 0",
                "rouse:\\ exit status 0",
            ),
            (
                "xrrouse: a rouse: b",
                "xrrouse:\\ a rouse:\\ b",
                "xrrouse:\\ a rouse:\\ b",
            ),
            ("rouse:\0 x", "rouse:\0\\ x", "rouse:\0\\ x"),
            ("rouse:\n x", "rouse:\n x", "rouse:\n x"),
            ("rousing rouse:x", "rousing rouse:x", "rousing rouse:x"),
            ("@@r1 0 end #00", "@@r1\\ 0 end #00", "@@r1 0 end #00"),
            (
                "rouse@r1 : @r1\u{7f} ",
                "rouse@r1\\ : @r1\u{7f}\\ ",
                "rouse@r1 : @r1\u{7f} ",
            ),
        ] {
            assert_eq!(text(Source::Foreign, from), foreign);
            assert_eq!(text(Source::Program, from), program);
            assert_eq!(text(Source::Ours, from), from);
        }
    }

    #[test]
    fn marks_do_not_begin_twice() {
        for mark in [OURS, MARK] {
            assert_eq!(mark.matches(mark.chars().next().unwrap()).count(), 1);
        }
    }

    #[test]
    fn a_source_reads_back_and_an_unknown_one_is_not_trusted() {
        for source in Source::ALL {
            assert_eq!(Source::decode(source.encode()), source);
        }
        assert_eq!(Source::decode(3), Source::Foreign);
        assert_eq!(Source::decode(u64::MAX), Source::Foreign);
    }

    /// Generates the pieces that marks consist of, and any other text.
    fn pieces() -> impl Strategy<Value = std::vec::Vec<u8>> {
        let piece = prop_oneof![
            Just(b"rouse:".to_vec()),
            Just(b"rouse: ".to_vec()),
            Just(b"@r1".to_vec()),
            Just(b" ".to_vec()),
            Just(Line::new(0, "end").finish().unwrap().as_bytes().to_vec()),
            proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'r'), Just(b'\n')], 0..4),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn nothing_foreign_has_a_mark_and_nothing_of_it_is_lost(bytes in pieces()) {
            let passed = passed(Source::Foreign, &bytes);
            for line in passed.split(|&byte| byte == b'\n') {
                // A mark must not appear even if a reader leaves out control characters.
                let printed = line.iter().copied().filter(|byte| !byte.is_ascii_control());
                for line in [line.to_vec(), printed.collect()] {
                    let line = std::string::String::from_utf8_lossy(&line).into_owned();
                    prop_assert!(!line.contains(OURS) && !line.contains(MARK), "{}", line);
                }
            }
            let mut rest = bytes.iter();
            let mut next = rest.next();
            for byte in &passed {
                if next == Some(byte) {
                    next = rest.next();
                } else {
                    prop_assert_eq!(*byte, BREAK);
                }
            }
            prop_assert_eq!(next, None);
        }

        #[test]
        fn how_the_text_is_cut_does_not_matter(bytes in pieces(), at in 0usize..200) {
            let at = at.min(bytes.len());
            let mut guard = Guard::new(Source::Foreign);
            let mut pass = |part: &[u8]| -> std::vec::Vec<u8> {
                part.iter().flat_map(|&byte| guard.pass(byte).into_iter().chain([byte])).collect()
            };
            let both = [pass(&bytes[..at]), pass(&bytes[at..])].concat();
            prop_assert_eq!(both, passed(Source::Foreign, &bytes));
        }
    }
}
