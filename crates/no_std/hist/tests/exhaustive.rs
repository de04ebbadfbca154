// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the buckets with every value up to a million, and above that with every bucket's edges.

use hist::{BUCKETS, Histogram, index, lowest_in};

/// Checks that the bucket of `value` contains the value, and is narrow enough.
fn check(value: u64) {
    let bucket = index(value);
    assert!(lowest_in(bucket) <= value, "{value}");
    assert!(
        bucket + 1 == BUCKETS || value < lowest_in(bucket + 1),
        "{value}"
    );
    // 0.2 %: a bucket is no wider than a 512th of its values.
    assert!((value - lowest_in(bucket)) * 512 <= value, "{value}");
}

#[test]
fn every_small_value_and_every_edge() {
    let limit = if cfg!(miri) { 3000 } else { 1 << 20 };
    (0..limit).for_each(check);
    for bucket in (0..BUCKETS).step_by(if cfg!(miri) { 97 } else { 1 }) {
        check(lowest_in(bucket));
        check(lowest_in(bucket).saturating_sub(1));
    }
    assert_eq!(index(u64::MAX), BUCKETS - 1);
    assert_eq!(index((1 << 40) - 1), BUCKETS - 1);
}

#[test]
fn what_is_cleared_is_as_new() {
    let mut histogram = Histogram::default();
    [3, 1 << 50, 3]
        .iter()
        .for_each(|&value| histogram.record(value));
    assert_eq!((histogram.count(), histogram.sum()), (3, (1 << 50) + 6));
    assert_eq!(histogram.buckets().next(), Some((3, 2)));
    // There are fewer values than the quantile asks for, so no value has this rank.
    assert_eq!(histogram.quantile(5000), 0);
    histogram.clear();
    assert_eq!((histogram.count(), histogram.sum()), (0, 0));
    assert_eq!((histogram.min(), histogram.max()), (0, 0));
    assert_eq!(histogram.buckets().count(), 0);
}
