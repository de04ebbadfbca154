// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::*;
use crate::trace::NO_TIMER;

const TICK: i64 = 4 * MS;

fn teo() -> TeoRecent {
    TeoRecent::new(Utilisation::Ignored, EarlyAnswer::AsAny, TICK, 1024)
}

fn util(utilisation: Utilisation) -> TeoRecent {
    TeoRecent {
        fresh: false,
        ..TeoRecent::new(utilisation, EarlyAnswer::AsAny, TICK, 1024)
    }
}

/// teo whose bins are given as (hits, intercepts) and that forgot the last nine events.
fn with(bins: &[(u32, u32)]) -> TeoRecent {
    let mut teo = TeoRecent {
        fresh: false,
        ..teo()
    };
    for (bin, &(hits, intercepts)) in teo.bins.iter_mut().zip(bins) {
        *bin = Bin { hits, intercepts };
    }
    teo
}

fn busy(timer_ns: i64, utilisation: u64) -> Ask {
    Ask {
        utilisation,
        ..ask(timer_ns)
    }
}

/// One event: asked with `timer_ns`, then told.
fn event(teo: &mut TeoRecent, table: &Table, timer_ns: i64, event: &Event) {
    teo.choose(table, &ask(timer_ns));
    teo.learn(table, event);
}

fn counts(teo: &TeoRecent) -> Vec<(u32, u32)> {
    teo.bins[..4]
        .iter()
        .map(|bin| (bin.hits, bin.intercepts))
        .collect()
}

#[test]
fn t1_the_bin_of_a_duration() {
    let table = without(four(), &[1, 2]);
    let edges = [
        (-1, 0),
        (0, 0),
        (9_999, 0),
        (10_000, 1),
        (99_999, 1),
        (100_000, 2),
        (4_999_999, 2),
    ];
    for (ns, expected) in edges {
        assert_eq!(bin(&table, ns), expected, "{ns}");
    }
    assert_eq!(bin(&table, NO_TIMER), 3);
    // Bin 0 begins at 0 even where state 0 wants more.
    assert_eq!(bin(&three(), 1_999), 0);
}

#[test]
fn t2_what_counts_as_measured() {
    let table = four();
    let mut teo = TeoRecent {
        timer_ns: 20 * MS,
        ..teo()
    };
    let of = |teo: &TeoRecent, sleep: Sleep| teo.measured_ns(&table, &sleep);
    // State 3: L 200 us.
    assert_eq!(of(&teo, sleep(3, 200_000)), 100_000);
    assert_eq!(of(&teo, sleep(3, 199_999)), 99_999);
    assert_eq!(of(&teo, sleep(3, 1_000_000)), 900_000);
    // The span counts for being on time, not the sleep.
    let late = Sleep {
        span_ns: 20 * MS,
        ..sleep(3, 19 * MS)
    };
    assert_eq!(of(&teo, late), i64::MAX);
    assert_eq!(
        of(
            &teo,
            Sleep {
                span_ns: 20 * MS - 1,
                ..late
            }
        ),
        18_900_000
    );
    let tick = Sleep {
        by_tick: true,
        ..sleep(2, 3 * MS)
    };
    assert_eq!(of(&teo, tick), i64::MAX);
    assert_eq!(
        of(
            &teo,
            Sleep {
                poll_limit_hit: true,
                ..sleep(0, 1)
            }
        ),
        i64::MAX
    );
    // The tick at a timer not beyond a tick is a wake-up like any other.
    teo.timer_ns = TICK;
    assert_eq!(of(&teo, tick), 2_975_000);
}

#[test]
fn t3_hits_intercepts_and_their_decay() {
    let table = four();
    let mut teo = with(&[(7, 8), (0, 1024), (1023, 0), (0, 0)]);
    // 7 keeps 7, 8 loses 1, 1024 loses 128, 1023 loses 127. 3 ms asked, 60 us slept in state 2:
    // 35 us, bin 1.
    event(&mut teo, &table, 3 * MS, &slept(2, 60 * US));
    assert_eq!(counts(&teo), [(7, 7), (0, 896 + 1024), (896, 0), (0, 0)]);
    event(&mut teo, &table, 3 * MS, &slept(2, 3 * MS));
    assert_eq!(counts(&teo), [(7, 7), (0, 1680), (784 + 1024, 0), (0, 0)]);
    event(&mut teo, &table, 3 * MS, &Event::Refused);
    assert_eq!(counts(&teo), [(7, 7), (0, 1680), (784 + 1024, 0), (0, 0)]);
    // A sleep longer than its timer by the clock of the state, but not by the span: a hit.
    let odd = Sleep {
        span_ns: 2 * MS,
        ..sleep(1, 4 * MS)
    };
    event(&mut teo, &table, 3 * MS, &Event::Slept(odd));
    assert_eq!(counts(&teo)[2], (1808 - 226 + 1024, 0));
}

