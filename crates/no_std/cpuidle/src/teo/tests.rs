// SPDX-License-Identifier: MIT OR Apache-2.0
//! By hand. Exit latency and residency of the states, us: 0/0, 2/10, 40/200,
//! 400/2000; the tick is 4 ms.

use super::*;
use crate::table::tests::{TICK, table};

const MS: u64 = 1_000_000;

/// A CPU whose tick goes on and comes in `tick_us`.
fn ticking(tick_us: u64) -> Moment {
    Moment {
        tick_stopped: false,
        next_tick_ns: tick_us * 1000,
        ..Moment::at(0)
    }
}

/// One that has learnt nothing, and chosen before.
fn blank() -> Teo {
    Teo {
        fresh: false,
        ..Teo::new()
    }
}

fn woken(governor: &mut Teo, state: usize, residency_us: u64, wake: Wake) {
    let residency_ns = residency_us * 1000;
    let outcome = Outcome {
        state,
        residency_ns,
        wake,
    };
    governor.reflect(&table(), &outcome);
}

fn metrics(governor: &Teo) -> ([u32; 4], [u32; 4], u32) {
    let bins: [Bin; 4] = core::array::from_fn(|index| governor.bins[index]);
    (
        bins.map(|bin| bin.hits),
        bins.map(|bin| bin.intercepts),
        governor.total,
    )
}

/// The first choice is preceded by no stay: 0 us of state 0, whose L is 0, is an intercept
/// of bin 0, and short. 2 * 1024 > 1024: state 0, and 2 * 1024 >= 1024: without the timer.
/// With WFI as state 0, L 2: 0 - 0 < 2 / 2 is a hit of bin 0. 0 > 1024 - 1024 is false: the
/// deepest state.
#[test]
fn the_first_choice_has_an_event_before_it() {
    let choice = Teo::new().select(&table(), &ticking(4000), || panic!("asked"));
    assert_eq!(choice, Choice::of(&table(), 0, false));
    let halts = Table::new(&table().states()[1..], TICK).unwrap();
    let choice = Teo::new().select(&halts, &ticking(4000), || 10 * MS);
    assert_eq!((choice.state, choice.stop_tick), (2, true));
}

/// Nothing learnt: 2 * 0 > 0 - 0 is false, so the deepest state; the timer, in
/// 10 ms, is beyond its residency and beyond the tick. But 3 * 0 >= 2 * 0 are frequent
/// intercepts, which matter to states that pay within a tick: that stays for them.
#[test]
fn without_events_the_timer_decides() {
    let mut governor = blank();
    let choice = governor.select(&table(), &ticking(4000), || 10 * MS);
    assert_eq!((choice.state, choice.stop_tick), (3, false));
    // Timer in 300 us: 200 <= 300 < 2000, shorter than the tick, which stays.
    let choice = governor.select(&table(), &ticking(4000), || 300_000);
    assert_eq!((choice.state, choice.stop_tick), (2, false));
    // The tick, in 100 us, comes before 200 us: only 10 us pays.
    let choice = governor.select(&table(), &ticking(100), || 300_000);
    assert_eq!((choice.state, choice.stop_tick), (1, false));
}

/// Timer in 10 ms (bin 3), state 3 was entered.
///
/// | residency, us | less L/2 | bin | intercepts afterwards | total |
/// |---|---|---|---|---|
/// | 250 | 250 < 400: 125 | 1 | 1: 1024 | 1024 |
/// | 500 | 500 - 200 = 300 | 2 | 1: 1024 - 128 = 896, 2: 1024 | 1920 |
/// | 450 | 450 - 200 = 250 | 2 | 1: 896 - 112 = 784, 2: 896 + 1024 = 1920 | 2704 |
///
/// Next choice: I = 784 + 1920 = 2704, H = 0, 2 * 2704 > 2704: not the deepest.
/// Bin 2 has most; from above, 2 * 1920 > 2704: state 2.
#[test]
fn intercepts_lead_to_a_shallower_state() {
    let mut governor = blank();
    let states = table();
    let select = |governor: &mut Teo| governor.select(&states, &ticking(4000), || 10 * MS);
    for (index, (residency_us, total)) in [(250, 1024), (500, 1920), (450, 2704)]
        .into_iter()
        .enumerate()
    {
        governor.sleep_length_ns = 10 * MS;
        woken(&mut governor, 3, residency_us, Wake::Interrupt);
        assert_eq!(governor.total, total, "{index}");
    }
    assert_eq!(metrics(&governor), ([0; 4], [0, 784, 1920, 0], 2704));
    let choice = select(&mut governor);
    // All three were within a tick: 3 * 2704 >= 2 * 2704, so a stay of half a tick is
    // expected, and the tick goes on.
    assert_eq!(governor.tick_intercepts, 2704);
    assert_eq!((choice.state, choice.stop_tick), (2, false));
}

