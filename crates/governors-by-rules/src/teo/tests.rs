// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::*;

const TICK: i64 = 4 * MS;

/// teo whose bins are given as (hits, intercepts); T is their sum.
fn with(bins: &[(u32, u32)]) -> Teo {
    let mut teo = Teo {
        fresh: false,
        ..Teo::new(TICK)
    };
    for (bin, &(hits, intercepts)) in teo.bins.iter_mut().zip(bins) {
        *bin = Bin {
            hits: Fading(hits),
            intercepts: Fading(intercepts),
        };
    }
    teo
}

/// teo that saw only hits in the deepest bin.
fn calm() -> Teo {
    with(&[(0, 0), (0, 0), (0, 0), (8000, 0)])
}

fn event(teo: &mut Teo, timer_ns: i64, event: &Event) {
    teo.timer_ns = timer_ns;
    teo.learn(&four(), event);
}

fn counts(teo: &Teo) -> Vec<(u32, u32)> {
    teo.bins[..4]
        .iter()
        .map(|bin| (bin.hits.0, bin.intercepts.0))
        .collect()
}

#[test]
fn n2_a_small_number_becomes_0() {
    let faded = |number| {
        let mut fading = Fading(number);
        fading.fade();
        fading.0
    };
    assert_eq!([0, 7, 8, 15, 16, 1024].map(faded), [0, 0, 7, 14, 14, 896]);
}

#[test]
fn n3_short_sleeps() {
    let short = |slept: &Event| {
        let mut teo = Teo {
            short: Fading(800),
            ..calm()
        };
        event(&mut teo, 20 * MS, slept);
        teo.short.0
    };
    // State 1: L 2 us. 16 us less 1 are not short.
    assert_eq!(short(&slept(1, 16_000)), 700);
    assert_eq!(short(&slept(1, 15_999)), 700 + 1024);
    // State 3: 199 us are less than L, whatever half of them is.
    assert_eq!(short(&slept(3, 199_999)), 700 + 1024);
    assert_eq!(short(&slept(3, 200_000)), 700);
    assert_eq!(short(&limit_hit(1)), 700);
    assert_eq!(short(&Event::Refused), 800);
}

#[test]
fn n4_n6_hits_and_intercepts() {
    let mut teo = with(&[(7, 16), (0, 0), (0, 0), (1024, 0)]);
    // 60 us slept in state 2: 35 us, bin 1, within a tick.
    event(&mut teo, 20 * MS, &slept(2, 60 * US));
    assert_eq!(counts(&teo), [(0, 14), (0, 1024), (0, 0), (896, 0)]);
    assert_eq!(teo.early.0, 1024);
    // 20 ms less 100 us slept: 19.9 ms, within 100 us (L/2) of the timer? 100 us are not less.
    event(&mut teo, 20 * MS, &slept(3, 20 * MS));
    assert_eq!(counts(&teo)[3], (784, 1024));
    assert_eq!(teo.early.0, 896);
    event(&mut teo, 20 * MS, &slept(3, 20 * MS + 1));
    assert_eq!(counts(&teo)[3], (686 + 1024, 896));
    // The same bin, but much too early: an intercept in the bin of the timer.
    event(&mut teo, 20 * MS, &slept(3, 10 * MS));
    assert_eq!(counts(&teo)[3], (1710 - 213, 784 + 1024));
    // Later than the timer: the bin of the timer.
    let mut teo = with(&[]);
    event(&mut teo, 50 * US, &slept(3, 20 * MS));
    assert_eq!(counts(&teo), [(0, 0), (1024, 0), (0, 0), (0, 0)]);
}

#[test]
fn n6_early_is_up_to_a_tick() {
    for (slept_ns, early) in [(TICK + 100 * US, 1024), (TICK + 100 * US + 1, 0)] {
        let mut teo = with(&[]);
        event(&mut teo, 20 * MS, &slept(3, slept_ns));
        assert_eq!((counts(&teo)[2].1, teo.early.0), (1024, early));
    }
}

