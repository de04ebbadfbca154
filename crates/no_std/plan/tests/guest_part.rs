// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's part of the boot arguments.

use plan::guest_part;
use proptest::prelude::*;

fn guests(bootargs: &str) -> String {
    guest_part(bootargs).collect()
}

#[test]
fn the_hypervisors_words_are_left_out() {
    for (given, left) in [
        ("console=ttyAMA0 panic=1", "console=ttyAMA0 panic=1"),
        (
            "rouse.options a rouse.survey b rouse.uart=pl011,0x9000000",
            "a b",
        ),
        ("rouse.survey", ""),
        ("a rouse.survey  rouse.survey ", "a"),
        ("rouse.surveys rouse.fault=x", "rouse.surveys rouse.fault=x"),
        ("survey uart=x rouse.", "survey uart=x rouse."),
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
        let left: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "rouse.survey").collect();
        prop_assert_eq!(guests(&words.join(" ")), left.join(" "));
    }
}
