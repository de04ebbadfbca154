// SPDX-License-Identifier: MIT OR Apache-2.0
//! By hand. Exit latency and residency of the states, us: 0/0, 2/10, 40/200,
//! 400/2000; the tick is 4 ms.

use super::*;
use crate::table::tests::{TICK, table};
use crate::{State, StateKind};

const MS: u64 = 1_000_000;

fn ticking() -> Moment {
    Moment {
        tick_stopped: false,
        next_tick_ns: TICK,
        ..Moment::at(0)
    }
}

fn reflect(governor: &mut Menu, state: usize, residency_us: u64, wake: Wake) {
    let outcome = Outcome {
        state,
        residency_ns: residency_us * 1000,
        wake,
    };
    governor.reflect(&table(), &outcome);
}

#[test]
fn buckets_are_powers_of_ten() {
    let buckets = [9_999, 10_000, 999_999, 99 * MS, 100 * MS, FOREVER].map(bucket);
    assert_eq!(buckets, [0, 1, 2, 4, 5, 5]);
}

/// Timer in 5 ms, bucket 3, factor 8192.
///
/// | stay in state 3 | measured | factor |
/// |---|---|---|
/// | 1400 us > 2 * 400 | 1000 | 8192 - 1024 + 1024 * 1000 / 5000 = 7168 + 204 = 7372 |
/// | 600 us < 2 * 400 | 300 | 7372 - 921 + 1024 * 300 / 5000 = 6451 + 61 = 6512 |
///
/// Next: the intervals are 1000, 300 and six 0. Average 162, mean square 136250,
/// variance 110006; 1000 goes, 300 goes with average 42 (90000 / 7 - 1764 = 11093
/// is above 400), the rest is 0: none. 5 ms * 6512 / 8192 = 3.9746 ms >= 2 ms: state 3, and
/// the tick, due in 4 ms, stays.
#[test]
fn the_factor_follows_what_was_slept() {
    let mut governor = Menu::new(Release::Now);
    let mut factors = Vec::new();
    for residency_us in [1400, 600] {
        governor.select(&table(), &ticking(), || 5 * MS);
        reflect(&mut governor, 3, residency_us, Wake::Interrupt);
        factors.push(governor.factors[3]);
    }
    assert_eq!(factors, [7372, 6512]);
    let choice = governor.select(&table(), &ticking(), || 5 * MS);
    assert_eq!((choice.state, choice.stop_tick), (3, false));
    assert_eq!(scaled_us(5 * MS, 6512), 3975);
}

/// Eight stays of 60 us: typical, so WFI whatever the timer is (10 <= 60 < 200).
#[test]
fn a_typical_interval_beats_the_timer() {
    let mut governor = Menu::new(Release::Now);
    for _ in 0..8 {
        governor.select(&table(), &ticking(), || 20 * MS);
        // 62 > 2 * 2: 60.
        reflect(&mut governor, 1, 62, Wake::Interrupt);
    }
    let choice = governor.select(&table(), &ticking(), || 20 * MS);
    assert_eq!((choice.state, choice.stop_tick), (1, false));
    assert_eq!(
        governor.forecast(&table(), &ticking(), || 20 * MS).stay_ns,
        60_000
    );
}

/// Eight stays of 5 us, 5 <= 15: the timer isn't asked for. Of poll and WFI, WFI:
/// it pays from 10 < 15 us on and is left in 2 <= 5 us. Where WFI takes 20 us to
/// pay, polling.
#[test]
fn short_intervals_need_no_timer() {
    let mut governor = Menu::new(Release::Now);
    for _ in 0..8 {
        governor.select(&table(), &ticking(), || 20 * MS);
        reflect(&mut governor, 0, 5, Wake::Request);
    }
    // 5 / 2 > 0, so 5 - 0 = 5.
    let choice = governor.select(&table(), &ticking(), || panic!("asked"));
    assert_eq!((choice.state, choice.stop_tick), (1, false));
    let slow = Table::arm_poll_idle(20_000, TICK).unwrap();
    let choice = governor.select(&slow, &ticking(), || panic!("asked"));
    assert_eq!(choice, Choice::of(&slow, 0, false));
    // The second choice saw one 5 among seven 0, average 0, and didn't ask either. So
    // eight times 1024 * 5 us / forever = 0 was added to the last factor: 8192 7168
    // 6272 5488 4802 4202 3677 3218 2816.
    reflect(&mut governor, 0, 5, Wake::Request);
    assert_eq!(governor.factors[5], 2816);
}

