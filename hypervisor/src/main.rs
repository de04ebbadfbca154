// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rouse's hypervisor: one vCPU on each physical CPU, at EL2, nVHE.
//!
//! Boot order: [`boot`] (assembly, MMU off) → [`start`] (machine description,
//! memory, page tables, GIC, the other CPUs) → `vcpu` (into the guest).
//! From then on a CPU is at EL2 only for an exit: [`vectors`] (assembly) →
//! `exit` (which handler) → back.

#![no_std]
#![no_main]
#![allow(
    dead_code,
    reason = "the guest that uses stage 2 and the exits comes next"
)]

mod boot;
mod dump;
mod layout;
mod log;
mod memory;
mod percpu;

mod smp;
mod start;
mod vectors;
