// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes physical interrupts, makes virtual interrupts pending, and notifies other CPUs.

pub mod audit;
pub mod deliver;
pub mod irq;
pub mod kick;
pub mod version2;
pub mod vgic_cpu;
