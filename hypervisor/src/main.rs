// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rouse's hypervisor: one vCPU on each physical CPU, at EL2, nVHE.
//!
//! Boot order: [`boot`] (assembly, MMU off; from UEFI through [`efi`]) → [`start`] (what is [`found`], how it
//! is [`divide`]d, page tables, GIC, the other CPUs) → `vcpu` (into the guest).
//! From then on a CPU is at EL2 only for an exit: [`vectors`] (assembly) →
//! [`shortcuts`] (the commonest cases, assembly) or else [`exit`] and [`irq`]
//! (which handler) → back.
//!
//! | what is measured | where |
//! |---|---|
//! | the common case of each of them | [`shortcuts`] |
//! | a trapped WFI or WFE | [`wfx`] |
//! | a trapped SGI, at the sender | [`sgi`] |
//! | the same, at the receiver | [`irq`], [`vgic_cpu`] |
//! | no trap at all | [`deliver`] |

#![no_std]
#![no_main]

mod audit;
mod boot;
mod console;
mod controls;
mod counters;
mod deliver;
mod divide;
mod dump;
mod efi;
mod ending;
mod exit;
mod fault;
mod found;
mod hvc;
mod inject;
mod irq;
mod kick;
mod knobs;
mod log;
mod memory;
mod mmio;
mod pci;
mod percpu;
mod psci;
mod sgi;
mod shortcuts;
mod smp;
mod start;
mod survey;
mod sysreg;
mod trace;
mod vcpu;
mod vectors;
mod vgic_cpu;
mod vm;
mod watchdog;
mod wfx;
