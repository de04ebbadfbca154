// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes traps to EL2, and builds exceptions that EL2 injects into EL1. Section numbers are those
//! of DDI 0487K.a.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod abort;
pub mod cache;
pub mod esr;
pub mod id;
pub mod inject;
pub mod interface;
pub mod serror;
pub mod sgi;
pub mod sysreg;
pub mod transfer;
pub mod walk;
pub mod wfx;