/// A stay in the timer's bin counts as a hit only if it is nearer than L/2.
///
/// Timer in 1000 us, state 2 (L 40): 1001 - 20 = 981, missed by 19 < 20: hit of bin 2.
/// Then 1000 - 20 = 980, missed by 20: intercept of bin 2, and 1024 - 128 = 896.
#[test]
fn a_hit_is_close_to_its_timer() {
    let mut governor = blank();
    governor.sleep_length_ns = MS;
    woken(&mut governor, 2, 1001, Wake::Timer);
    assert_eq!(metrics(&governor), ([0, 0, 1024, 0], [0; 4], 1024));
    woken(&mut governor, 2, 1000, Wake::Interrupt);
    assert_eq!(metrics(&governor), ([0, 0, 896, 0], [0, 0, 1024, 0], 1920));
}

/// Six stays of 3 us in WFI (L 2): 2 us each, short, intercepts of bin 0.
///
/// I = total, so 2 I > total: state 0, the only one with intercepts. 2 * short >=
/// total, so the timer is not asked for, and the tick goes on. With the tick
/// stopped it is: in 10 ms > 2 * 4 ms, so the deepest state that pays.
#[test]
fn short_stays_need_no_timer() {
    let mut governor = blank();
    for _ in 0..6 {
        governor.sleep_length_ns = KTIME_MAX;
        woken(&mut governor, 1, 3, Wake::Request);
    }
    assert_eq!(governor.short_idles, governor.total);
    let choice = governor.select(&table(), &ticking(4000), || panic!("asked"));
    assert_eq!(choice, Choice::of(&table(), 0, false));
    let choice = governor.select(&table(), &Moment::at(0), || 10 * MS);
    assert_eq!(choice, Choice::of(&table(), 3, true));
    // A timer within two ticks ends the poll soon enough.
    let choice = governor.select(&table(), &Moment::at(0), || 2 * TICK);
    assert_eq!(choice.state, 0);
}

/// A poll that timed out is taken for a stay up to the timer: a hit.
#[test]
fn a_poll_timeout_speaks_for_deeper_states() {
    let mut governor = blank();
    governor.sleep_length_ns = 10 * MS;
    woken(&mut governor, 0, 10, Wake::PollTimeout);
    assert_eq!(metrics(&governor), ([0, 0, 0, 1024], [0; 4], 1024));
}

/// Tick wake-ups after 3 ms with the timer in 300 ms, from nothing: 3 * 1024 > 2 * (0 +
/// 1024), so the first is a hit of the deepest bin, and so are the next: the tick
/// alone wakes. Against 8 intercepts of bin 1 it is not the main waker:
///
/// after them total = tick_intercepts = x with 3x >= 2x, so the tick's wake-up is
/// an intercept as well, of bin 3 (3000 - 200 = 2800 >= 2000), within a tick.
#[test]
fn the_tick_says_nothing_about_other_wakers() {
    let mut governor = blank();
    governor.sleep_length_ns = 300 * MS;
    woken(&mut governor, 3, 3000, Wake::Tick);
    woken(&mut governor, 3, 3000, Wake::Tick);
    assert_eq!(metrics(&governor).0, [0, 0, 0, 896 + 1024]);

    let mut governor = blank();
    governor.sleep_length_ns = 300 * MS;
    for _ in 0..8 {
        woken(&mut governor, 3, 100, Wake::Interrupt);
    }
    let before = governor.tick_intercepts;
    woken(&mut governor, 3, 3000, Wake::Tick);
    let (hits, intercepts, _) = metrics(&governor);
    assert_eq!((hits, intercepts[3]), ([0; 4], 1024));
    assert_eq!(governor.tick_intercepts, before - (before >> 3) + 1024);
}

