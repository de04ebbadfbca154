// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::*;
use crate::trace::{NO_LATENCY_LIMIT, State};

mod learning;

const TICK: i64 = 4 * MS;

fn menu(rules: MenuRules) -> Menu {
    Menu::new(rules, TICK)
}

/// menu whose ring holds `us` eight times and whose factors are untouched.
fn seasoned(rules: MenuRules, us: u32) -> Menu {
    Menu {
        samples: [us; SAMPLES],
        learnt: true,
        ..menu(rules)
    }
}

#[test]
fn m2_buckets_and_their_edges() {
    let old = menu(MenuRules::V6_2);
    let new = menu(MenuRules::V6_14);
    let edges = [
        (0, 0),
        (9_999, 0),
        (10_000, 1),
        (99_999, 1),
        (100_000, 2),
        (999_999, 2),
        (1_000_000, 3),
        (9_999_999, 3),
        (10_000_000, 4),
        (99_999_999, 4),
        (100_000_000, 5),
        (u64::MAX, 5),
    ];
    for (ns, bucket) in edges {
        assert_eq!(old.bucket_of(ns, 0), bucket, "{ns}");
        assert_eq!(old.bucket_of(ns, 3), bucket + 6, "{ns}");
        assert_eq!(new.bucket_of(ns, 3), bucket, "{ns}");
    }
}

#[test]
fn m3a_the_timer_is_rounded_to_the_nearest_us() {
    let menu = menu(MenuRules::V6_2);
    for (ns, us) in [
        (0, 0),
        (499, 0),
        (500, 1),
        (1_499, 1),
        (1_500, 2),
        (20_000_499, 20_000),
    ] {
        assert_eq!(menu.ask_timer(&ask(ns)).3, us, "{ns}");
    }
    // Half of 101 us: 50.5, up.
    let mut half = menu.clone();
    half.factors[2] = 4096;
    assert_eq!(half.ask_timer(&ask(101 * US)).3, 51);
}

#[test]
fn m3a_a_due_timer_is_zero_and_so_is_the_event() {
    let due = Ask {
        event_ns: 700,
        ..ask(-1)
    };
    let (timer, event, bucket, us) = menu(MenuRules::V6_2).ask_timer(&due);
    assert_eq!((timer, event, bucket, us), (0, 0, 0, 0));
}

#[test]
fn m3a_the_product_wraps_and_the_us_are_cut() {
    let menu = menu(MenuRules::V6_2);
    // 5000 s are 5 * 10^9 us, modulo 2^32 705 032 704.
    assert_eq!(menu.ask_timer(&ask(5_000_000_000_000)).3, 705_032_704);
    // (2^63 - 1) * 8192 is -8192 modulo 2^64; with half a unit it is 4 087 808, below one unit.
    assert_eq!(menu.ask_timer(&ask(NO_TIMER)).3, 0);
}

#[test]
fn m3a_in_6_2_a_new_device_expects_nothing() {
    // Eight samples of 0 are typical, and below any timer from 1 us on.
    let told = menu(MenuRules::V6_2).predict(&ask(20 * MS));
    assert_eq!(
        (told.ns, told.timer_ns, told.event_ns),
        (0, 20 * MS as u64, 20 * MS)
    );
}

#[test]
fn m3b_up_to_15_us_the_timer_is_not_asked_for() {
    let quiet = seasoned(MenuRules::V6_14, 15).predict(&ask(20 * MS));
    assert_eq!(
        (quiet.ns, quiet.timer_ns, quiet.event_ns, quiet.bucket),
        (15_000, i64::MAX as u64, TICK / 2, 5)
    );
    let asked = seasoned(MenuRules::V6_14, 16).predict(&ask(20 * MS));
    assert_eq!(
        (asked.ns, asked.timer_ns, asked.bucket),
        (16_000, 20 * MS as u64, 4)
    );
    let busy = Ask {
        io_waiters: 1,
        ..ask(20 * MS)
    };
    assert_eq!(seasoned(MenuRules::V6_6, 15).predict(&busy).bucket, 11);
}

#[test]
fn m3c_a_stopped_tick_asks_for_the_timer_since_7_0() {
    assert_eq!(
        seasoned(MenuRules::V6_14, 15)
            .predict(&stopped(MS))
            .timer_ns,
        i64::MAX as u64
    );
    assert_eq!(
        seasoned(MenuRules::V7_1, 15).predict(&stopped(MS)).timer_ns,
        MS as u64
    );
}

