// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rouse's guest: a small kernel at EL1 whose CPUs idle in every way there is
//! and wake each other, and that measures what a wake-up costs.
//!
//! It runs under the hypervisor and, unchanged, on the bare machine.
//!
//! | | |
//! |---|---|
//! | [`boot`], [`start`], [`memory`], [`smp`] | from the first instruction to all CPUs running |
//! | [`vectors`], [`interrupts`] | what interrupts a CPU |
//! | [`idle`] | the ways of waiting: what is measured |
//! | [`wake`] | the other side: asking a CPU to leave its idle loop |
//! | [`kernel`] | tasks, timers and function calls, for workloads that are more than a wake-up |
//! | [`workload`] | what is run, over and over |
//! | [`mod@bench`], [`crew`] | the cells, one after another; the CPUs that run them |
//! | [`checks`] | what the platform owes a guest, tried out |
//! | [`mod@cost`] | every path that has a price, between marks |
//! | [`hostile`] | a guest that means harm |
//! | [`soak`] | everything at random, and what must hold all the while |
//! | [`probe`], [`pmu`], [`report`] | what the machine models; records |

#![no_std]
#![no_main]

mod alarm;
mod bench;
mod boot;
mod checks;
mod clock;
mod cost;
mod crew;
mod hostile;
mod hypervisor;
mod idle;
mod interrupts;
mod kernel;
mod memory;
mod needs;
mod output;
mod percpu;
mod pmu;
mod probe;
mod random;
mod report;
mod smp;
mod soak;
mod start;
mod tally;
mod vectors;
mod wake;
mod workload;
