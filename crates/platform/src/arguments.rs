// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose the boot arguments are. The hypervisor takes out the words that are its
//! own; the guest gets all the others, with the spaces between them as they were.
//!
//! | word | |
//! |---|---|
//! | `rouse.survey` | the hypervisor says what the machine is |
//! | `rouse.uart=...` | the hypervisor's console ([`crate::uart`]) |
//! | `rouse.options` | here the boot arguments begin, where a boot manager may put something in front |
//!
//! `rouse.fault=` is not among them: it asks the hypervisor or the guest to fail,
//! and for some faults of the hypervisor the guest has to say when.

/// Asks for a survey.
pub const SURVEY: &str = "rouse.survey";
/// Names the console.
const UART: &str = "rouse.uart=";
/// Says that the boot arguments begin behind it.
pub const OPTIONS: &str = "rouse.options";

/// Whether the hypervisor takes `word`.
fn is_taken(word: &str) -> bool {
    word == SURVEY || word == OPTIONS || word.starts_with(UART)
}

/// The guest's part of `bootargs`, as pieces to be put one behind the other.
pub fn of_guest(bootargs: &str) -> impl Iterator<Item = &str> + Clone {
    let mut text = bootargs.trim_ascii_end();
    // No spaces are left of words that were taken from the end.
    while let Some(word) = text.split_ascii_whitespace().next_back()
        && is_taken(word)
    {
        text = text[..text.len() - word.len()].trim_ascii_end();
    }
    let pieces = text.split_inclusive(|c: char| c.is_ascii_whitespace());
    pieces.filter(|piece| !is_taken(piece.trim_ascii_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn guests(bootargs: &str) -> String {
        of_guest(bootargs).collect()
    }

    #[test]
    fn the_hypervisors_words_are_taken_out() {
        for (given, left) in [
            ("console=ttyAMA0 panic=1", "console=ttyAMA0 panic=1"),
            (
                "rouse.options a rouse.survey b rouse.uart=pl011,0x9000000",
                "a b",
            ),
            ("rouse.survey", ""),
            ("a rouse.survey  rouse.survey ", "a"),
            ("rouse.surveys rouse.fault=x", "rouse.surveys rouse.fault=x"),
            ("", ""),
        ] {
            assert_eq!(guests(given), left);
        }
    }

    #[test]
    fn spaces_in_a_guests_words_stay() {
        let quoted = r#"dyndbg="file a  +p""#;
        assert_eq!(
            guests(&format!("{quoted} rouse.survey x")),
            format!("{quoted} x")
        );
    }

    proptest! {
        #[test]
        fn the_others_come_through_in_order(words in prop::collection::vec("[a-z=.]{1,6}|rouse\\.survey", 0..9)) {
            let left: Vec<&str> = words.iter().map(String::as_str).filter(|word| !is_taken(word)).collect();
            prop_assert_eq!(guests(&words.join(" ")), left.join(" "));
        }
    }
}
