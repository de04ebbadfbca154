// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the instructions of CPUs against rules of the architecture that an emulator does not enforce.
//!
//! QEMU is more forgiving than the architecture: a write to a register takes effect at once, memory has no caches, and
//! every interrupt ends a WFI. Code that neglects a requirement of the architecture works on QEMU, and may hang on a
//! real machine. This crate receives the instructions of every CPU in program order, and reports the instructions that
//! break a rule.
//!
//! [`decode`](decode::decode) selects the instructions that rules use. The thread that runs a CPU passes these
//! instructions, the CPU's accesses to memory and its exceptions to a [`CheckedCpu`]. State that CPUs share is in
//! [`Shared`]. Each rule is a module of `rules`, whose comment describes what the rule checks and what it can't see.
//! [`RULES`] lists the rules. A rule keeps its state in a map or a set, whose keys are registers, lines of memory or
//! entries of a table. A machine has a fixed number of these keys, however long it runs. So rules need not forget any
//! state, with two exceptions. `sgi-after-stores` uses windows: the last stores before an SGI and the first reads after
//! it. `caches-agree` records the writers of only a fixed number of lines, and reports a violation on any other line
//! without naming the writer. One limit is the architecture's own: there can't be more active interrupts than
//! priorities without a violation of `interrupt-ended`.

pub mod decode;
pub mod gic;
pub mod register;

mod access;
mod attributes;
mod barriers;
mod controls;
mod cpu;
mod finding;
mod lines;
mod rule;
mod rules;
mod shared_state;
mod tables;
#[cfg(test)]
mod testing;

pub use access::Access;
pub use cpu::{CheckedCpu, ExecutedOperation};
pub use finding::{Finding, Place};
pub use rule::About;
pub use rules::RULES;
pub use shared_state::{Machine, Shared};
