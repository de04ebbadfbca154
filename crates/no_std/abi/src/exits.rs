// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page of registers by which programs of the guest, which can't make hypercalls, read what
//! EL2 counts and set its knobs: a device of the guest's tree, mapped by `/dev/mem`.
//!
//! Registers have 64 bits and are accessed as a whole. The accesses are not counted. Other offsets
//! read as zero and ignore writes, a knob ignores a value that it can't take: so a write that
//! matters is read back.

use crate::{Counter, Knob, Shared};

/// The `compatible` of the page in the guest's tree.
pub const COMPATIBLE: &str = "rouse,exits";

/// Bytes of a register.
const REGISTER: u64 = 8;
/// Where the counters of the neighbours begin.
const SHARED: u64 = 0x400;
/// Where the knobs begin.
const KNOBS: u64 = 0x800;

/// Where the sum of `counter` over all vCPUs is, bytes from the page's begin. Read only.
#[must_use]
pub const fn counter(counter: Counter) -> u64 {
    counter as u64 * REGISTER
}

/// Where the sum of `count` over the neighbours of all vCPUs is. Read only.
#[must_use]
pub const fn shared(count: Shared) -> u64 {
    SHARED + count as u64 * REGISTER
}

/// Where `knob` of the vCPU that accesses it is, as [`crate::KnobValue::encode`] has its value.
/// [`Knob::Trap`] and [`Knob::Deliver`] read back as they are, the others as zero.
#[must_use]
pub const fn knob(knob: Knob) -> u64 {
    KNOBS + knob as u64 * REGISTER
}

/// Where [`AGREES`] is read if what EL2 keeps of the interrupts of the vCPU that reads agrees with its
/// list registers, as by [`crate::Call::Audit`] in the mode [`crate::audit::RUNNING_TOLD`]; else
/// [`CONTRADICTS`].
pub const AUDIT: u64 = 0xc00;
/// It agrees. Where there is no such register zero is read, which is neither.
pub const AGREES: u64 = 1;
/// It does not, and what is wrong was printed.
pub const CONTRADICTS: u64 = 2;

/// Register at an offset.
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

/// The register at `offset`, if one begins there.
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
