// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows text of foreign origin safely: text from a guest, a file, a log or the environment.
//!
//! | shown | by | how it is changed |
//! |---|---|---|
//! | to people | [`Escaped`] | characters that act on a terminal or are invisible are written as `\u{1b}` |
//! | within a sentence | [`Quoted`] | likewise, and long text is cut: both ends and the length are left |
//! | in a spreadsheet | [`cell`] | text that would be computed as a formula gets a `'` in front |

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;
use core::fmt::{self, Display, Write};

/// The length in characters to which [`Quoted`] cuts a text.
pub const QUOTED: usize = 200;

/// Characters that are not controls, but are invisible or change the shape of other characters (Unicode 16.0, general
/// categories Cf, Zl and Zp; also the tags and the Hangul fillers, which are invisible).
const HIDDEN: [(char, char); 26] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
    // Characters for private use, which every terminal shows differently.
    ('\u{e000}', '\u{f8ff}'),
    ('\u{f0000}', '\u{ffffd}'),
    ('\u{100000}', '\u{10fffd}'),
];

/// Returns whether a terminal acts on a character, or does not show it: controls (C0, DEL, C1), line separators,
/// controls of the writing direction, and characters without width.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || HIDDEN
            .iter()
            .any(|&(first, last)| (first..=last).contains(&c))
}

/// Writes `text` and escapes its hidden characters (`\u{1b}`), except the characters that `own` accepts.
///
/// # Errors
/// If writing to `to` fails.
pub fn escape(to: &mut impl Write, text: &str, own: impl Fn(char) -> bool) -> fmt::Result {
    text.chars()
        .try_for_each(|c| match is_hidden(c) && !own(c) {
            true => write!(to, "{}", c.escape_unicode()),
            false => to.write_char(c),
        })
}

/// A text with its hidden characters escaped.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'t>(pub &'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, |_| false)
    }
}

/// A text with its hidden characters escaped, cut to the length that a reader needs to recognize it.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'t> {
    text: &'t str,
    most: usize,
}

impl<'t> Quoted<'t> {
    /// Creates a quote of a word or a line.
    #[must_use]
    pub const fn new(text: &'t str) -> Self {
        Self::up_to(QUOTED, text)
    }

    /// Creates a quote of at most `most` characters.
    #[must_use]
    pub const fn up_to(most: usize, text: &'t str) -> Self {
        Self { text, most }
    }
}

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = Escaped(self.text).to_string();
        let shown_length = shown.chars().count();
        if shown_length <= self.most {
            return f.write_str(&shown);
        }
        // The end is kept, because it often names the place or the remedy.
        let end = self.most / 4;
        let at = |place: usize| {
            let mut places = shown.char_indices().map(|(at, _)| at);
            places.nth(place).unwrap_or(shown.len())
        };
        let (begin, end) = (
            &shown[..at(self.most - end)],
            &shown[at(shown_length - end)..],
        );
        let length = self.text.chars().count();
        write!(f, "{begin}...{end} ({length} characters)")
    }
}

/// Returns a text as a cell that a spreadsheet does not compute (OWASP, CSV Injection).
#[must_use]
pub fn cell(text: &str) -> Cow<'_, str> {
    // A dash alone means "no value".
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text != "-" {
        true => format!("'{text}").into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use core::ops::RangeInclusive;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_hidden_is_named() {
        for (text, shown) in [
            ("a\u{1b}]0;x\u{7}", "a\\u{1b}]0;x\\u{7}"),
            ("a\r\n\tb\u{7f}\u{9b}", "a\\u{d}\\u{a}\\u{9}b\\u{7f}\\u{9b}"),
            (
                "\u{202e}\u{2066}\u{200b}\u{2028}",
                "\\u{202e}\\u{2066}\\u{200b}\\u{2028}",
            ),
            ("\u{feff}\u{ad}\u{e0041}", "\\u{feff}\\u{ad}\\u{e0041}"),
            ("ä µ±·─ 漢 e\u{301}", "ä µ±·─ 漢 e\u{301}"),
        ] {
            assert_eq!(Escaped(text).to_string(), shown);
        }
    }

    /// The standard library knows which characters are unprintable. The other characters in the list have no shape,
    /// although Unicode classifies them as letters or marks.
    #[test]
    fn what_shows_is_not_hidden() {
        const SHAPELESS: [RangeInclusive<char>; 6] = [
            '\u{115f}'..='\u{1160}',
            '\u{180e}'..='\u{180e}',
            '\u{3164}'..='\u{3164}',
            '\u{fe00}'..='\u{fe0f}',
            '\u{ffa0}'..='\u{ffa0}',
            '\u{e0000}'..='\u{e0fff}',
        ];
        for c in '\0'..=char::MAX {
            let shows = !c.is_control() && !format!("a{c}").escape_debug().any(|c| c == '\\');
            let shapeless = SHAPELESS.iter().any(|range| range.contains(&c));
            assert!(!shows || shapeless || !is_hidden(c) || c == '\\', "{c:?}");
        }
    }

    #[test]
    fn what_is_quoted_keeps_both_ends_and_its_length() {
        let text = format!("begin{}end", "x".repeat(100_000));
        let quoted = Quoted::new(&text).to_string();
        assert!(quoted.starts_with("beginx") && quoted.ends_with("xend (100008 characters)"));
        assert!(quoted.len() < QUOTED + 30, "{quoted}");
        assert_eq!(Quoted::up_to(4, "äöüß").to_string(), "äöüß");
        assert_eq!(
            Quoted::up_to(4, "äöüßx").to_string(),
            "äöü...x (5 characters)"
        );
    }

    #[test]
    fn nothing_is_computed() {
        for text in ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"] {
            assert_eq!(cell(text), format!("'{text}"));
        }
        for text in ["", "-", "0x0", "a=b", "insns"] {
            assert_eq!(cell(text), text);
        }
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in any::<String>(), most in 1usize..300) {
            prop_assert!(!Escaped(&text).to_string().contains(is_hidden));
            let quoted = Quoted::up_to(most, &text).to_string();
            prop_assert!(!quoted.contains(is_hidden));
            prop_assert!(quoted.chars().count() <= most + 40);
        }
    }
}
