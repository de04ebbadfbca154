// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rouse's guest: a small kernel at EL1 whose CPUs idle in every possible way and wake each other.
//! The kernel measures the cost of a wake-up.
//!
//! The guest runs under the hypervisor and, unchanged, on the bare machine. Two programs use this kernel, each in
//! its own image: `measuring/`, which only measures, and `trials/`. [`program!`] connects a program to the kernel.
//!
//! | | |
//! |---|---|
//! | [`boot`], [`start`], [`memory`], [`smp`] | from the first instruction to all CPUs running |
//! | [`vectors`], [`dispatch`], [`interrupts`] | the interrupts of a CPU, and their handling |
//! | [`idle`] | the ways of waiting, whose costs are measured |
//! | [`wake`] | the other side: asking a CPU to leave its idle loop |
//! | [`kernel`] | tasks, timers and function calls, for workloads that do more than a wake-up |
//! | [`workload`], [`mod@block`] | the work that runs, over and over |
//! | [`mod@bench`], [`workers`], [`knobs`] | the cells, one after another; the CPUs that run them |
//! | [`probe`], [`features`], [`atomics`], [`pmu`], [`report`] | the machine's features and models; records |

#![no_std]
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "its only users are its two programs; the documentation has the private items"
)]

mod alarm;
mod atomics;
mod bell;
pub mod bench;
mod block;
pub mod boot;
pub mod cache_eviction;
pub mod clock;
mod counts;
mod dispatch;
mod entry;
mod exits;
mod failing;
pub mod features;
mod from_el2;
mod gicv2;
pub mod hypervisor;
pub mod idle;
pub mod interrupts;
pub mod journal;
mod kernel;
pub mod knobs;
pub mod logs;
pub mod machine;
mod memory;
pub mod needs;
pub mod output;
pub mod percpu;
mod planted;
pub mod pmu;
mod probe;
pub mod program;
pub mod report;
pub mod setting;
pub mod smp;
pub mod start;
mod tally;
pub mod target;
pub mod vectors;
pub mod wake;
pub mod workers;
pub mod workload;
