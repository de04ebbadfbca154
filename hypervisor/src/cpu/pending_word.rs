// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests at EL2 from one CPU to another, one bit each, in the target's pending word
//! ([`crate::cpu::vcpu::Vcpu::switch`]). `interrupts::kick` sends them.

pub use vgic::switch::{EVALUATE, SGIS};

/// Leave the halt; there is no further request.
pub const WAKE: u32 = 1 << 17;
/// Print your state and stop; see `dumps::dump`.
pub const DUMP: u32 = 1 << 18;
/// Decide again when to check for failures; see `dumps::own_timer`.
pub const REVIEW: u32 = 1 << 19;

/// The first SGI that is sent through the pending word. This SGI and the following ones may belong to the secure world,
/// so EL2 can't send them as physical SGIs.
pub const FIRST_SGI: u32 = 8;
