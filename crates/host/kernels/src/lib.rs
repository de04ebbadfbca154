// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds arm64 kernels from source and patches, below `target/kernels`.
//!
//! A kernel is made of a [`source`], of patches and of a configuration. The kernel's folder is named after these
//! parts. The next version of a patch or of a tree therefore has the same folder, and `make` only recompiles what
//! depends on a changed file. The folder's `source` is a copy of the source's files. Patches are applied elsewhere
//! ([`apply`]), and the patched files replace those of the copy ([`tree`]). Nothing is ever written to a tree of the
//! user.

#![forbid(unsafe_code)]
// This crate is only for programs of this workspace, so a field with a clear name needs no comment.
#![allow(missing_docs)]

mod apply;
mod build;
mod compiler;
mod config;
mod diff;
mod folder;
mod kernel;
mod loose;
mod mail;
mod restore;
mod source;
mod tree;

pub use kernel::{KernelArgs, built, images, kernel};
