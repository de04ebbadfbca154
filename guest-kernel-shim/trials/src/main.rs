// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the trials: they check the platform's duties to a guest, the limits imposed on a hostile
//! guest, and the invariants that must always hold, and they measure each path that has a cost.
//!
//! | | |
//! |---|---|
//! | [`checks`] | checks of what the platform owes a guest |
//! | [`mod@cost`] | every path that has a cost, between marks |
//! | [`hostile`] | a guest that tries to do damage |
//! | [`soak`] | random operations, and the invariants that must hold meanwhile |
//! | [`records`] | the reports of trials |
//!
//! The trials use the same kernel as the measuring program: this package's library.

#![no_std]
#![no_main]

mod checks;
mod cost;
mod hostile;
mod records;
mod soak;
mod system_registers;

use guest_kernel_shim::{needs, output, program, report};
use pages::Pool;
use plan::{Arguments, Program};
use soak::Mix;

program!(Program::Trials, run, cost::note_started);

arch::needs!(
    __needs_fixed = needs::FIXED + needs::PER_MEASURED,
    __needs_per_cpu = needs::PER_CPU,
    __needs_per_pair = needs::PER_PAIR,
);

/// Runs the trial that the boot arguments name; returns the exit status.
fn run(arguments: &Arguments<'static>, pool: &mut Pool) -> u64 {
    let plan = &arguments.plan;
    let seed = arguments.seed.unwrap_or(1);
    let soaks = [(arguments.soak, Mix::All), (arguments.stress, Mix::WakeUps)];
    let soak = soaks
        .into_iter()
        .find_map(|(count, mix)| Some((count?, mix)));
    if let Some(check) = arguments.check {
        announce_end(checks::run(check, plan))
    } else if let Some(which) = arguments.cost {
        cost::run(which, plan, arguments.cost_brief, arguments.cost_cold);
        announce_end(0)
    } else if let Some((count, mix)) = soak {
        let done = soak::run(count, seed, mix, arguments.fault);
        let status = announce_end(u64::from(done.is_err()));
        if let Err(why) = done {
            output::print(format_args!("soak: {why}"));
        }
        status
    } else if let Some(class) = arguments.hostile {
        announce_end(hostile::run(class, seed, plan, pool).min(1))
    } else {
        arguments.fault.map_or(1, |fault| checks::fail(fault, plan))
    }
}

/// Announces that the records are complete; returns `status`.
fn announce_end(status: u64) -> u64 {
    report::report_end(0);
    status
}
