// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

const TICK: u64 = 4_000_000;

/// Returns name, kind, exit latency and target residency in us of each state.
fn shown(text: &str, standby_us: u32) -> Vec<(&'static str, StateKind, u64, u64)> {
    let table = States::parse(text).unwrap().table(standby_us, TICK);
    let table = table.unwrap();
    let states = table.states().iter();
    states
        .map(|state| {
            let times = (state.exit_latency_ns, state.target_residency_ns);
            (state.name, state.kind, times.0 / 1000, times.1 / 1000)
        })
        .collect()
}

#[test]
fn tables_have_the_times_that_are_given_or_the_default_ones() {
    let poll = ("poll", StateKind::Poll, 0, 0);
    let wfi = ("wfi", StateKind::Wfi, 2, 10);
    let standby = ("standby", StateKind::Standby, 100, 300);
    let deep = ("deep", StateKind::Standby, 400, 2000);
    assert_eq!(shown("poll+wfi+standby", 100), [poll, wfi, standby]);
    assert_eq!(
        shown("poll+wfi+standby", 7)[2],
        ("standby", StateKind::Standby, 7, 21)
    );
    assert_eq!(shown("poll+wfi+standby", 0), [poll, wfi]);
    assert_eq!(shown("wfi", 100), [wfi]);
    assert_eq!(shown("wfi+deep", 0), [wfi, deep]);
    assert_eq!(
        shown("poll+wfi+standby+deep", 100),
        [poll, wfi, standby, deep]
    );
    assert_eq!(
        shown("wfi:1:5+standby:50:200", 0),
        [
            ("wfi", StateKind::Wfi, 1, 5),
            ("standby", StateKind::Standby, 50, 200)
        ]
    );
    assert_eq!(
        shown("arm_poll_idle:300", 0),
        [poll, ("wfi", StateKind::Wfi, 300, 300)]
    );
    assert_eq!(States::parse("poll+wfi+standby"), Ok(States::DEFAULT));
    // The default limit of the driver.
    assert_eq!(
        States::parse("arm_poll_idle").unwrap().to_string(),
        "arm_poll_idle:100"
    );
}

