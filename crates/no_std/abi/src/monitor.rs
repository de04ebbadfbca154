// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of the page of registers in which the monitor in `vmm/` reports to its guest how often
//! the reading vCPU exited from KVM, by cause.
//!
//! The registers have 64 bits and follow one another. A read of the first one latches all values
//! of that vCPU, and returns its own; reads of the others return the latched values. The sums over
//! all vCPUs are at [`TOGETHER`]; a read of the first sum latches them in the same way. The counts
//! do not include accesses to the page itself.

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

/// Offset in the page of the sums over all vCPUs: a Linux program can't be on all CPUs when it
/// reads.
pub const TOGETHER: u64 = 0x800;

/// Offset in the page of the sums' register `n`.
#[must_use]
pub const fn together(n: usize) -> u64 {
    TOGETHER + n as u64 * size_of::<u64>() as u64
}
