// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lays out a page of registers through which user programs of the guest read EL2's counters and
//! set its knobs, because they can't make hypercalls. The page is a device of the guest's device
//! tree, mapped via `/dev/mem`.
//!
//! Registers have 64 bits and are accessed as a whole. The counters do not include accesses to this
//! page. Other offsets read as zero and ignore writes. A knob ignores invalid values: check a write by a read.

use crate::{Counter, Knob, Shared};

/// The `compatible` of the page in the guest's tree.
pub const COMPATIBLE: &str = "rouse,exits";

/// Size of a register in bytes.
const REGISTER: u64 = 8;
/// Offset of the neighbours' counters.
const SHARED: u64 = 0x400;
/// Offset of the knobs.
const KNOBS: u64 = 0x800;

/// Returns the offset, within the page, of `counter` summed over all vCPUs. Read-only.
#[must_use]
pub const fn counter(counter: Counter) -> u64 {
    counter as u64 * REGISTER
}

/// Returns the offset of `count` summed over all vCPUs' neighbours. Read-only.
#[must_use]
pub const fn shared(count: Shared) -> u64 {
    SHARED + count as u64 * REGISTER
}

/// Returns the offset of `knob` of the accessing vCPU; [`crate::KnobValue::encode`] encodes the
/// value. [`Knob::Trap`] and [`Knob::Deliver`] read back their values; other knobs read as zero.
#[must_use]
pub const fn knob(knob: Knob) -> u64 {
    KNOBS + knob as u64 * REGISTER
}

/// Offset of a register; each read of it audits the vCPU that reads, like [`crate::Call::Audit`] in
/// mode [`crate::audit::RUNNING_TOLD`]. The register reads as [`AGREES`] if EL2's record of that
/// vCPU's interrupts agrees with the vCPU's list registers, otherwise as [`CONTRADICTS`].
pub const AUDIT: u64 = 0xc00;
/// EL2's record agrees. If a page has no audit register, the offset reads as zero.
pub const AGREES: u64 = 1;
/// EL2's record does not agree, and EL2 has printed the mismatch.
pub const CONTRADICTS: u64 = 2;

/// The register at an offset of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// A counter.
    Counter(Counter),
    /// A counter of the neighbours.
    Shared(Shared),
    /// A knob.
    Knob(Knob),
    /// [`AUDIT`].
    Audit,
}

/// Returns the register at `offset`, if one begins there.
#[must_use]
pub fn at(offset: u64) -> Option<Register> {
    let number = |offset: u64| (offset / REGISTER) as usize;
    if !offset.is_multiple_of(REGISTER) {
        return None;
    }
    if offset == AUDIT {
        return Some(Register::Audit);
    }
    if let Some(offset) = offset.checked_sub(KNOBS) {
        return Knob::ALL.get(number(offset)).copied().map(Register::Knob);
    }
    if let Some(offset) = offset.checked_sub(SHARED) {
        return Shared::ALL
            .get(number(offset))
            .copied()
            .map(Register::Shared);
    }
    Counter::ALL
        .get(number(offset))
        .copied()
        .map(Register::Counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_register_is_where_it_is_said_to_be() {
        for &which in Counter::ALL {
            assert_eq!(at(counter(which)), Some(Register::Counter(which)));
            assert_eq!(at(counter(which) + 4), None);
        }
        for &which in Shared::ALL {
            assert_eq!(at(shared(which)), Some(Register::Shared(which)));
        }
        for &which in Knob::ALL {
            assert_eq!(at(knob(which)), Some(Register::Knob(which)));
        }
        assert_eq!(at(AUDIT), Some(Register::Audit));
        assert_eq!(at(AUDIT + 8), None);
        assert_eq!(at(counter(Counter::SlowHalt) + 8), None);
        assert_eq!(at(0xff8), None);
    }
}