#[test]
fn t4_the_last_nine() {
    let table = four();
    let mut teo = TeoRecent {
        fresh: false,
        ..teo()
    };
    for _ in 0..9 {
        event(&mut teo, &table, 3 * MS, &slept(2, 60 * US));
    }
    assert_eq!(teo.recent_in(1..2), 9);
    for left in (0..9).rev() {
        event(&mut teo, &table, 3 * MS, &slept(2, 3 * MS));
        assert_eq!(teo.recent_in(1..2), left);
    }
}

#[test]
fn t5_the_first_choice_finds_a_hit_in_the_bin_of_0() {
    let mut teo = teo();
    teo.choose(&four(), &ask(20 * MS));
    assert_eq!(counts(&teo), [(1024, 0), (0, 0), (0, 0), (0, 0)]);
    teo.choose(&four(), &ask(20 * MS));
    assert_eq!(counts(&teo)[0], (1024, 0));
}

#[test]
fn t6_one_state_and_a_near_timer() {
    let one = Table::new(&[state(1, 1)]);
    assert_eq!(teo().choose(&one, &ask(20 * MS)), stop(0));
    assert_eq!(teo().choose(&one, &ask(TICK)), stop(0));
    assert_eq!(teo().choose(&one, &ask(TICK - 1)), keep(0));
    assert_eq!(teo().choose(&Table::new(&[poll()]), &ask(20 * MS)), keep(0));
    assert_eq!(teo().choose(&four(), &ask(10 * US - 1)), keep(0));
    assert_eq!(teo().choose(&four(), &ask(10 * US)), keep(1));
    // Only state 0 enabled: the tick stops for a far timer.
    assert_eq!(
        teo().choose(&without(three(), &[1, 2]), &ask(20 * MS)),
        stop(0)
    );
}

#[test]
fn t7_the_deepest_the_timer_allows() {
    assert_eq!(teo().choose(&four(), &ask(100 * US)), keep(2));
    assert_eq!(teo().choose(&four(), &ask(100 * US - 1)), keep(1));
    assert_eq!(teo().choose(&four(), &ask(5 * MS)), stop(3));
    assert_eq!(teo().choose(&four(), &ask(-1)), keep(0));
    assert_eq!(teo().choose(&without(four(), &[2]), &ask(MS)), keep(1));
    // The first enabled one even where the timer is nearer; it has no shallower one.
    assert_eq!(
        teo().choose(&without(four(), &[0, 1]), &ask(20 * US)),
        keep(2)
    );
    assert_eq!(
        teo().choose(&without(four(), &[0, 1, 2, 3]), &ask(20 * MS)),
        keep(0)
    );
    assert_eq!(
        teo().choose(&without(three(), &[0, 1, 2]), &ask(20 * MS)),
        stop(0)
    );
}

#[test]
fn t8_more_intercepts_than_the_rest() {
    // 2 * 1000 > 1000 + 1000 + rest: the rest must be below 1000. Hits below do not count.
    let rest = |hits| with(&[(5000, 0), (0, 1000), (0, 0), (hits, 0)]);
    assert_eq!(rest(1000).choose(&four(), &ask(20 * MS)), stop(3));
    assert_eq!(rest(999).choose(&four(), &ask(20 * MS)), keep(1));
}

#[test]
fn t8_five_of_the_last_nine() {
    let recent = |count: usize| {
        let mut teo = with(&[(0, 0), (0, 0), (0, 0), (9000, 0)]);
        teo.recent = (0..9).map(|i| (i < count).then_some(1)).collect();
        teo
    };
    assert_eq!(recent(4).choose(&four(), &ask(20 * MS)), stop(3));
    assert_eq!(recent(5).choose(&four(), &ask(20 * MS)), keep(1));
}

#[test]
fn t9_the_deepest_with_more_than_half() {
    // From state 3 down: 400 of 1000 in bin 2, 900 in bins 1 and 2.
    let teo = || with(&[(0, 100), (0, 500), (0, 400), (0, 0)]);
    assert_eq!(teo().choose(&four(), &ask(20 * MS)), keep(1));
    // State 1 disabled: state 2 was set aside; its span of 2.55 ms keeps the tick.
    assert_eq!(teo().choose(&without(four(), &[1]), &ask(20 * MS)), keep(2));
    // Both disabled: the candidate with the timer.
    assert_eq!(
        teo().choose(&without(four(), &[1, 2]), &ask(20 * MS)),
        stop(3)
    );
    // Exactly half is not more.
    let half = with(&[(0, 300), (0, 200), (0, 500), (0, 0)]).choose(&four(), &ask(20 * MS));
    assert_eq!(half, keep(1));
}

