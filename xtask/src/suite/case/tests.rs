// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests are read, and mistakes in them named.

use super::*;

#[test]
fn mistakes_are_named() {
    for (text, named) in [
        ("about = 'x'\n[run]\nwiat = 'wfi'", "--wiat"),
        ("about = 'x'\n[expect]\nstatus = 'fine'", "`fine`"),
        ("about = 'x'\nexpects = 1", "expects"),
        ("[run]", "about"),
        ("about = 'x'\n[[same]]\npercent = 1\nrun = { x = 1 }", "--x"),
    ] {
        let wrong = Case::parse("name", text).unwrap_err();
        let error = format!("{wrong:#}");
        assert!(
            error.contains("tests/name.toml") && error.contains(named),
            "{error}"
        );
        assert!(is_bad_input(&wrong), "{error}");
    }
}

#[test]
fn a_test_says_how_long_it_may_take() {
    let of = |text| Case::parse("name", text).unwrap().patience();
    assert_eq!(of("about = 'x'\n[run]\ntimeout = 120"), 120);
    assert_eq!(of("about = 'x'"), i64::MAX);
}

#[test]
fn every_test_of_the_tree_can_be_read() {
    crate::suite::cases("").unwrap();
}
