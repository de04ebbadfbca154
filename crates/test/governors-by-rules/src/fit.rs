// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a candidate gives way to a shallower state (M10, T11, U3, N13, N14).

use crate::trace::Table;

/// The next enabled state shallower than `from` with a target residency of at most `ns`. Without one, the shallowest
/// enabled state below `from`; without any, `from`. `poll`: whether a polling state counts.
pub(crate) fn give_way(table: &Table, from: usize, ns: i64, poll: bool) -> usize {
    let below = || (0..from).filter(|&i| table.enabled(i) && (poll || !table.polls(i)));
    below()
        .rev()
        .find(|&i| table.residency(i) <= ns)
        .or_else(|| below().next())
        .unwrap_or(from)
}

/// The deepest state with a target residency of at most `ns`, enabled or not, else 0 (T1).
pub(crate) fn bin(table: &Table, ns: i64) -> usize {
    (0..table.len())
        .rev()
        .find(|&i| table.residency(i) <= ns)
        .unwrap_or(0)
}