#[test]
fn m3d_a_stopped_tick_believes_the_timer() {
    for (rules, at_two_ticks) in [(MenuRules::V6_2, 8 * MS), (MenuRules::V7_1, 100 * US)] {
        let menu = seasoned(rules, 100);
        assert_eq!(menu.predict(&stopped(8 * MS)).ns, at_two_ticks as u64);
        assert_eq!(menu.predict(&stopped(8 * MS + 1)).ns, 8 * MS as u64 + 1);
    }
    // A prediction of a tick or more stands.
    assert_eq!(
        seasoned(MenuRules::V6_2, 4000)
            .predict(&stopped(20 * MS))
            .ns,
        TICK as u64
    );
    // 6.14 does not know the timer then and takes "no timer".
    assert_eq!(
        seasoned(MenuRules::V6_14, 10).predict(&stopped(MS)).ns,
        i64::MAX as u64
    );
}

#[test]
fn m5_limit_zero_one_state_and_a_near_timer() {
    let one = Table::new(&[state(1, 1)]);
    assert_eq!(menu(MenuRules::V6_2).choose(&one, &ask(20 * MS)), stop(0));
    assert_eq!(
        menu(MenuRules::V6_14).choose(&Table::new(&[poll()]), &ask(20 * MS)),
        keep(0)
    );
    for rules in [MenuRules::V6_2, MenuRules::V6_14, MenuRules::V7_1] {
        let mut menu = seasoned(rules, 2_000_000);
        assert_eq!(menu.choose(&four(), &within(20 * MS, 0)), keep(0));
        assert_eq!(menu.choose(&three(), &within(20 * MS, 0)), stop(0));
        menu.learnt = true;
        assert_eq!(menu.choose(&four(), &ask(10 * US - 1)), keep(0));
        menu.learnt = true;
        assert_eq!(menu.choose(&four(), &within(20 * MS, 2 * US - 1)), keep(0));
        // State 0 disabled: the search decides, and state 1 is not within the limit either.
        menu.learnt = true;
        let table = without(four(), &[0]);
        assert_eq!(menu.choose(&table, &ask(10 * US - 1)).state, 1);
        // State 1 disabled counts all the same.
        menu.learnt = true;
        assert_eq!(
            menu.choose(&without(four(), &[1]), &ask(10 * US - 1)),
            keep(0)
        );
    }
}

#[test]
fn m6_the_multiplier_of_tasks_waiting_for_io() {
    // Prediction 500 us.
    let busy = |io_waiters| Ask {
        io_waiters,
        ..ask(500 * US)
    };
    let limit = |rules, ask: &Ask| menu(rules).capped_limit(ask, 500_000);
    assert_eq!(limit(MenuRules::V6_2, &busy(0)), 500_000);
    assert_eq!(limit(MenuRules::V6_2, &busy(1)), 45_454);
    assert_eq!(limit(MenuRules::V6_2, &busy(2)), 23_809);
    assert_eq!(limit(MenuRules::V6_6, &busy(1)), 45_454);
    assert_eq!(limit(MenuRules::V6_14, &busy(1)), 500_000);
    assert_eq!(limit(MenuRules::V7_1, &busy(1)), NO_LATENCY_LIMIT as u64);
    let stopped = Ask {
        io_waiters: 1,
        ..stopped(500 * US)
    };
    assert_eq!(limit(MenuRules::V6_2, &stopped), NO_LATENCY_LIMIT as u64);
    // State 2 (50 us) no longer fits: state 1.
    let mut six_two = seasoned(MenuRules::V6_2, 1_000_000);
    assert_eq!(six_two.choose(&four(), &busy(0)), keep(2));
    assert_eq!(six_two.choose(&four(), &busy(1)), keep(1));
}

#[test]
fn m7_the_deepest_within_prediction_and_limit() {
    for rules in [MenuRules::V6_2, MenuRules::V6_14, MenuRules::V7_1] {
        let mut menu = seasoned(rules, 2_000_000);
        let mut state = |ask: &Ask| {
            menu.learnt = true;
            menu.choose(&four(), ask)
        };
        assert_eq!(state(&ask(100 * US - 501)), keep(1));
        // 99.5 us round to 100; the event must allow the state too (M10).
        let rounded = Ask {
            event_ns: 100 * US,
            ..ask(100 * US - 500)
        };
        assert_eq!(state(&rounded), keep(2));
        assert_eq!(state(&ask(100 * US - 500)), keep(1));
        assert_eq!(state(&ask(5 * MS)), stop(3));
        assert_eq!(state(&within(5 * MS, 200 * US - 1)), stop(2));
        assert_eq!(state(&within(5 * MS, 200 * US)), stop(3));
        assert_eq!(state(&ask(20 * MS)), stop(3));
    }
}

