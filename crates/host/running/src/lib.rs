// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a plan: boards, images, emulators, boots and their sessions.

// This crate is for programs of this workspace only, so a field whose name is clear needs no comment.
#![allow(missing_docs)]

pub mod board;
pub mod boards;
pub mod boot;
pub mod boot_cache;
pub mod card;
pub mod completeness;
pub mod console;
pub mod critical;
pub mod debug;
pub mod disk;
pub mod disturb;
pub mod emulator;
pub mod gem5;
pub mod images;
pub mod job;
pub mod kvm;
pub mod launch;
pub mod limits;
pub mod memory;
pub mod options;
pub mod run;
pub mod session;
pub mod strict;
pub mod traces;
pub mod verdict;
pub mod xen;
