// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lays out the page of registers by which the monitor of `vmm/` tells its guest: how often KVM
//! left the vCPU that reads, by cause.
//!
//! There are 64-bit registers, one after another. A read of the first one notes all values of
//! that vCPU, and answers its own; reads of the others answer what was noted. At [`TOGETHER`] are
//! the sums over all vCPUs, which the first of those notes likewise. The accesses to the page
//! themselves are not counted.

use crate::Counter;

/// Counters of the registers, in order. KVM does not tell apart what else ends a vCPU's run: writes
/// of SGI registers, interrupts, other system registers. All of that is [`Counter::Other`].
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
