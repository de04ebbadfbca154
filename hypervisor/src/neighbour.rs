// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the neighbour: a second guest of a CPU, which gets the CPU while the vCPU waits in a
//! trapped WFI, and in slices of time.
//!
//! The neighbour is the reason for trapping WFI: another guest can use a CPU that one guest does not need. To measure
//! what this costs and what it gains, the neighbour is a whole guest, if a small one: it has a stage-2 map and a VMID,
//! EL1 registers, floating point and memory. The neighbour has no interrupts, no timer, no PMU and no debug registers:
//! the vCPU keeps these, and the neighbour's accesses to them trap. An interrupt ends its turn.
//!
//! | part | what |
//! |---|---|
//! | [`place`] | the neighbour's memory and its map |
//! | [`program`] | what it executes, and how it begins |
//! | [`world`] | exchanges the registers of the CPU |
//! | [`switch`] | exchanges the general registers: the way to the neighbour and back |
//! | [`turn`] | when the neighbour has a turn, and for how long |
//! | [`stage1`] | emulates the stage-1 registers of a neighbour whose stage 1 is off |
//! | [`trapped`] | handles forbidden accesses of the neighbour |
//!
//! Without a neighbour, none of this is executed: a CPU takes other vectors once it has a neighbour
//! ([`crate::cpu::traps`]).

pub mod place;
pub mod program;
pub mod stage1;
pub mod switch;
pub mod trapped;
pub mod turn;
pub mod world;
