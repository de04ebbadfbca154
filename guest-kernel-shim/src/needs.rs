// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much RAM this kernel takes beside the image: `cargo xtask
//! run` refuses a machine that has less. Each program says it for itself.

use pages::PAGE;
use sched::load::Load;

use crate::entry::Entry;
use crate::logs::Logs;
use crate::workload::samples::Samples;
use crate::workload::stages::{CPUS, Stamped};
use crate::{kernel, percpu};

/// Page tables: a path to each region that is mapped, and what is left of pages.
pub const FIXED: u64 = 32 * PAGE;
/// For each CPU.
pub const PER_CPU: u64 = percpu::NEEDS + kernel::NEEDS;
/// For each pair of CPUs, one of them calling the other.
pub const PER_PAIR: u64 = kernel::NEEDS_PER_PAIR;
/// For each cell of the plan.
pub const PER_CELL: u64 = size_of::<Entry>() as u64;
/// For each CPU, of each cell of the plan: its load, and its rounds of noise.
pub const PER_CELL_AND_CPU: u64 = (size_of::<Load>() + size_of::<u64>()) as u64;
/// For the samples of one cell.
pub const PER_MEASURED: u64 = (size_of::<Samples>() as u64).next_multiple_of(PAGE);
/// For the stages of one.
pub const PER_STAMPED: u64 = (size_of::<Stamped>() as u64).next_multiple_of(PAGE)
    + (size_of::<[Logs; CPUS]>() as u64).next_multiple_of(PAGE);
/// For each value that is kept.
pub const PER_VALUE: u64 = size_of::<u64>() as u64;
