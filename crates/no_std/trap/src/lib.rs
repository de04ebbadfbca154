// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoding what trapped to EL2, and what an exception that EL2 gives to EL1
//! looks like. Section numbers are those of DDI 0487K.a.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod abort;
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