#[test]
fn what_is_no_table_is_refused_by_name() {
    for (text, told) in [
        ("", "there is no state ``; use poll, wfi"),
        ("poll+", "there is no state ``"),
        ("poll+c1", "there is no state `c1`"),
        ("Poll", "there is no state `Poll`"),
        ("poll wfi", "there is no state `poll wfi`"),
        ("wfi+wfi", "`wfi` is there twice"),
        ("poll+wfi+standby+deep+wfi", "`wfi` is there twice"),
        ("poll+wfi+wfi+poll+deep", "`wfi` is there twice"),
        ("wfi:2", "`wfi:2` is not NAME:LATENCY:RESIDENCY"),
        ("wfi:2:", "`wfi:2:` is not"),
        ("wfi:2:3:4", "`wfi:2:3:4` is not"),
        ("wfi:+2:3", "`wfi:` is not NAME"),
        ("wfi:2:+3", "`wfi:2:` is not NAME"),
        ("wfi: 2:3", "`wfi: 2:3` is not NAME"),
        ("wfi:2:1000001", "0 to 1000000"),
        ("wfi:-1:1", "`wfi:-1:1` is not"),
        ("arm_poll_idle:", "`arm_poll_idle:` is not arm_poll_idle:US"),
        ("arm_poll_idle:1000001", "use arm_poll_idle:100"),
        ("arm_poll_idles", "`arm_poll_idles` is not"),
        ("arm_poll_idle:5+wfi", "`arm_poll_idle:5+wfi` is not"),
        ("wfi+poll", "`poll` comes after `wfi`; only the first"),
        (
            "deep+wfi",
            "`wfi` has a lower exit latency or target residency than `deep`",
        ),
        ("wfi:5:9+deep:4:10", "`deep` has a lower"),
        ("wfi:5:9+standby+deep:6:8", "`deep` has a lower"),
    ] {
        let error = States::parse(text).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}

/// Whether these texts are tables depends on another option.
#[test]
fn a_standby_that_does_not_fit_is_refused_with_its_latency() {
    let broken = |text: &str, standby_us| {
        let states = States::parse(text).unwrap();
        states.table(standby_us, TICK).unwrap_err().to_string()
    };
    assert!(broken("poll+wfi+standby", 1).contains("`standby` has a lower"));
    assert!(broken("wfi:200:900+standby", 100).contains("than `wfi` before it"));
    assert!(broken("standby+deep", 401).contains("`deep` has a lower"));
    assert!(broken("standby", 0).contains("another --standby-us"));
    assert_eq!(shown("wfi:200:900+standby", 300).len(), 2);
}

#[test]
fn tables_know_what_they_execute() {
    for (text, polls, wfi, open, leaving_us) in [
        ("poll+wfi+standby", true, true, true, 9),
        ("poll+wfi+standby:8:10", true, true, false, 8),
        ("wfi+deep", false, true, false, 400),
        ("standby", false, false, true, 9),
        ("poll", true, false, false, 0),
        ("arm_poll_idle:50", true, true, false, 0),
    ] {
        let states = States::parse(text).unwrap();
        let known = (
            states.polls(),
            states.halts_by_wfi(),
            states.leaves_standby_open(),
            states.slow_exit_us(9),
        );
        assert_eq!(known, (polls, wfi, open, leaving_us), "{text}");
    }
}

#[test]
fn ranks_tell_tables_apart() {
    let texts = [
        "poll+wfi",
        "poll+wfi+standby",
        "poll+wfi:2:10",
        "poll+wfi:2:11",
        "poll+wfi:3:10",
        "wfi",
        "wfi+deep",
        "arm_poll_idle:1",
        "arm_poll_idle:2",
        "wfi:0:0",
        "wfi:0:1",
    ];
    let ranks = texts.map(|text| States::parse(text).unwrap().sort_key());
    for (n, rank) in ranks.iter().enumerate() {
        assert!(!ranks[..n].contains(rank), "{}", texts[n]);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let times = prop::option::of((0u32..=MAX_US, 0u32..=MAX_US));
    let state = (prop::sample::select(&Label::WORDS[..]), times);
    let listed = prop::collection::vec(state, 1..6).prop_map(|states| {
        let texts = states.iter().map(|(name, times)| match times {
            None => (*name).to_owned(),
            Some((exit, residency)) => format!("{name}:{exit}:{residency}"),
        });
        texts.collect::<Vec<_>>().join("+")
    });
    let driver = (0..=MAX_US).prop_map(|limit| format!("{DRIVER}:{limit}"));
    prop_oneof![4 => listed, 1 => driver, 1 => "[a-z+:0-9_]{0,20}"]
}

proptest! {
    /// A text that was read prints unchanged, and has a table unless its `standby` does not fit.
    #[test]
    fn tables_read_back(text in any_text(), standby_us in 0u32..10_000) {
        if let Ok(states) = States::parse(&text) {
            if text != DRIVER {
                prop_assert_eq!(&states.to_string(), &text);
            }
            let table = states.table(standby_us, TICK);
            prop_assert!(table.is_ok() || states.leaves_standby_open());
            if let Ok(table) = table {
                prop_assert_eq!(table.poll_state().is_some(), states.polls());
            }
        }
    }
}

/// The guest's records can hold the longest text (`LONGEST` in `guest-kernel-shim/src/report/cell.rs`).
#[test]
fn the_longest_text_is_short() {
    let longest = Label::WORDS
        .map(|name| format!("{name}:{MAX_US}:{MAX_US}"))
        .join("+");
    assert!(States::parse(&longest).is_ok());
    assert!(" states=".len() + longest.len() < 110);
}
