// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is learnt of a sleep, and how (rules M9 to M13).

use super::*;

#[test]
fn m9_a_choice_without_a_learnt_sleep_leaves_an_unknown_sample() {
    let mut new = menu(MenuRules::V7_1);
    new.choose(&four(), &ask(20 * MS));
    assert_eq!(new.samples, [UNKNOWN, 0, 0, 0, 0, 0, 0, 0]);
    new.learn(&four(), &slept(1, 100 * US));
    new.choose(&four(), &ask(20 * MS));
    assert_eq!(new.samples[..3], [UNKNOWN, 98, 0]);
    new.learn(&four(), &Event::Refused);
    new.choose(&four(), &ask(20 * MS));
    assert_eq!(new.samples[..4], [UNKNOWN, 98, UNKNOWN, 0]);
    let mut old = menu(MenuRules::V6_14);
    old.choose(&four(), &ask(20 * MS));
    old.learn(&four(), &Event::Refused);
    old.choose(&four(), &ask(20 * MS));
    assert_eq!(old.samples, [0; 8]);
}

#[test]
fn m10_a_kept_tick_bounds_the_state() {
    let at = |table: &Table, event_ns| {
        let ask = Ask {
            event_ns,
            ..ask(3 * MS)
        };
        seasoned(MenuRules::V6_2, 2_000_000).choose(table, &ask)
    };
    assert_eq!(at(&four(), 100 * US), keep(2));
    assert_eq!(at(&four(), 100 * US - 1), keep(1));
    assert_eq!(at(&four(), 5 * US), keep(0));
    // State 0 disabled: nothing fits 5 us, the shallowest enabled below it is taken.
    assert_eq!(at(&without(four(), &[0]), 5 * US), keep(1));
    // Nothing enabled below it: it stays.
    assert_eq!(at(&without(four(), &[0, 1]), 5 * US), keep(2));
    assert_eq!(at(&three(), US), keep(0));
}

#[test]
fn m10_a_tick_of_another_length() {
    // 1.5 ms expected: the tick stops at 1000 Hz, not at 250 nor at 100 Hz.
    for (hz, stop_tick) in [(1000, true), (250, false), (100, false)] {
        let table = Table::new(&[state(1, 1), state(50, 100), state(200, 1000)]);
        let mut menu = Menu {
            learnt: true,
            samples: [1500; 8],
            ..Menu::new(MenuRules::V6_2, crate::tick_ns(hz))
        };
        assert_eq!(
            menu.choose(&table, &ask(20 * MS)),
            Choice::new(2, stop_tick),
            "{hz}"
        );
    }
}

#[test]
fn m11_what_counts_as_measured() {
    let table = four();
    let mut menu = menu(MenuRules::V6_2);
    menu.timer_ns = 20 * MS as u64;
    let measured = |event: &Event, menu: &Menu| match event {
        Event::Slept(sleep) => menu.measured_ns(&table, sleep),
        Event::Refused => unreachable!(),
    };
    // State 3: 200 us of latency.
    assert_eq!(measured(&slept(3, 400_001), &menu), 200_001);
    assert_eq!(measured(&slept(3, 400_000), &menu), 200_000);
    assert_eq!(measured(&slept(3, 100_001), &menu), 50_000);
    assert_eq!(measured(&slept(3, 30 * MS), &menu), 20 * MS as u64);
    assert_eq!(measured(&by_tick(2, 3 * MS), &menu), 20 * MS as u64);
    assert_eq!(measured(&limit_hit(10 * US), &menu), 20 * MS as u64);
    menu.timer_ns = 100 * MS as u64;
    assert_eq!(measured(&by_tick(2, 3 * MS), &menu), 45 * MS as u64);
    // The timer was not beyond a tick: the tick was no surprise.
    menu.timer_ns = TICK as u64;
    assert_eq!(measured(&by_tick(2, 3 * MS), &menu), 3 * MS as u64 - 50_000);
}

#[test]
fn m12_the_factor_of_the_bucket() {
    let mut menu = menu(MenuRules::V6_2);
    menu.choose(&four(), &ask(20 * MS));
    // Half of the timer: 8192 - 1024 + 512.
    menu.learn(&four(), &slept(0, 20 * MS));
    assert_eq!(menu.factors[4], 8192);
    menu.choose(&four(), &ask(20 * MS));
    menu.learn(&four(), &slept(2, 10 * MS + 50 * US));
    assert_eq!(menu.factors[4], 8192 - 1024 + 512);
    // 50 ms and more are perfect, whatever the timer.
    menu.choose(&four(), &ask(99 * MS));
    menu.learn(&four(), &slept(2, 50 * MS + 50 * US));
    assert_eq!(menu.factors[4], 7680 - 960 + 1024);
    // A timer of 0 too.
    menu.choose(&three(), &ask(-5));
    menu.learn(&three(), &slept(0, 7 * US));
    assert_eq!(menu.factors[0], 8192);
    // It never reaches 0: an eighth of 7 is 0.
    menu.factors[4] = 7;
    menu.choose(&four(), &ask(99 * MS));
    menu.learn(&four(), &slept(2, 10));
    assert_eq!(menu.factors[4], 7);
}

#[test]
fn m12_the_prediction_uses_the_factor() {
    let mut menu = seasoned(MenuRules::V6_2, 2_000_000);
    menu.factors[4] = 7680;
    // 20 ms * 7680 / 8192 = 18.75 ms.
    assert_eq!(menu.predict(&ask(20 * MS)).ns, 18_750_000);
}

#[test]
fn m13_the_ring_takes_us_and_cuts_them() {
    let mut menu = menu(MenuRules::V6_2);
    for ns in [1_999, 2_000, 2_001] {
        menu.choose(&three(), &ask(NO_TIMER));
        menu.learn(&three(), &slept(0, ns + 2 * US + 4 * US));
    }
    assert_eq!(menu.samples[..4], [5, 6, 6, 0]);
    // 5000 s of sleep less 2 us: 5 * 10^9 - 2 us, modulo 2^32 705 032 702.
    menu.choose(&three(), &ask(NO_TIMER));
    menu.learn(&three(), &slept(0, 5_000_000_000_000));
    assert_eq!(menu.samples[3], 705_032_702);
    // A poll limit with no timer: 9 223 372 036 854 775 us, modulo 2^32 2 783 138 807.
    let mut menu = super::Menu::new(MenuRules::V7_1, TICK);
    menu.learnt = true;
    menu.timer_ns = NO_TIMER as u64;
    menu.learn(&four(), &limit_hit(250 * US));
    assert_eq!(menu.samples[0], 2_783_138_807);
}

#[test]
fn m13_the_ring_goes_round() {
    let mut menu = menu(MenuRules::V6_2);
    for us in 1..=10 {
        menu.choose(&three(), &ask(20 * MS));
        menu.learn(&three(), &slept(0, us * 10 * US + 2 * US));
    }
    assert_eq!(menu.samples, [90, 100, 30, 40, 50, 60, 70, 80]);
}
