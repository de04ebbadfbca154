// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lays out the page of registers by which the monitor of `vmm/` reports to its guest how often
//! KVM left the vCPU that reads, by cause.
//!
//! The registers have 64 bits and follow one another. A read of the first one latches all values
//! of that vCPU, and returns its own; reads of the others return the latched values. At
//! [`TOGETHER`] are the sums over all vCPUs, which a read of the first of them latches likewise.
//! The counts leave out the accesses to the page themselves.

use crate::Counter;

/// Counters of the registers, in order. KVM does not distinguish the other exits (writes of SGI
/// registers, interrupts, other system registers), which are all [`Counter::Other`].
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

/// Where the sums over all vCPUs begin, bytes from the page's begin: a program of Linux can't be
/// on all CPUs when it reads.
pub const TOGETHER: u64 = 0x800;

/// Where register `n` of them is, bytes from the page's begin.
#[must_use]
pub const fn together(n: usize) -> u64 {
    TOGETHER + n as u64 * size_of::<u64>() as u64
}