#[test]
fn n6_without_a_timer_and_with_a_poll_limit() {
    // The timer was not asked for: an intercept.
    let mut teo = with(&[]);
    event(&mut teo, NO_TIMER, &slept(3, 20 * MS));
    assert_eq!(counts(&teo)[3], (0, 1024));
    // A poll limit at a known timer is a hit, without one an intercept: 0 is not less than L/2.
    let mut teo = with(&[]);
    event(&mut teo, 20 * MS, &limit_hit(250 * US));
    assert_eq!(counts(&teo)[3], (1024, 0));
    let mut teo = with(&[]);
    event(&mut teo, NO_TIMER, &limit_hit(250 * US));
    assert_eq!(counts(&teo)[3], (0, 1024));
    assert_eq!(teo.early.0, 0);
    // A timer long due: the difference does not overflow.
    let mut teo = with(&[]);
    event(&mut teo, i64::MIN, &limit_hit(250 * US));
    assert_eq!(counts(&teo)[0], (1024, 0));
}

#[test]
fn n5_woken_by_the_tick() {
    // ticks 1024, T0 0: 3072 > 2048: a hit for the deepest bin.
    let mut teo = with(&[]);
    event(&mut teo, 50 * US, &by_tick(1, 40 * US));
    assert_eq!(counts(&teo), [(0, 0), (0, 0), (0, 0), (1024, 0)]);
    assert_eq!(teo.ticks.0, 1024);
    // T0 512: 3072 > 3072 is false; no early intercepts: a hit in the bin of the timer.
    let mut teo = with(&[(584, 0)]);
    assert_eq!(584 - 584 / 8, 511);
    event(&mut teo, 50 * US, &by_tick(1, 40 * US));
    assert_eq!(counts(&teo)[3], (1024, 0));
    let mut teo = with(&[(585, 0)]);
    event(&mut teo, 50 * US, &by_tick(1, 40 * US));
    assert_eq!(counts(&teo), [(512, 0), (1024, 0), (0, 0), (0, 0)]);
    // 3 * 700 < 2 * 1050 is false: as any wake-up.
    let mut teo = Teo {
        early: Fading(800),
        ..with(&[(1200, 0)])
    };
    event(&mut teo, 20 * MS, &by_tick(1, 40 * US));
    assert_eq!(counts(&teo), [(1050, 0), (0, 1024), (0, 0), (0, 0)]);
    assert_eq!(teo.early.0, 700 + 1024);
}

#[test]
fn n7_the_first_choice_finds_an_event() {
    // State 0 has no latency: an intercept, early and short.
    let mut teo = Teo::new(TICK);
    teo.choose(&four(), &ask(20 * MS));
    assert_eq!(counts(&teo)[0], (0, 1024));
    assert_eq!((teo.early.0, teo.short.0, teo.ticks.0), (1024, 1024, 0));
    // With 2 ns of latency or more it is a hit: 0 < 1.
    let mut teo = Teo::new(TICK);
    teo.choose(&three(), &ask(20 * MS));
    assert_eq!(counts(&teo)[0], (1024, 0));
    assert_eq!((teo.early.0, teo.short.0), (0, 1024));
}

#[test]
fn n7_a_new_device_polls_until_it_learnt() {
    // One intercept below state 3 against nothing else: the poll state, without a timer.
    assert_eq!(Teo::new(TICK).choose(&four(), &ask(20 * MS)), keep(0));
    assert_eq!(Teo::new(TICK).choose(&three(), &ask(20 * MS)), stop(2));
}

#[test]
fn n8_none_and_one_enabled() {
    assert_eq!(
        calm().choose(&without(four(), &[0, 1, 2, 3]), &ask(20 * MS)),
        keep(0)
    );
    // The expected duration is the residency: 5 ms stop the tick, 100 us do not.
    assert_eq!(
        calm().choose(&without(four(), &[0, 1, 2]), &ask(1)),
        stop(3)
    );
    assert_eq!(
        calm().choose(&without(three(), &[0, 2]), &ask(20 * MS)),
        keep(1)
    );
    assert_eq!(
        calm().choose(&without(three(), &[0, 2]), &stopped(20 * MS)),
        stop(1)
    );
    let one = Table::new(&[state(1, 1)]);
    assert_eq!(calm().choose(&one, &ask(20 * MS)), keep(0));
    // The timer is not asked for, so what follows is an intercept.
    let mut teo = calm();
    teo.choose(&without(four(), &[0, 1, 2]), &ask(6 * MS));
    assert_eq!(teo.timer_ns, NO_TIMER);
}

