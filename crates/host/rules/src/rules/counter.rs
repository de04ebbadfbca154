// SPDX-License-Identifier: MIT OR Apache-2.0
//! A context synchronization event must come before a counter is read for a measurement.
//!
//! A core may read a counter early, before preceding instructions have completed. A context synchronization event
//! prevents this. A deadline does not need the event, because it may be a little early or late. A read is for a
//! measurement if its value is stored unchanged, or if something is subtracted from it ([`decode_before`]). At most
//! [`FEW`] accesses to memory may be between the event and the read. So an exception entry, after which code saves
//! registers, still counts as the event.
//!
//! Not seen: a value that leaves its block of code in a register, such as the start time of a duration.
//!
//! [`decode_before`]: crate::decode::decode_before

use crate::access::Access;
use crate::decode::Operation;
use crate::rule::{About, Now, Rule, synchronises};
#[cfg(test)]
use crate::testing::Examples;

/// Enough accesses to save the registers on an exception, at one or two registers per access.
const FEW: u32 = 32;

/// See the module.
#[derive(Debug, Default)]
pub struct CounterInOrder {
    /// Number of accesses to memory since the last context synchronization event.
    accesses: u32,
}

impl Rule for CounterInOrder {
    const ABOUT: About = About {
        name: "counter-in-order",
        says: "a context synchronization event before a counter is read for a measurement",
        cites: "DDI 0487K.a, D12.1.3 and D12.2.1 (reads of a counter can be done out of order)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        if synchronises(operation) {
            self.accesses = 0;
        }
        if let Operation::Measure { register } = operation
            && self.accesses > FEW
        {
            now.report::<Self>(
                None,
                format!("{register} is read for a measurement without an ISB before it"),
            );
        }
    }

    #[inline]
    fn on_access(&mut self, _: &Now<'_>, _: &Access) {
        self.accesses = self.accesses.saturating_add(1);
    }

    fn on_level_entry(&mut self, _: &Now<'_>, _: u8) {
        self.accesses = 0;
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[("work", "33 * ldr A")],
        breaks: "
            work, then the time: work; measure
        ",
        keeps: "
            ISB: work; isb; measure
            an exception: work; irq 2; measure
            a deadline: work; mrs CNTVCT_EL0
        ",
    };
}
