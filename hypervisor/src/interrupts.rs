// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts: taking physical ones, making virtual ones pending, telling other CPUs.

pub mod audit;
pub mod deliver;
pub mod irq;
pub mod kick;
pub mod vgic_cpu;
