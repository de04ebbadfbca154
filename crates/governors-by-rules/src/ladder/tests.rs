// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::*;

/// Asks once after each sleep of `slept_ns` in the state chosen last.
fn climb(ladder: &mut Ladder, table: &Table, sleeps: &[i64]) -> Vec<usize> {
    let mut states = vec![ladder.choose(table, &ask(MS)).state];
    for &ns in sleeps {
        let current = states[states.len() - 1];
        ladder.learn(table, &slept(current, ns));
        states.push(ladder.choose(table, &ask(MS)).state);
    }
    states
}

#[test]
fn l1_it_begins_behind_the_poll_state() {
    assert_eq!(Ladder::new().choose(&four(), &ask(MS)), stop(1));
    assert_eq!(Ladder::new().choose(&three(), &ask(MS)), stop(0));
}

#[test]
fn l2_up_after_four_long_sleeps_down_after_one_short() {
    // State 1: L 2 us; a sleep of 4 us less 2 is not more than 2, one of 4001 ns is.
    assert_eq!(climb(&mut Ladder::new(), &four(), &[4000; 6]), [1; 7]);
    assert_eq!(
        climb(&mut Ladder::new(), &four(), &[4001; 4]),
        [1, 1, 1, 1, 2]
    );
    // State 2: L 50 us; 100 us less 50 are not short, 99 999 ns less 50 us are.
    let mut ladder = Ladder {
        current: Some(2),
        ..Ladder::new()
    };
    ladder.learn(&four(), &slept(2, 100_000));
    assert_eq!(ladder.choose(&four(), &ask(MS)), stop(2));
    ladder.learn(&four(), &slept(2, 99_999));
    assert_eq!(ladder.choose(&four(), &ask(MS)), stop(1));
}

#[test]
fn l2_a_sleep_between_does_not_reset_the_count() {
    // Neither long nor short: three long, one even, one long.
    assert_eq!(
        climb(&mut Ladder::new(), &four(), &[9000, 9000, 9000, 4000, 9000])[4..],
        [1, 2]
    );
}

#[test]
fn l3_limit_zero_and_the_way_back() {
    let mut ladder = Ladder {
        current: Some(3),
        ..Ladder::new()
    };
    assert_eq!(ladder.choose(&four(), &within(MS, 0)), stop(0));
    // Polled 1 ns: longer than L(0) = 0, so up at once.
    ladder.learn(&four(), &slept(0, 1));
    assert_eq!(ladder.choose(&four(), &ask(MS)), stop(1));
    // Not at all: it stays at 0.
    let mut ladder = Ladder {
        current: Some(0),
        ..Ladder::new()
    };
    assert_eq!(ladder.choose(&four(), &ask(MS)), stop(0));
}

#[test]
fn l4_a_refused_entry_is_a_short_sleep() {
    let mut ladder = Ladder {
        current: Some(3),
        recorded_ns: 10 * MS,
        ..Ladder::new()
    };
    ladder.learn(&four(), &Event::Refused);
    assert_eq!(ladder.choose(&four(), &ask(MS)), stop(2));
}

#[test]
fn l5_a_disabled_or_slow_state_blocks_the_way_up() {
    assert_eq!(
        climb(&mut Ladder::new(), &without(four(), &[2]), &[MS; 6]),
        [1; 7]
    );
    let mut ladder = Ladder::new();
    for _ in 0..6 {
        assert_eq!(ladder.choose(&four(), &within(MS, 50 * US - 1)), stop(1));
        ladder.learn(&four(), &slept(1, MS));
    }
}

#[test]
fn l6_a_disabled_state_or_the_limit_drives_it_down() {
    let five = Table::new(&[
        poll(),
        state(2, 10),
        state(50, 100),
        state(200, 5000),
        state(900, 9000),
    ]);
    let from_four = |table: &Table, limit| {
        let mut ladder = Ladder {
            current: Some(4),
            recorded_ns: 20 * MS,
            ..Ladder::new()
        };
        ladder.choose(table, &within(MS, limit))
    };
    assert_eq!(from_four(&five, 200 * US), stop(3));
    assert_eq!(from_four(&five, 199 * US), stop(2));
    assert_eq!(from_four(&five, 1), stop(1));
    // The state on the way is taken although it is disabled.
    assert_eq!(from_four(&without(five.clone(), &[3, 4]), MS), stop(3));
}

#[test]
fn l7_down_even_to_a_disabled_state() {
    let mut ladder = Ladder {
        current: Some(2),
        ..Ladder::new()
    };
    ladder.learn(&four(), &slept(2, US));
    assert_eq!(ladder.choose(&without(four(), &[1]), &ask(MS)), stop(1));
}

#[test]
fn l8_a_change_forgets_the_counts() {
    let mut ladder = Ladder::new();
    // Three long sleeps, then away by the limit and back: four long ones are needed again.
    climb(&mut ladder, &four(), &[9000; 3]);
    ladder.choose(&four(), &within(MS, 0));
    ladder.learn(&four(), &slept(1, 4000));
    assert_eq!(climb(&mut ladder, &four(), &[9000; 4]), [1, 1, 1, 1, 2]);
}

#[test]
fn l9_the_entered_state_counts_unless_it_is_0() {
    let mut ladder = Ladder {
        current: Some(3),
        ..Ladder::new()
    };
    ladder.learn(&four(), &slept(2, 100_000));
    assert_eq!(ladder.current, Some(2));
    ladder.learn(&four(), &slept(0, 100_000));
    assert_eq!(ladder.current, Some(2));
}

#[test]
fn l10_one_state() {
    for only in [state(1, 1), poll()] {
        let table = Table::new(&[only]);
        assert_eq!(climb(&mut Ladder::new(), &table, &[MS, 0, MS]), [0; 4]);
    }
}
