// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declares the RAM that this kernel takes besides the image: `cargo xtask run` refuses a machine
//! that has less. Each program declares its own need.

use pages::PAGE;
use sched::load::Load;

use crate::entry::Entry;
use crate::logs::Logs;
use crate::workload::samples::Samples;
use crate::workload::stages::{CPUS, Stamped};
use crate::{kernel, percpu};

/// Bytes for page tables that map every region, and for the unused ends of pages.
pub const FIXED: u64 = 32 * PAGE;
/// Bytes for each CPU.
pub const PER_CPU: u64 = percpu::NEEDS + kernel::NEEDS;
/// Bytes for each ordered pair of CPUs: one calls the other.
pub const PER_PAIR: u64 = kernel::NEEDS_PER_PAIR;
/// Bytes for each cell of the plan.
pub const PER_CELL: u64 = size_of::<Entry>() as u64;
/// Bytes for each CPU and cell of the plan: for the CPU's load and its rounds of noise.
pub const PER_CELL_AND_CPU: u64 = (size_of::<Load>() + size_of::<u64>()) as u64;
/// Bytes for the samples of one cell.
pub const PER_MEASURED: u64 = (size_of::<Samples>() as u64).next_multiple_of(PAGE);
/// Bytes for the stages of one cell.
pub const PER_STAMPED: u64 = (size_of::<Stamped>() as u64).next_multiple_of(PAGE)
    + (size_of::<[Logs; CPUS]>() as u64).next_multiple_of(PAGE);
/// Bytes for each sample value that is kept besides the histogram.
pub const PER_VALUE: u64 = size_of::<u64>() as u64;