#[test]
fn n9_where_early_wake_ups_are_likely() {
    // 2 * 1000 > T - H with T - H = 1000 + rest.
    let rest = |hits| with(&[(5000, 0), (0, 1000), (0, 0), (hits, 0)]);
    assert_eq!(rest(1000).choose(&four(), &ask(20 * MS)), stop(3));
    assert_eq!(rest(999).choose(&four(), &ask(20 * MS)).state, 1);
    // 400 of 1000 from state 2 on, 900 from state 1 on.
    assert_eq!(
        with(&[(0, 100), (0, 500), (0, 400)])
            .choose(&four(), &ask(20 * MS))
            .state,
        1
    );
    // More than half lies in states 1 and 2, but most in bin 0: on to state 0.
    assert_eq!(
        with(&[(0, 450), (0, 250), (0, 300)]).choose(&four(), &ask(20 * MS)),
        keep(0)
    );
    // Of equal bins the deepest counts.
    assert_eq!(
        with(&[(0, 500), (0, 500), (0, 100)])
            .choose(&four(), &ask(20 * MS))
            .state,
        1
    );
    // Disabled states give their intercepts; the shallowest is the last resort.
    let table = without(four(), &[1]);
    assert_eq!(
        with(&[(0, 100), (0, 500), (0, 400)]).choose(&table, &ask(20 * MS)),
        keep(0)
    );
    let table = without(four(), &[0, 1]);
    let chosen = with(&[(0, 900), (0, 50), (0, 50)]).choose(&table, &ask(20 * MS));
    assert_eq!(chosen.state, 2);
}

#[test]
fn n9_the_last_states_bin_does_not_bound() {
    // State 3 disabled, but its bin lies above all: m is still among bins 0 to 2.
    let table = without(four(), &[3]);
    let chosen = with(&[(0, 0), (0, 600), (0, 0), (0, 400)]).choose(&table, &ask(20 * MS));
    assert_eq!(chosen.state, 1);
    // Bin 2 is bounded by nothing although the candidate is state 2 itself.
    let chosen = with(&[(0, 0), (0, 600), (0, 500), (0, 0)]).choose(&table, &ask(20 * MS));
    assert_eq!(chosen.state, 1);
}

#[test]
fn n10_the_latency_limit() {
    assert_eq!(calm().choose(&four(), &within(20 * MS, 200 * US)), stop(3));
    assert_eq!(
        calm().choose(&four(), &within(20 * MS, 200 * US - 1)),
        stop(2)
    );
    assert_eq!(calm().choose(&four(), &within(20 * MS, 0)), keep(0));
    assert_eq!(
        calm().choose(&without(four(), &[0]), &within(20 * MS, 1)),
        keep(0)
    );
    // Beyond a state of more latency, a deeper one with less is within the limit.
    let table = Table::new(&[poll(), state(90, 10), state(50, 100)]);
    let mut teo = with(&[(0, 0), (0, 0), (8000, 0)]);
    assert_eq!(teo.choose(&table, &within(20 * MS, 50 * US)), stop(2));
}