#[test]
fn t9_both_sums_must_agree() {
    let mut teo = with(&[(0, 600), (0, 100), (0, 700), (0, 0)]);
    // By intercepts state 1 would do (800 of 1400), by the recent ones only state 0.
    teo.recent = [Some(0), Some(0), Some(0), Some(0), Some(0), Some(2)].into();
    assert_eq!(teo.choose(&four(), &ask(20 * MS)), keep(0));
}

#[test]
fn t9_a_stopped_tick_wants_a_long_span() {
    // Bins up to 2; the spans are 5 us, 55 us, 2550 us: none is a tick of 4 ms.
    let teo = || with(&[(0, 100), (0, 500), (0, 400), (0, 0)]);
    assert_eq!(teo().choose(&four(), &stopped(20 * MS)), stop(3));
    // At 1000 Hz state 2's span is long enough: it is set aside, state 1's is not.
    let at_1000 = TeoRecent {
        tick_ns: MS,
        ..teo()
    };
    assert_eq!(at_1000.clone().choose(&four(), &stopped(20 * MS)), stop(2));
    // Set aside, it lets the search go on over states that do not fit.
    let mut deep = TeoRecent {
        tick_ns: MS,
        ..with(&[(0, 900), (0, 50), (0, 50), (0, 0)])
    };
    assert_eq!(deep.choose(&four(), &stopped(20 * MS)), stop(2));
}

#[test]
fn t10_the_latency_limit() {
    assert_eq!(teo().choose(&four(), &within(20 * MS, 200 * US)), stop(3));
    // The expected duration is still the timer: the tick may stop.
    assert_eq!(
        teo().choose(&four(), &within(20 * MS, 200 * US - 1)),
        stop(2)
    );
    assert_eq!(teo().choose(&four(), &within(20 * MS, 2 * US - 1)), keep(0));
    assert_eq!(teo().choose(&four(), &within(20 * MS, 0)), keep(0));
    assert_eq!(teo().choose(&three(), &within(20 * MS, 0)), stop(0));
    // State 0 is the last resort even if disabled.
    let disabled = without(four(), &[0]);
    assert_eq!(teo().choose(&disabled, &within(20 * MS, 1)), keep(0));
    // A deeper state with less latency is within the limit.
    let table = Table::new(&[poll(), state(90, 10), state(50, 100)]);
    assert_eq!(teo().choose(&table, &within(20 * MS, 50 * US)), stop(2));
}

#[test]
fn t11_a_kept_tick_bounds_the_state() {
    let early = |event_ns| Ask {
        event_ns,
        ..ask(3 * MS)
    };
    assert_eq!(teo().choose(&four(), &early(100 * US)), keep(2));
    assert_eq!(teo().choose(&four(), &early(99 * US)), keep(1));
    assert_eq!(teo().choose(&four(), &early(9 * US)), keep(0));
    assert_eq!(teo().choose(&four(), &early(-1)), keep(0));
    assert_eq!(
        teo().choose(&without(four(), &[0]), &early(9 * US)),
        keep(1)
    );
    let late = Ask {
        tick_stopped: true,
        ..early(9 * US)
    };
    assert_eq!(teo().choose(&four(), &late), stop(2));
    for (hz, stop_tick) in [(1000, true), (250, false), (100, false)] {
        let mut teo = TeoRecent::new(
            Utilisation::Ignored,
            EarlyAnswer::AsAny,
            crate::tick_ns(hz),
            1024,
        );
        assert_eq!(
            teo.choose(&four(), &ask(3 * MS)),
            Choice::new(2, stop_tick),
            "{hz}"
        );
    }
}

#[test]
fn u1_the_threshold() {
    // 1024 / 64 = 16; 1000 / 64 = 15.
    let chosen = |capacity, utilisation| {
        let mut teo = TeoRecent::new(Utilisation::Posted, EarlyAnswer::AsAny, TICK, capacity);
        teo.choose(&four(), &busy(20 * MS, utilisation)).state
    };
    assert_eq!(chosen(1024, 16), 3);
    assert_eq!(chosen(1024, 17), 2);
    assert_eq!(chosen(1000, 15), 3);
    assert_eq!(chosen(1000, 16), 2);
    assert_eq!(chosen(0, 1), 2);
    assert_eq!(teo().choose(&four(), &busy(20 * MS, 1024)), stop(3));
}

#[test]
fn u2_two_states_as_posted() {
    let used = |table: &Table| util(Utilisation::Posted).choose(table, &busy(20 * MS, 17));
    let pair = Table::new(&[state(1, 1), state(50, 100)]);
    assert_eq!(used(&pair), stop(0));
    let polling = Table::new(&[poll(), state(50, 100)]);
    assert_eq!(used(&polling), stop(1));
    assert_eq!(used(&without(pair, &[0])), stop(1));
    // State 1 disabled: none is left that does not poll, the usual way ends with state 0.
    assert_eq!(used(&without(polling.clone(), &[1])), keep(0));
    // The near timer comes first.
    assert_eq!(
        util(Utilisation::Posted).choose(&polling, &busy(99 * US, 17)),
        keep(0)
    );
}

