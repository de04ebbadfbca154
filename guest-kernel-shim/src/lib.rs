// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rouse's guest: a small kernel at EL1 whose CPUs idle in every way there is
//! and wake each other, and that measures what a wake-up costs.
//!
//! It runs under the hypervisor and, unchanged, on the bare machine. Two programs are
//! made of it, an image each: `measuring/`, which measures and has nothing else, and
//! `trials/`. A program is put on it by [`program!`].
//!
//! | | |
//! |---|---|
//! | [`boot`], [`start`], [`memory`], [`smp`] | from the first instruction to all CPUs running |
//! | [`vectors`], [`dispatch`], [`interrupts`] | what interrupts a CPU, and what is done about it |
//! | [`idle`] | the ways of waiting: what is measured |
//! | [`wake`] | the other side: asking a CPU to leave its idle loop |
//! | [`kernel`] | tasks, timers and function calls, for workloads that are more than a wake-up |
//! | [`workload`], [`mod@block`] | what is run, over and over |
//! | [`mod@bench`], [`workers`], [`knobs`] | the cells, one after another; the CPUs that run them |
//! | [`probe`], [`features`], [`atomics`], [`pmu`], [`report`] | what the machine has and models; records |

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
