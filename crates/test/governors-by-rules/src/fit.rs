// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a shallower state in place of a candidate (M10, T11, U3, N13, N14), and the bin of a duration (T1).

use crate::trace::Table;

/// Returns the next enabled state shallower than `from` with a target residency of at most `ns`. If there is none,
/// returns the shallowest enabled state below `from`, or `from` if there is none either. `poll` states whether a
/// polling state may be returned.
pub(crate) fn give_way(table: &Table, from: usize, ns: i64, poll: bool) -> usize {
    let below = || (0..from).filter(|&i| table.enabled(i) && (poll || !table.polls(i)));
    below()
        .rev()
        .find(|&i| table.residency(i) <= ns)
        .or_else(|| below().next())
        .unwrap_or(from)
}

/// Returns the deepest state with a target residency of at most `ns`, enabled or not, or else 0 (T1).
pub(crate) fn bin_of(table: &Table, ns: i64) -> usize {
    (0..table.len())
        .rev()
        .find(|&i| table.residency(i) <= ns)
        .unwrap_or(0)
}
