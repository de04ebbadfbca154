// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the measurements: the cells of the plan, one after another.

#![no_std]
#![no_main]

use guest_kernel_shim::{bench, needs, program};
use pages::Pool;
use plan::{Arguments, Program};

program!(Program::Measuring, run, do_nothing);

arch::needs!(
    __needs_fixed = needs::FIXED,
    __needs_per_cpu = needs::PER_CPU,
    __needs_per_pair = needs::PER_PAIR,
    __needs_per_cell = needs::PER_CELL,
    __needs_per_cell_and_cpu = needs::PER_CELL_AND_CPU,
    __needs_per_measured = needs::PER_MEASURED,
    __needs_per_stamped = needs::PER_STAMPED,
    __needs_per_value = needs::PER_VALUE,
);

/// Runs the measurements that the boot arguments ask for; returns the exit status.
fn run(arguments: &Arguments<'static>, pool: &mut Pool) -> u64 {
    let seed = arguments.seed.unwrap_or(1);
    bench::run(&arguments.plan, seed, pool);
    0
}

/// The task of a CPU that was started; it does nothing.
fn do_nothing() {}
