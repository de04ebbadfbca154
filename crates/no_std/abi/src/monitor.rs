// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lays out the page of registers in which the monitor in `vmm/` reports KVM's exit counts to its
//! guest: the exits of the vCPU that reads, one register per cause.
//!
//! The registers have 64 bits and follow one another. A read of the first register latches all
//! values of the vCPU that reads, and returns the first value; reads of other registers return the
//! latched values. The sums over all vCPUs are at [`TOGETHER`]; a read of the first sum latches the
//! sums in the same way. The counts do not include accesses to the page itself.

use crate::Counter;

/// The counters in the registers, in order. KVM does not distinguish the other exits (writes of SGI
/// registers, interrupts, other system registers), which all count as [`Counter::Other`].
pub const REGISTERS: [Counter; 8] = [
    Counter::Wfi,
    Counter::Wfe,
    Counter::Hvc,
    Counter::Mmio,
    Counter::Other,
    Counter::PollHit,
    Counter::PollMiss,
    Counter::Halt,
];

/// Offset in the page of the sums over all vCPUs. The sums exist because a Linux program that reads
/// the counts runs on one CPU, not on all.
pub const TOGETHER: u64 = 0x800;

/// Returns the offset in the page of register `n` of the sums.
#[must_use]
pub const fn together(n: usize) -> u64 {
    TOGETHER + n as u64 * size_of::<u64>() as u64
}
