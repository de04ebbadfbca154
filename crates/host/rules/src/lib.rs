// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the architecture that an emulator does not enforce, checked on what CPUs
//! execute.
//!
//! QEMU is kinder than the architecture: a write to a register takes effect at
//! once, memory has no caches, and every interrupt ends a WFI. Code that leaves out what
//! the architecture requires works there, and may hang on a machine. This crate receives
//! what every CPU executes, in program order, and reports what breaks a rule.
//!
//! [`decode`](decode::decode) selects the instructions that matter. The thread that runs a CPU passes those, its accesses
//! to memory and its exceptions to a [`CheckedCpu`]. State
//! that CPUs have in common is in [`Shared`]. Each rule is a module of `rules`, whose comment says
//! what it looks at and what it can't see; [`RULES`] lists them. A rule keeps
//! what it has to by what it is of, a register, a line or an entry of a table, in a map or a set: a
//! machine has so many of them and no more, however long it runs. It forgets none of it, with two
//! exceptions. `sgi-after-stores` uses windows: the last stores before an SGI and the first
//! reads after it. `caches-agree` keeps the writers of a fixed number of lines, and reports a break of another
//! line without its writer. A limit of the architecture
//! is a rule: more active interrupts than priorities break `interrupt-ended`.

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
