// SPDX-License-Identifier: MIT OR Apache-2.0
//! The neighbour: a second guest of a CPU, which has it while the vCPU waits in a trapped WFI,
//! and in slices of time.
//!
//! It is the reason for trapping WFI: another guest can use a CPU that a guest does not need. To
//! count both sides of that, the neighbour is a whole guest, if a small one: a stage-2 map and a
//! VMID, EL1 registers, floating point, memory. It has no interrupts, no timer, no PMU and no debug
//! registers: these stay the vCPU's, and trap. An interrupt ends its turn.
//!
//! | part | what |
//! |---|---|
//! | [`place`] | its memory and its map |
//! | [`program`] | what it executes, and how it begins |
//! | [`world`] | the registers of the CPU, exchanged |
//! | [`switch`] | the general ones: the way to it and back |
//! | [`turn`] | when it has a turn, and how long |
//! | [`trapped`] | what it does that it may not |
//!
//! Without a neighbour, none of this is executed: a CPU takes other vectors once it has a neighbour
//! ([`crate::cpu::traps`]).

pub mod place;
pub mod program;
pub mod switch;
pub mod trapped;
pub mod turn;
pub mod world;
