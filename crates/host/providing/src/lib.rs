// SPDX-License-Identifier: MIT OR Apache-2.0
//! Provides tools: Debian packages, QEMU, gem5, TF-A, U-Boot, the toolchain's Cargo, and a browser.

// This crate is only for programs of this workspace, so a field with a clear name needs no comment.
#![allow(missing_docs)]

pub mod apt;
pub mod bao;
pub mod browser;
pub mod compiler;
pub mod gem5;
pub mod linux_trees;
pub mod manager;
pub mod qemu;
pub mod toolchain;
pub mod trusted_firmware;
pub mod u_boot;
