// SPDX-License-Identifier: MIT OR Apache-2.0
//! Terminal output, errors, files and processes of programs on the host.

// This crate is for programs of this workspace only. A field with a clear name needs no comment.
#![allow(missing_docs)]

pub mod advance;
pub mod args;
pub mod command;
pub mod digest;
pub mod emulator_process;
pub mod emulator_time;
pub mod failure;
pub mod files;
pub mod folder;
pub mod interrupt;
pub mod log;
pub mod mistake;
pub mod once;
pub mod output;
pub mod partial_files;
pub mod places;
pub mod processor_time;
pub mod progress;
pub mod side_by_side;
pub mod store;
pub mod terminal;
pub mod timings;
