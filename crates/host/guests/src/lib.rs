// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests to boot: kernels, their commands and files, the packed image, and its symbols.

// This crate is for programs of this workspace only. A field with a clear name needs no comment.
#![allow(missing_docs)]

pub mod commands;
pub mod debug_info;
pub mod handover;
pub mod kernel;
pub mod pack;
pub mod symbols;
