// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test files are parsed, and each error message names the mistake.

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
fn the_rules_are_not_watched_where_nothing_of_ours_runs_privileged() {
    let is_watched = |run: &str| {
        let text = format!("about = 'x'\n[run]\n{run}");
        Case::parse("name", &text).unwrap().why_no_rules().is_none()
    };
    for run in [
        "",
        "guest = 'debian'",
        "under = 'xen'",
        "guest = 'debian'\nunder = 'none,rouse'",
    ] {
        assert!(is_watched(run), "{run}");
    }
    for run in [
        "under = 'kvm'",
        "guest = 'debian'\nunder = 'xen'",
        "guest = 'debian'\nunder = ['none', 'kvm']",
    ] {
        assert!(!is_watched(run), "{run}");
    }
}

#[test]
fn every_test_of_the_tree_can_be_read() {
    crate::suite::cases("").unwrap();
}

#[test]
fn a_file_that_is_no_text_is_bad_input() {
    let place = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("odd.toml", &b"about = \"\xff\""[..]),
        ("zero.toml", b"\xfe\xff"),
    ] {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        for path in [path, place.path().join("missing.toml")] {
            let error = Case::load(&path).unwrap_err();
            let text = format!("{error:#}");
            assert!(shell::failure::is_bad_input(&error), "{text}");
            assert!(
                text.contains("can't be read (") && text.ends_with("; correct it"),
                "{text}"
            );
        }
    }
}

#[test]
fn every_dimension_that_a_test_names_is_used_by_a_cell() {
    let mut unused = Vec::new();
    for case in crate::suite::cases("").unwrap() {
        for run in std::iter::once(case.run.clone())
            .chain(case.same.iter().map(|same| same.options(&case.run)))
        {
            let plan = options(&run).unwrap().job.load.plan;
            if let Ok(made) = plan.plan()
                && let Err(why) = plan.check_used(&made)
                && case.is_to_succeed()
            {
                unused.push(format!("{}: {why}", case.name));
            }
        }
    }
    assert!(unused.is_empty(), "{unused:#?}");
}
