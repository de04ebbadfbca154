// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares results with values worked out by hand, for the table that other tests also use.

use super::*;

/// Period of the tick in a kernel with 250 Hz, ns.
pub const TICK: u64 = 4_000_000;

/// Poll, WFI and two standby states, whose numbers are easy to calculate with.
pub fn table() -> Table {
    let states = [
        State::new("poll", StateKind::Poll, 0, 0),
        State::new("wfi", StateKind::Wfi, 2_000, 10_000),
        State::new("standby", StateKind::Standby, 40_000, 200_000),
        State::new("deep", StateKind::Standby, 400_000, 2_000_000),
    ];
    Table::new(&states, TICK).unwrap()
}

#[test]
fn tables_that_contradict_themselves_are_refused() {
    let [poll, wfi, standby, _] = *table().states() else {
        unreachable!()
    };
    let off = State {
        enabled: false,
        ..wfi
    };
    for (states, error) in [
        (&[][..], TableError::Count(0)),
        (&[wfi; 9], TableError::Count(9)),
        (&[wfi, poll], TableError::PollNotFirst(1)),
        (&[poll, standby, wfi], TableError::NotDeeper(2)),
        (&[off, off], TableError::NoneEnabled),
    ] {
        assert_eq!(Table::new(states, TICK).unwrap_err(), error);
    }
    assert_eq!(Table::new(&[wfi], 0).unwrap_err(), TableError::NoTick);
}

#[test]
fn the_last_enabled_state_stays() {
    let mut table = Table::arm_poll_idle(100_000, TICK).unwrap();
    table.set_enabled(1, false).unwrap();
    assert_eq!(table.set_enabled(0, false), Err(TableError::NoneEnabled));
    assert_eq!(table.set_enabled(2, true), Err(TableError::NoSuchState(2)));
    assert_eq!(table.shallowest(), 0);
}

/// Linux's rule, by hand: the residency of the first enabled halting state with a residency of
/// 10 us or more, but at most 4 ms / 16 = 250 us.
#[test]
fn a_poll_is_as_long_as_the_first_halt_is_deep() {
    let limit = |limit_us: u64, tick| {
        let table = Table::arm_poll_idle(limit_us * 1000, tick).unwrap();
        table.poll_limit_ns() / 1000
    };
    assert_eq!(limit(100, TICK), 100);
    // The published table's "300 us" was really 250 us.
    assert_eq!(limit(300, TICK), 250);
    // 1 ms / 16 = 62.5 us.
    assert_eq!(limit(100, 1_000_000), 62);
    // This residency is too short to count, and no state is deeper, so the limit is a sixteenth of the tick.
    assert_eq!(limit(9, TICK), 250);
    let mut table = table();
    assert_eq!(table.poll_limit_ns(), 10_000);
    table.set_enabled(1, false).unwrap();
    assert_eq!(table.poll_limit_ns(), 200_000);
}

#[test]
fn states_are_found_by_stay_and_limit() {
    let mut table = table();
    assert_eq!(table.deepest(199_999, u64::MAX), 1);
    assert_eq!(table.deepest(200_000, u64::MAX), 2);
    assert_eq!(table.deepest(u64::MAX, 399_999), 2);
    assert_eq!(table.deepest(u64::MAX, 0), 0);
    table.set_enabled(2, false).unwrap();
    assert_eq!(table.deepest(1_000_000, u64::MAX), 1);
    assert_eq!((table.deeper(1), table.shallower(3)), (Some(3), Some(1)));
    table.set_enabled(0, false).unwrap();
    assert_eq!((table.shallowest(), table.first_halt(0)), (1, 1));
    assert_eq!(table.poll_state(), None);
    // No state meets a limit of 0, and the CPU has to wait somehow.
    assert_eq!(table.deepest(u64::MAX, 0), 1);
}
