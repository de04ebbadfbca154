// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's own state, and how it is set up for a guest.
//!
//! Nothing here knows about exits or interrupts: every floor above reads and changes this state.

pub mod controls;
pub mod counters;
pub mod fast_state;
pub mod halt;
pub mod local;
pub mod pending_word;
pub mod percpu;
pub mod ring;
pub mod tenant;
pub mod trace;
pub mod traps;
pub mod vcpu;