#[test]
fn n11_the_timer_is_not_asked_for() {
    let asked = |mut teo: Teo, ask: &Ask| {
        let choice = teo.choose(&four(), ask);
        (choice, teo.timer_ns != NO_TIMER)
    };
    let to_one = || with(&[(0, 0), (0, 1000), (0, 0), (0, 0)]);
    let short = |short| Teo {
        short: Fading(short),
        ..to_one()
    };
    assert_eq!(asked(short(500), &ask(20 * MS)), (keep(1), false));
    assert_eq!(asked(short(499), &ask(20 * MS)), (stop(1), true));
    assert_eq!(asked(short(0), &within(20 * MS, 7_500)), (stop(1), true));
    assert_eq!(asked(short(0), &within(20 * MS, 7_499)), (keep(1), false));
    // With the tick stopped it is asked for, and state 3 is deep enough (N12).
    assert_eq!(asked(short(500), &stopped(20 * MS)), (stop(3), true));
    // A state of 100 us is not shallow.
    let to_two = Teo {
        short: Fading(500),
        ..with(&[(0, 0), (0, 0), (0, 1000)])
    };
    assert_eq!(asked(to_two, &ask(20 * MS)), (stop(2), true));
}

#[test]
fn n12_a_stopped_tick_and_a_far_timer() {
    let to_one = || with(&[(0, 0), (0, 1000), (0, 0), (0, 0)]);
    assert_eq!(to_one().choose(&four(), &stopped(8 * MS)), stop(1));
    assert_eq!(to_one().choose(&four(), &stopped(8 * MS + 1)), stop(3));
    // Not beyond the limit, not disabled, not beyond the timer.
    let limited = Ask {
        latency_limit_ns: 60 * US,
        ..stopped(20 * MS)
    };
    assert_eq!(to_one().choose(&four(), &limited), stop(2));
    assert_eq!(
        to_one().choose(&without(four(), &[3]), &stopped(20 * MS)),
        stop(2)
    );
    let deep = Table::new(&[poll(), state(2, 10), state(50, 100), state(200, 30_000)]);
    assert_eq!(to_one().choose(&deep, &stopped(20 * MS)), stop(2));
    // State 0, too, is left for a deeper one.
    let to_zero = with(&[(0, 1000)]).choose(&four(), &stopped(20 * MS));
    assert_eq!(to_zero, stop(3));
    assert_eq!(
        with(&[(0, 1000)]).choose(&four(), &stopped(8 * MS)).state,
        0
    );
}

#[test]
fn n13_the_timer_bounds_the_state() {
    assert_eq!(calm().choose(&four(), &ask(5 * MS)), stop(3));
    assert_eq!(calm().choose(&four(), &ask(5 * MS - 1)), stop(2));
    assert_eq!(calm().choose(&four(), &ask(99 * US)), keep(1));
    assert_eq!(calm().choose(&four(), &ask(9 * US)), keep(0));
    assert_eq!(calm().choose(&four(), &ask(-1)), keep(0));
    assert_eq!(
        calm().choose(&without(four(), &[0, 1]), &ask(9 * US)),
        keep(2)
    );
}

#[test]
fn n13_early_intercepts_keep_the_tick() {
    let early = |early, timer| {
        Teo {
            early: Fading(early),
            ..calm()
        }
        .choose(&four(), &ask(timer))
    };
    // T is 8000: 3 * 5334 >= 16 000, 3 * 5333 is less. State 2 (below a tick) only.
    assert_eq!(early(5333, 4_900 * US), stop(2));
    assert_eq!(early(5334, 4_900 * US), keep(2));
    assert_eq!(early(8000, 20 * MS), stop(3));
}

#[test]
fn n14_a_kept_tick_bounds_the_state() {
    let near = |event_ns| Ask {
        event_ns,
        ..ask(3 * MS)
    };
    assert_eq!(calm().choose(&four(), &near(100 * US)), keep(2));
    assert_eq!(calm().choose(&four(), &near(99 * US)), keep(1));
    assert_eq!(calm().choose(&four(), &near(5 * US)), keep(0));
    assert_eq!(
        calm().choose(&without(four(), &[0]), &near(5 * US)),
        keep(1)
    );
    for (hz, stop_tick) in [(1000, true), (250, false), (100, false)] {
        let mut teo = Teo {
            tick_ns: crate::tick_ns(hz),
            ..calm()
        };
        assert_eq!(
            teo.choose(&four(), &ask(3 * MS)),
            Choice::new(2, stop_tick),
            "{hz}"
        );
    }
}
