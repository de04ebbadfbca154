// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limit of a poll (P1).

use crate::trace::Table;

const SHORTEST_NS: i64 = 10_000;

/// Returns the longest poll, in ns, of the poll state of `table`, for a governor that sets no limit itself.
pub fn poll_limit_ns(table: &Table, tick_ns: i64) -> i64 {
    let longest = tick_ns / 16;
    (1..table.len())
        .filter(|&i| table.enabled(i))
        .map(|i| table.residency(i))
        .find(|&residency| residency >= SHORTEST_NS)
        .map_or(longest, |residency| residency.min(longest))
}
