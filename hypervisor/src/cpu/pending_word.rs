// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of one CPU to another at EL2, one bit each, in the target's pending word
//! ([`crate::cpu::vcpu::Vcpu::switch`]). `interrupts::kick` sends them.

pub use vgic::switch::{EVALUATE, SGIS};

/// Just leave the halt.
pub const WAKE: u32 = 1 << 17;
/// Print your state and stop; see `dumps::dump`.
pub const DUMP: u32 = 1 << 18;
/// Decide again when to check for failures; see `dumps::own_timer`.
pub const REVIEW: u32 = 1 << 19;

/// The first SGI that is sent through the pending word. It and those that follow may belong to the
/// secure world, so they can't be sent as themselves.
pub const FIRST_SGI: u32 = 8;