/// Without intercepts within a tick, a tick is a hit of the timer's bin: timer in
/// 1 ms (bin 2) after ten hits of it; 3 * 1024 = 3072 <= 2 * (total + 1024).
#[test]
fn a_tick_among_hits_is_a_hit() {
    let mut governor = blank();
    governor.sleep_length_ns = MS;
    for _ in 0..10 {
        woken(&mut governor, 2, 1019, Wake::Timer);
    }
    let (hits, _, total) = metrics(&governor);
    assert!(2 * (total - (total >> 3)) >= 3 * 1024);
    woken(&mut governor, 2, 500, Wake::Tick);
    assert_eq!(metrics(&governor).0[2], hits[2] - (hits[2] >> 3) + 1024);
}

/// 7 >> 3 is 0: the rest goes at once.
#[test]
fn metrics_decay_to_nothing() {
    let mut metric = 1024;
    decay(&mut metric);
    assert_eq!(metric, 896);
    metric = 7;
    decay(&mut metric);
    assert_eq!(metric, 0);
}

/// Intercepts as before, and state 2 off: 2 * 1920 > 2704 already at bin 2, whose
/// state can't be had; at bin 1 it is still true, and 1 <= 2.
#[test]
fn a_disabled_state_is_passed_over() {
    let mut states = table();
    let mut governor = blank();
    for residency_us in [250, 500, 450] {
        governor.sleep_length_ns = 10 * MS;
        woken(&mut governor, 3, residency_us, Wake::Interrupt);
    }
    states.set_enabled(2, false).unwrap();
    let choice = governor.select(&states, &ticking(4000), || 10 * MS);
    assert_eq!(choice.state, 1);
}

/// With a single enabled state there is nothing to ask for. WFI pays from 10 us on,
/// within the tick, which stays on if it is.
#[test]
fn without_a_choice_the_timer_does_not_matter() {
    let mut states = table();
    for index in [0, 2, 3] {
        states.set_enabled(index, false).unwrap();
    }
    let mut governor = blank();
    let choice = governor.select(&states, &ticking(4000), || panic!("asked"));
    assert_eq!(choice, Choice::of(&states, 1, false));
    let choice = governor.select(&states, &Moment::at(0), || panic!("asked"));
    assert_eq!(choice, Choice::of(&states, 1, true));
}

/// Intercepts of bins 0, 1, 2, nothing else.
///
/// - 4, 3, 3: I = 10. 2 * 3 > 10 is false, 2 * (3 + 3) > 10 is true, but bin 0 has
///   most, so state 0.
/// - 4, 4, 2: 2 * (2 + 4) > 10, and bin 1 has as many as bin 0, so state 1.
/// - 0, 4, 6: 2 * 6 > 10, state 2.
#[test]
fn the_choice_is_no_deeper_than_most_intercepts() {
    let choose = |intercepts: [u32; 3]| {
        let mut governor = blank();
        for (bin, intercepts) in governor.bins.iter_mut().zip(intercepts) {
            bin.intercepts = intercepts;
            governor.total += intercepts;
        }
        governor.by_experience(&table())
    };
    let chosen = [[4, 3, 3], [4, 4, 2], [0, 4, 6]].map(choose);
    assert_eq!(chosen, [0, 1, 2]);
}

/// A tick with the timer in 1 ms (bin 2), after hits of bin 2 that decay to 511 of 584, or
/// to 512 of 585: 3 * 1024 = 3072 > 2 * (511 + 1024) = 3070, the tick is the main
/// waker, a hit of the deepest bin; 3072 > 3072 is false, a hit of the timer's.
#[test]
fn two_thirds_of_the_wakers_are_the_main_one() {
    for (hits, deepest) in [(584, 1024), (585, 0)] {
        let mut governor = blank();
        governor.sleep_length_ns = MS;
        governor.bins[2].hits = hits;
        woken(&mut governor, 2, 500, Wake::Tick);
        assert_eq!(metrics(&governor).0[3], deepest);
    }
}