#[test]
fn u3_one_shallower_as_posted() {
    let used = |table: &Table, ask: &Ask| util(Utilisation::Posted).choose(table, ask);
    // The expected duration is still the timer.
    assert_eq!(used(&four(), &busy(20 * MS, 17)), stop(2));
    assert_eq!(used(&four(), &busy(MS, 17)), keep(1));
    // Below state 1 only the poll state is left.
    assert_eq!(used(&four(), &busy(50 * US, 17)), keep(1));
    assert_eq!(used(&without(four(), &[2]), &busy(20 * MS, 17)), stop(1));
    assert_eq!(used(&three(), &busy(3 * MS, 17)), keep(0));
}

#[test]
fn u4_two_states_as_corrected() {
    let used = |table: &Table, ask: &Ask| util(Utilisation::Corrected).choose(table, ask);
    let pair = Table::new(&[state(1, 1), state(50, 100)]);
    // The span of 50.5 us keeps the tick.
    assert_eq!(used(&pair, &busy(20 * MS, 17)), keep(0));
    let polling = Table::new(&[poll(), state(50, 100)]);
    assert_eq!(used(&polling, &busy(20 * MS, 17)), keep(1));
    assert_eq!(used(&without(polling, &[1]), &busy(20 * MS, 17)), keep(0));
    // A stopped tick: 50.5 us are too short for state 0.
    let late = Ask {
        tick_stopped: true,
        ..busy(20 * MS, 17)
    };
    assert_eq!(used(&pair, &late), stop(1));
    assert_eq!(used(&without(pair.clone(), &[1]), &late), stop(0));
    let deep = Table::new(&[state(1, 1), state(50, 9000)]);
    assert_eq!(used(&deep, &late), stop(0));
}

#[test]
fn u5_one_shallower_as_corrected() {
    let used = |table: &Table, ask: &Ask| util(Utilisation::Corrected).choose(table, ask);
    // State 2's span of 2.55 ms keeps the tick.
    assert_eq!(used(&four(), &busy(20 * MS, 17)), keep(2));
    let late = Ask {
        tick_stopped: true,
        ..busy(20 * MS, 17)
    };
    assert_eq!(used(&four(), &late), stop(3));
    // The candidate itself stays: only the poll state is below it; its span is its R / 2.
    let table = Table::new(&[poll(), state(1, 8000), state(900, 90_000)]);
    assert_eq!(used(&table, &busy(20 * MS, 17)), stop(1));
    let table = Table::new(&[poll(), state(1, 7998), state(1, 7999)]);
    let bounded = without(table, &[1]);
    // R(2) / 2 = 3 999 500 ns, below a tick.
    assert_eq!(used(&bounded, &busy(20 * MS, 17)), keep(2));
}

#[test]
fn u6_an_early_answer_keeps_the_tick() {
    let keeping = || TeoRecent {
        early_answer: EarlyAnswer::KeepsTick,
        ..util(Utilisation::Corrected)
    };
    let one = Table::new(&[state(1, 1)]);
    assert_eq!(keeping().choose(&one, &ask(20 * MS)), keep(0));
    assert_eq!(
        keeping().choose(&without(three(), &[0, 1, 2]), &ask(20 * MS)),
        keep(0)
    );
    // A timer of 20 ms is nearer than 30 ms.
    let deep = Table::new(&[state(1, 1), state(50, 30_000)]);
    assert_eq!(
        util(Utilisation::Corrected).choose(&deep, &ask(20 * MS)),
        stop(0)
    );
    assert_eq!(keeping().choose(&deep, &ask(20 * MS)), keep(0));
    // U4 with state 0: its span of 15 ms would stop the tick.
    assert_eq!(
        util(Utilisation::Corrected).choose(&deep, &busy(40 * MS, 17)),
        stop(0)
    );
    assert_eq!(keeping().choose(&deep, &busy(40 * MS, 17)), keep(0));
    // The only enabled state: its R counts, not the timer.
    let alone = |residency_us| {
        let table = Table::new(&[poll(), state(1, residency_us)]);
        keeping().choose(&without(table, &[0]), &ask(20 * MS))
    };
    assert_eq!(alone(3999), keep(1));
    assert_eq!(alone(4000), stop(1));
    // With the tick stopped a choice other than the early ones says so.
    assert_eq!(
        keeping().choose(&without(four(), &[0]), &stopped(20 * MS)),
        stop(3)
    );
}