/// Timer in 20 ms: a stay that the tick ended counts as 45 ms, so 20 ms and 1024
/// are added; a poll that timed out counts as 20 ms too.
#[test]
fn safety_nets_speak_for_the_timer() {
    for (state, wake) in [(3, Wake::Tick), (0, Wake::PollTimeout)] {
        let mut governor = Menu::new(Release::Now);
        governor.select(&table(), &ticking(), || 20 * MS);
        reflect(&mut governor, state, 200, wake);
        assert_eq!(governor.factors[4], 8192);
        assert_eq!(
            governor.measured(
                &table(),
                &Outcome {
                    state,
                    residency_ns: 0,
                    wake
                }
            ),
            20 * MS
        );
    }
}

/// Nothing learnt, timer in 20 ms: state 3, and the tick would cut it short. In
/// 3 ms: state 3 within the tick. In 100 us: state 1.
#[test]
fn the_tick_stops_only_for_long_stays() {
    let choices = [20 * MS, 3 * MS, 100_000].map(|timer_ns| {
        let choice = Menu::new(Release::Now).select(&table(), &ticking(), || timer_ns);
        (choice.state, choice.stop_tick)
    });
    assert_eq!(choices, [(3, true), (3, false), (1, false)]);
    // The tick comes first: 200 us don't pay before it.
    let soon = Moment {
        next_tick_ns: 150_000,
        ..ticking()
    };
    assert_eq!(
        Menu::new(Release::Now)
            .select(&table(), &soon, || 300_000)
            .state,
        1
    );
}

/// Eight stays of 60 us and no tick: with a timer in 20 ms > 2 * 4 ms the timer
/// holds, with one in 8 ms the prediction does.
#[test]
fn without_a_tick_only_the_timer_is_safe() {
    let mut governor = Menu::new(Release::Now);
    for _ in 0..8 {
        governor.select(&table(), &ticking(), || 20 * MS);
        reflect(&mut governor, 1, 62, Wake::Interrupt);
    }
    assert_eq!(
        governor.select(&table(), &Moment::at(0), || 20 * MS).state,
        3
    );
    assert_eq!(
        governor.select(&table(), &Moment::at(0), || 8 * MS).state,
        1
    );
}

/// A typical stay of 20 us, and a timer in 5: polls, as WFI would not pay before it (10
/// us). A typical stay of 8 us and WFI that pays from 20 us on, left in 2: polls, as
/// 20 > 15; WFI that pays from 14 us on is taken. A typical stay of 1 us: polls, as
/// leaving WFI takes longer.
#[test]
fn polls_are_for_short_stays_and_slow_halts() {
    let choose = |residency_us: u64, stay_us: u64, timer_us: u64, moment: &Moment| {
        let poll = State::new("poll", StateKind::Poll, 0, 0);
        let wfi = State::new("wfi", StateKind::Wfi, 2_000, residency_us * 1000);
        let states = Table::new(&[poll, wfi], TICK).unwrap();
        let mut governor = Menu::new(Release::Now);
        for _ in 0..8 {
            governor.intervals.add(stay_us * 1000);
        }
        let choice = governor.select(&states, moment, || timer_us * 1000);
        choice.state
    };
    // Also without a tick, which could put it right.
    assert_eq!(choose(10, 20, 5, &ticking()), 0);
    assert_eq!(choose(10, 20, 5, &Moment::at(0)), 0);
    assert_eq!(choose(20, 8, 1000, &ticking()), 0);
    assert_eq!(choose(14, 8, 1000, &ticking()), 1);
    assert_eq!(choose(14, 1, 1000, &ticking()), 0);
}

/// Eight stays of 10 ms, longer than a tick, and a state that pays from 20 ms on; the
/// timer is in 30 ms. With the tick on, it stays on: there will be another choice. With
/// it off, the CPU could be stuck for 30 ms in a state that pays from 200 us on, so it
/// goes deeper; one that pays from 5 ms on, beyond the tick, is deep enough.
#[test]
fn between_two_states_the_tick_decides() {
    let choose = |residency_us: u64, moment: &Moment| {
        let standby = State::new("standby", StateKind::Standby, 0, residency_us * 1000);
        let deep = State::new("deep", StateKind::Standby, 0, 20 * MS);
        let states = Table::new(&[standby, deep], TICK).unwrap();
        let mut governor = Menu::new(Release::Now);
        for _ in 0..8 {
            governor.intervals.add(10 * MS);
        }
        let choice = governor.select(&states, moment, || 30 * MS);
        (choice.state, choice.stop_tick)
    };
    assert_eq!(choose(200, &ticking()), (0, false));
    assert_eq!(choose(200, &Moment::at(0)), (1, true));
    assert_eq!(choose(5000, &Moment::at(0)), (0, true));
}

