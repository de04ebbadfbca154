// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much RAM is taken beside the image, for whoever gives it: `cargo xtask run`
//! refuses a machine that has less.

use pages::PAGE;

use crate::bench::Entry;
use crate::workload::Samples;
use crate::workload::stages::Stamped;
use crate::{kernel, percpu};

/// Page tables: a path to each region that is mapped, and what is left of pages.
const FIXED: u64 = 32 * PAGE;

arch::needs!(
    __needs_fixed = FIXED,
    __needs_per_cpu = percpu::NEEDS + kernel::NEEDS,
    __needs_per_cell = size_of::<Entry>() as u64,
    __needs_per_measured = (size_of::<Samples>() as u64).next_multiple_of(PAGE),
    __needs_per_stamped = (size_of::<Stamped>() as u64).next_multiple_of(PAGE),
    __needs_per_value = size_of::<u64>() as u64,
);
