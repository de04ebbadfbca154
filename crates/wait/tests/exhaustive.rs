// SPDX-License-Identifier: MIT OR Apache-2.0
//! The request word by every value that it can have, and scaled tunables.
#![cfg(not(loom))]

use std::sync::atomic::Ordering::Relaxed;

use wait::governor::Tunables;
use wait::request::{CALL, Notice, POLLING, REQUESTS, RESCHED, Request};

/// A word that holds `value`, what `act` answers and what it leaves.
fn after<T>(value: u32, act: impl Fn(&Request) -> T) -> (T, u32) {
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
                let did = after(value, |request| request.wake(bit, elide));
                assert_eq!(did, (expected, value | bit), "{value} {bit} {elide}");
            }
        }
    }
}

#[test]
fn a_target_by_every_word() {
    for value in 0..8 {
        let requests = value & REQUESTS;
        assert_eq!(after(value, Request::pending), (requests, value));
        assert_eq!(
            after(value, Request::start_polling),
            (requests, value | POLLING)
        );
        assert_eq!(after(value, Request::stop_polling), (requests, requests));
        for bits in 0..8 {
            let taken = value & bits;
            assert_eq!(after(value, |word| word.take(bits)), (taken, value - taken));
            let finished = after(value, |word| word.finish_polling(bits));
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