/// WFI as first state, the next pays from 200 us on; timer in 100 us, tick in 50: WFI, and
/// the tick is stopped. With a poll as first state that goes on.
#[test]
fn a_timer_that_is_near_decides_at_once() {
    let wfi = State::new("wfi", StateKind::Wfi, 0, 0);
    let poll = State::new("poll", StateKind::Poll, 0, 0);
    let standby = State::new("standby", StateKind::Standby, 40_000, 200_000);
    let soon = Moment {
        next_tick_ns: 50_000,
        ..ticking()
    };
    for release in [Release::V6_2, Release::V6_14, Release::Now] {
        for (first, stop_tick) in [(wfi, true), (poll, false)] {
            let states = Table::new(&[first, standby], TICK).unwrap();
            let choice = Menu::new(release).select(&states, &soon, || 100_000);
            assert_eq!(
                (choice.state, choice.stop_tick),
                (0, stop_tick),
                "{release:?}"
            );
        }
    }
}

/// Timer in 20 ms, nothing learnt: the prediction is 20 ms, but for the typical interval 0
/// of the first releases, for which 0 is as good as any other: eight stays of 1 s come
/// first. The deepest state takes 400 us to leave: with one waiter 20 ms / 11 = 1818 us are
/// tolerated, with ten 20 ms / 101 = 198 us, and only what leaves in 40 us is deep enough.
/// With the tick stopped nothing is tolerated less.
#[test]
fn tasks_that_wait_for_devices_want_short_latencies() {
    let choose = |release: Release, io_waiters: u32, moment: Moment| {
        let mut governor = Menu::new(release);
        for _ in 0..8 {
            governor.intervals.add(1_000 * MS);
        }
        let moment = Moment {
            io_waiters,
            ..moment
        };
        governor.select(&table(), &moment, || 20 * MS).state
    };
    assert_eq!(
        [0, 1, 10].map(|waiters| choose(Release::V6_2, waiters, ticking())),
        [3, 3, 2]
    );
    assert_eq!(choose(Release::V6_2, 10, Moment::at(0)), 3);
    assert_eq!(choose(Release::V6_14, 10, ticking()), 3);
    assert_eq!(choose(Release::Now, 10, ticking()), 3);
}

/// A stay of 10 of 20 ms with a waiter: its own factor of the bucket becomes 7168 + 512,
/// that without one stays.
#[test]
fn stays_with_waiters_have_factors_of_their_own() {
    let mut governor = Menu::new(Release::V6_2);
    let waiting = Moment {
        io_waiters: 2,
        ..ticking()
    };
    governor.select(&table(), &waiting, || 20 * MS);
    reflect(&mut governor, 2, 10_040, Wake::Interrupt);
    assert_eq!(governor.factors[4], 8192);
    assert_eq!(governor.factors[BUCKETS + 4], 7680);
}

/// Poll, and a standby state that is left in 250 us and pays from 300 us on; the typical
/// stay is 200 us, the timer far. 6.14 tolerates at most 200 us of latency: the poll stays.
/// A state that is left in 150 us only has to pay before the timer. Today polls give way
/// only to states that pay within 15 us.
#[test]
fn the_prediction_bounds_the_latency_of_early_releases() {
    let choose = |release: Release, exit_ns: u64| {
        let poll = State::new("poll", StateKind::Poll, 0, 0);
        let standby = State::new("standby", StateKind::Standby, exit_ns, 300_000);
        let states = Table::new(&[poll, standby], TICK).unwrap();
        let mut governor = Menu::new(release);
        for _ in 0..8 {
            governor.intervals.add(200_000);
        }
        governor.open = false;
        governor.select(&states, &ticking(), || 20 * MS).state
    };
    for release in [Release::V6_2, Release::V6_14] {
        assert_eq!(
            (choose(release, 250_000), choose(release, 150_000)),
            (0, 1),
            "{release:?}"
        );
    }
    assert_eq!(
        (choose(Release::Now, 250_000), choose(Release::Now, 150_000)),
        (0, 0)
    );
}

/// Seven stays of 60 us, and a state that could not be entered: the unknown stay is left
/// out since 6.17 only, so for 6.14 the eighth one is the 0 of the beginning.
#[test]
fn a_stay_that_was_refused_is_unknown() {
    for (release, oldest) in [(Release::Now, None), (Release::V6_14, Some(0))] {
        let mut governor = Menu::new(release);
        for _ in 0..7 {
            governor.intervals.add(60_000);
        }
        governor.select(&table(), &ticking(), || 20 * MS);
        let expected = match oldest {
            None => Some(60),
            // 7 of 60 and a 0: average 52, variance (7 * 64 + 2704) / 8 = 394 <= 400.
            Some(_) => Some(52),
        };
        let typical = match release {
            Release::Now => governor.intervals.typical(),
            _ => governor.intervals.typical_of_low(),
        };
        assert_eq!(typical, expected, "{release:?}");
    }
}
