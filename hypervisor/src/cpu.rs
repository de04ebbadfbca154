// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's own state, and how it is set up for a guest.
//!
//! This module does not depend on exits or interrupts; modules on every higher floor read and change this state.

pub mod controls;
pub mod counters;
pub mod fast_state;
pub mod gicv2;
pub mod halt;
pub mod local;
pub mod pending_word;
pub mod percpu;
pub mod ring;
pub mod tenant;
pub mod trace;
pub mod traps;
pub mod vcpu;
