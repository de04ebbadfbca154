// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests scaled tunables, and the request word with every value that it can have.
#![cfg(not(loom))]

use std::sync::atomic::Ordering::Relaxed;

use wait::governor::Tunables;
use wait::request::{CALL, Notice, POLLING, REQUESTS, RESCHED, Request};

/// Runs `act` on a word that holds `value`; returns the result of `act` and the word's value afterwards.
fn apply<T>(value: u32, act: impl Fn(&Request) -> T) -> (T, u32) {
    let request = Request::default();
    request.word().store(value, Relaxed);
    let answer = act(&request);
    (answer, request.word().load(Relaxed))
}

#[test]
fn a_waker_by_every_word() {
    for value in 0..8 {
        for bit in [RESCHED, CALL] {
            for elide in [false, true] {
                let expected = match value {
                    _ if value & bit != 0 => Notice::Coalesced,
                    _ if elide && value & POLLING != 0 => Notice::Elided,
                    _ => Notice::Send,
                };
                let did = apply(value, |request| request.wake(bit, elide));
                assert_eq!(did, (expected, value | bit), "{value} {bit} {elide}");
            }
        }
    }
}

#[test]
fn a_target_by_every_word() {
    for value in 0..8 {
        let requests = value & REQUESTS;
        assert_eq!(apply(value, Request::pending), (requests, value));
        assert_eq!(
            apply(value, Request::start_polling),
            (requests, value | POLLING)
        );
        assert_eq!(apply(value, Request::stop_polling), (requests, requests));
        for bits in 0..8 {
            let taken = value & bits;
            assert_eq!(apply(value, |word| word.take(bits)), (taken, value - taken));
            let finished = apply(value, |word| word.finish_polling(bits));
            assert_eq!(finished, (taken, requests - (taken & REQUESTS)));
        }
    }
}

#[test]
fn times_are_scaled_and_factors_are_not() {
    let scaled = Tunables::GUEST.scaled(|time| time / 1000);
    assert_eq!((scaled.max, scaled.grow_start), (200, 50));
    assert_eq!((scaled.grow, scaled.shrink), (2, 2));
}

#[test]
fn a_time_beyond_the_counter_is_none_that_is_over() {
    let edges = [
        0,
        1,
        2,
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    for count in edges {
        for ticks in edges {
            let then = wait::target::after(count, ticks);
            let exact = u128::from(count) + u128::from(ticks);
            assert_eq!(u128::from(then), exact.min(u64::MAX.into()));
        }
    }
}
