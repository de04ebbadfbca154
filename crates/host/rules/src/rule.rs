// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interface of a rule.

use crate::access::Access;
use crate::controls::Controls;
use crate::decode::Operation;
use crate::finding::Place;
use crate::shared_state::Shared;
#[cfg(test)]
use crate::testing::Examples;

/// Description of a rule, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// Condition that has to hold.
    pub says: &'static str,
    /// Document and section.
    pub cites: &'static str,
}

/// State of a CPU when a rule is called.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// The CPU.
    pub cpu: u16,
    /// The instruction. For an exception, the instruction to which it returns, with the level to
    /// which it was taken.
    pub place: Place,
    /// Registers as the CPU wrote them.
    pub controls: &'a Controls,
    /// State that CPUs share.
    pub shared: &'a Shared,
}

impl Now<'_> {
    /// Reports a break of the rule here.
    pub fn report<R: Rule>(&self, other: Option<Place>, what: impl Into<String>) {
        self.report_at::<R>(self.place, other, what);
    }

    /// Reports a break of the rule at `place`.
    pub fn report_at<R: Rule>(&self, place: Place, other: Option<Place>, what: impl Into<String>) {
        let name = R::ABOUT.name;
        self.shared
            .report(name, self.cpu, place, other, what.into());
    }
}

/// A rule, with its state for one CPU. It receives executed instructions. An
/// instruction that trapped or faulted was not executed.
pub trait Rule: Default {
    /// Description, for people.
    const ABOUT: About;

    /// Handles an executed instruction. `value` is the value of its general register: the written
    /// value, the address, or, for a read, the value read if known.
    fn on_instruction(&mut self, _now: &Now<'_>, _operation: Operation, _value: Option<u64>) {}

    /// Handles an instruction that trapped to a higher level, which may emulate it.
    fn on_trap(&mut self, _now: &Now<'_>, _operation: Operation) {}

    /// Handles an access to memory.
    #[inline]
    fn on_access(&mut self, _now: &Now<'_>, _access: &Access) {}

    /// Handles the fetch of instructions in the line of memory at `line`.
    fn on_fetch(&mut self, _now: &Now<'_>, _line: u64) {}

    /// Handles an exception to `level`.
    fn on_level_entry(&mut self, _now: &Now<'_>, _level: u8) {}

    /// Programs that break the rule, and programs that keep it.
    #[cfg(test)]
    const EXAMPLES: Examples;
}

/// Whether `operation` is a context synchronization event (DDI 0487K.a, glossary): ISB or
/// an exception return. The third kind, an exception entry, is not an instruction.
pub fn synchronises(operation: Operation) -> bool {
    matches!(operation, Operation::Isb | Operation::Return)
}