#[test]
fn m7_no_state_enabled_and_one_enabled() {
    for rules in [MenuRules::V6_2, MenuRules::V6_14, MenuRules::V7_1] {
        let mut menu = seasoned(rules, 2_000_000);
        assert_eq!(
            menu.choose(&without(three(), &[0, 1, 2]), &ask(20 * MS)),
            stop(0)
        );
        menu.learnt = true;
        assert_eq!(
            menu.choose(&without(four(), &[0, 1, 2, 3]), &ask(20 * MS)),
            keep(0)
        );
        menu.learnt = true;
        assert_eq!(
            menu.choose(&without(three(), &[1, 2]), &ask(20 * MS)),
            stop(0)
        );
        menu.learnt = true;
        assert_eq!(
            menu.choose(&without(three(), &[0, 1]), &ask(20 * MS)),
            stop(2)
        );
    }
}

#[test]
fn m7_before_6_18_a_state_too_deep_is_seen_before_its_latency() {
    // State 1 fits neither 8 ms of prediction nor the limit: with the tick stopped the old order
    // ends in M8d, which may take it; the new order ends at once.
    let table = Table::new(&[state(1, 1), state(100, 9000)]);
    let limited = Ask {
        event_ns: 10 * MS,
        latency_limit_ns: 50 * US,
        ..stopped(8 * MS)
    };
    let mut old = seasoned(MenuRules::V6_14, 2_000_000);
    let mut new = seasoned(MenuRules::V7_1, 2_000_000);
    // M5: the limit is below L(1) and state 0 is enabled.
    assert_eq!(old.choose(&table, &limited).state, 0);
    // Three states, so that L(1) is within the limit.
    let table = Table::new(&[state(1, 1), state(1, 2), state(100, 9000)]);
    new.learnt = true;
    assert_eq!(old.choose(&table, &limited).state, 2);
    assert_eq!(new.choose(&table, &limited).state, 1);
}

#[test]
fn m8a_no_polling_where_the_timer_is_far() {
    // Five us expected, the first sleeping state wants ten.
    let poll_first = |rules| seasoned(rules, 5).choose(&four(), &ask(20 * MS));
    // 6.2: its latency of 2 us is within the 5 us. The tick stays: 10 us are below a tick.
    assert_eq!(poll_first(MenuRules::V6_2), keep(1));
    assert_eq!(poll_first(MenuRules::V6_14), keep(1));
    assert_eq!(poll_first(MenuRules::V7_1), keep(1));
    // A state of 15 us is not short any more, one of 14 999 ns is.
    for (residency_ns, chosen) in [(15_000, 0), (14_999, 1)] {
        let deep = State {
            target_residency_ns: residency_ns,
            ..state(2, 0)
        };
        let table = Table::new(&[poll(), deep]);
        assert_eq!(
            seasoned(MenuRules::V7_1, 5).choose(&table, &ask(20 * MS)),
            keep(chosen)
        );
        assert_eq!(
            seasoned(MenuRules::V6_14, 5).choose(&table, &ask(20 * MS)),
            keep(1)
        );
    }
    // One us expected: the latency of 2 us is more.
    for rules in [MenuRules::V6_2, MenuRules::V6_14, MenuRules::V7_1] {
        assert_eq!(
            seasoned(rules, 1).choose(&four(), &ask(20 * MS)),
            keep(0),
            "{rules:?}"
        );
    }
}

#[test]
fn m8a_polling_where_the_timer_is_near() {
    // The residency of 10 us is more than the timer's 9.9: M5 polls. With state 1 disabled the
    // next one, 100 us, is not reached by the timer of 60 us.
    let table = without(four(), &[1]);
    assert_eq!(
        seasoned(MenuRules::V6_2, 5).choose(&table, &ask(60 * US)),
        keep(0)
    );
}

#[test]
fn m8c_a_shallow_state_keeps_the_tick() {
    // 4.5 ms expected: state 3 wants 5 ms, state 2's 100 us become the prediction.
    for rules in [MenuRules::V6_2, MenuRules::V6_14, MenuRules::V7_1] {
        let choice = seasoned(rules, 4500).choose(&four(), &ask(20 * MS));
        assert_eq!(choice, keep(2));
    }
}

#[test]
fn m8d_with_the_tick_stopped_a_deeper_state_if_the_event_allows() {
    let at = |event_ns, rules| {
        let ask = Ask {
            event_ns,
            ..stopped(20 * MS)
        };
        seasoned(rules, 4500).choose(&four(), &ask)
    };
    for rules in [MenuRules::V6_2, MenuRules::V6_14, MenuRules::V7_1] {
        assert_eq!(at(5 * MS, rules), stop(3));
        assert_eq!(at(5 * MS - 1, rules), stop(2));
    }
}
