// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rouse's hypervisor: one vCPU on each physical CPU, at EL2, nVHE.
//!
//! Boot order: [`boot::entry`] (assembly, MMU off; from UEFI through [`boot::efi`]) →
//! [`boot::start`] ([`boot::discovery`], [`boot::memory_split`], page tables, GIC, the other CPUs)
//! → [`exits::enter`] (into the guest). From then on, a CPU is at EL2 only for an exit:
//! [`exits::vectors`] (assembly) → [`exits::fast_paths`] (the most common cases, assembly) or else
//! [`exits::synchronous`] and [`interrupts::irq`] (which choose the handler) → back.
//!
//! | what is measured | where |
//! |---|---|
//! | the common case of each row below | [`exits::fast_paths`] |
//! | a trapped WFI or WFE | [`exits::wfx`] |
//! | a trapped SGI, at the sender | [`exits::sgi`] |
//! | a trapped SGI, at the receiver | [`interrupts::irq`], [`interrupts::vgic_cpu`] |
//! | a guest without traps | [`interrupts::deliver`] |
//!
//! Each module below is a floor: it uses only itself and the floors under it.
//! `docs/architecture.md` lists the floors in order, and a test checks that order.

#![no_std]
#![no_main]

mod boot;
mod console;
mod cpu;
mod dumps;
mod exits;
mod interrupts;
mod machine;
mod neighbour;
mod planted;
