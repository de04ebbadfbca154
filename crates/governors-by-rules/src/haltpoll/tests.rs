// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::*;
use crate::trace::Sleep;

fn table() -> Table {
    Table::new(&[poll(), state(1, 1)])
}

fn after(parameters: HaltpollParameters, blocked: &[i64]) -> Vec<u64> {
    let mut haltpoll = Haltpoll::new(parameters, 4 * MS);
    blocked
        .iter()
        .map(|&ns| {
            haltpoll.learn(&table(), &slept(1, ns));
            haltpoll.limit_ns()
        })
        .collect()
}

#[test]
fn h2_limit_zero_polls() {
    assert_eq!(
        Haltpoll::new(HaltpollParameters::V6_9, 4 * MS).choose(&table(), &within(MS, 0)),
        keep(0)
    );
}

#[test]
fn h3_h4_poll_then_halt() {
    let mut haltpoll = Haltpoll::new(HaltpollParameters::V6_9, 4 * MS);
    assert_eq!(haltpoll.choose(&table(), &ask(MS)), stop(1));
    haltpoll.learn(&table(), &slept(1, 40 * US));
    assert_eq!(haltpoll.choose(&table(), &ask(MS)), keep(0));
    haltpoll.learn(&table(), &slept(0, 20 * US));
    assert_eq!(haltpoll.choose(&table(), &ask(MS)), keep(0));
    haltpoll.learn(&table(), &limit_hit(50 * US));
    assert_eq!(haltpoll.choose(&table(), &ask(MS)), stop(1));
    // Refused: the last state is still the poll that ended for its limit.
    haltpoll.learn(&table(), &Event::Refused);
    assert_eq!(haltpoll.choose(&table(), &ask(MS)), stop(1));
    haltpoll.learn(&table(), &slept(1, 10 * US));
    assert_eq!(haltpoll.choose(&table(), &ask(MS)), keep(0));
}

#[test]
fn h5_growing() {
    let p = HaltpollParameters::V6_9;
    // At least the start, doubled, at most the maximum.
    assert_eq!(
        after(p, &[1, 60_000, 120_000, 200_000]),
        [50_000, 100_000, 200_000, 200_000]
    );
    // Equal to the limit is not more; 0 is not more than 0.
    assert_eq!(
        after(p, &[0, 1, 50_000, 50_001]),
        [0, 50_000, 50_000, 100_000]
    );
    let odd = HaltpollParameters {
        start_ns: 60_000,
        ..p
    };
    assert_eq!(
        after(odd, &[1, 60_001, 120_001]),
        [60_000, 120_000, 200_000]
    );
    // 3 * 2^31 is cut to 2^31, which is not below the start.
    let huge = HaltpollParameters {
        maximum_ns: u32::MAX,
        start_ns: 1 << 31,
        grow: 3,
        ..p
    };
    assert_eq!(after(huge, &[1, (1 << 31) + 1]), [1 << 31, 1 << 31]);
    let never = HaltpollParameters {
        start_ns: 0,
        grow: 0,
        ..p
    };
    assert_eq!(after(never, &[1, 1000]), [0, 0]);
}

#[test]
fn h6_shrinking() {
    let up = [1, 60_000, 120_000];
    let then = |p, more: &[i64]| after(p, &[&up[..], more].concat())[3..].to_vec();
    let long = 200_001;
    let new = HaltpollParameters::V6_9;
    let old = HaltpollParameters::V6_2;
    assert_eq!(then(new, &[200_000]), [200_000]);
    assert_eq!(then(new, &[long; 4]), [100_000, 50_000, 0, 0]);
    assert_eq!(then(old, &[long; 4]), [100_000, 50_000, 25_000, 12_500]);
    assert_eq!(then(HaltpollParameters { shrink: 0, ..new }, &[long]), [0]);
    assert_eq!(
        then(
            HaltpollParameters {
                allow_shrink: false,
                ..new
            },
            &[long]
        ),
        [200_000]
    );
    assert_eq!(then(new, &[i64::MAX]), [100_000]);
}

#[test]
fn h7_polling_leaves_the_limit() {
    let mut haltpoll = Haltpoll::new(HaltpollParameters::V6_9, 4 * MS);
    haltpoll.learn(&table(), &slept(1, 1));
    haltpoll.learn(&table(), &slept(0, MS));
    let late = Sleep {
        by_tick: true,
        ..sleep(0, MS)
    };
    haltpoll.learn(&table(), &Event::Slept(late));
    assert_eq!(haltpoll.limit_ns(), 50_000);
}

#[test]
fn h8_one_state() {
    let table = Table::new(&[poll()]);
    assert_eq!(
        Haltpoll::new(HaltpollParameters::V6_9, 4 * MS).choose(&table, &ask(MS)),
        keep(0)
    );
}

#[test]
fn h9_polling_without_a_limit_sets_it() {
    let mut haltpoll = Haltpoll::new(HaltpollParameters::V6_9, 4 * MS);
    assert_eq!(haltpoll.own_limit_ns(&table()), 250_000);
    haltpoll.choose(&table(), &within(MS, 0));
    haltpoll.learn(&table(), &slept(0, 10 * US));
    assert_eq!(haltpoll.limit_ns(), 250_000);
    assert_eq!(haltpoll.choose(&table(), &ask(MS)), keep(0));
}
