// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface that every rule implements.

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
    /// The name of the rule.
    pub name: &'static str,
    /// The condition that must hold.
    pub says: &'static str,
    /// The document and section that require it.
    pub cites: &'static str,
}

/// State of a CPU when a rule is called.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// The CPU.
    pub cpu: u16,
    /// The current instruction. For an exception, this is the instruction to which the handler will return, with the
    /// level to which the exception was taken.
    pub place: Place,
    /// Control registers, as the CPU wrote them.
    pub controls: &'a Controls,
    /// State that CPUs share.
    pub shared: &'a Shared,
}

impl Now<'_> {
    /// Reports that the current instruction breaks the rule.
    pub fn report<R: Rule>(&self, other: Option<Place>, what: impl Into<String>) {
        self.report_at::<R>(self.place, other, what);
    }

    /// Reports that the instruction at `place` breaks the rule.
    pub fn report_at<R: Rule>(&self, place: Place, other: Option<Place>, what: impl Into<String>) {
        let name = R::ABOUT.name;
        self.shared
            .report(name, self.cpu, place, other, what.into());
    }
}

/// A rule, with its state for one CPU. Rules receive only executed instructions. An instruction that trapped or faulted
/// was not executed.
pub trait Rule: Default {
    /// Description, for people.
    const ABOUT: About;

    /// Handles an executed instruction. `value` is the value of its general register: the written value, the address,
    /// or, for a read, the value that was read, if known.
    fn on_instruction(&mut self, _now: &Now<'_>, _operation: Operation, _value: Option<u64>) {}

    /// Handles an instruction that trapped to a higher level, which may emulate it.
    fn on_trap(&mut self, _now: &Now<'_>, _operation: Operation) {}

    /// Handles an access to memory.
    #[inline]
    fn on_access(&mut self, _now: &Now<'_>, _access: &Access) {}

    /// Handles a failed access to the virtual address `address` at a level below EL2: the access took an exception to
    /// EL2, which may emulate the access.
    fn on_failed_access(&mut self, _now: &Now<'_>, _address: u64) {}

    /// Handles the fetch of instructions in the line of memory at `line`.
    fn on_fetch(&mut self, _now: &Now<'_>, _line: u64) {}

    /// Handles an exception to `level`.
    fn on_level_entry(&mut self, _now: &Now<'_>, _level: u8) {}

    /// Programs that break the rule, and programs that keep it.
    #[cfg(test)]
    const EXAMPLES: Examples;
}

/// Whether `operation` is a context synchronization event (DDI 0487K.a, glossary): ISB or an exception return. An
/// exception entry is one too, but it is not an instruction.
pub fn synchronises(operation: Operation) -> bool {
    matches!(operation, Operation::Isb | Operation::Return)
}
