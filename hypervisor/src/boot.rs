// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way from the loader's jump to a running guest.

pub mod alone;
pub mod discovery;
pub mod efi;
pub mod entry;
pub mod memory_split;
pub mod pci;
pub mod smp;
pub mod start;
pub mod survey;
pub mod watchdogs;
