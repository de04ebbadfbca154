// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries translation tables of the guest at an unmapped address, at a device, or in the hypervisor: the table walk
//! faults in stage 2.

use abi::Info;

use super::attempt::{Outcome, run_attempt, with_simd};
use super::shapes::{self, Kind};
use super::tally::Tally;
use super::window::{self, TABLE};
use guest_kernel_shim::hypervisor;
use guest_kernel_shim::machine::platform;
use platform::Gic;
use sched::random::Random;

/// DFSC and IFSC: synchronous external abort on a table walk, level 0.
const WALK: u64 = 0x14;

/// Runs the class.
pub fn run(tally: &mut Tally, _random: &mut Random) {
    let platform = platform();
    let base = hypervisor::info(Info::Base);
    let elsewhere = if platform.memory[0].contains(base) {
        0x7fff_0000_0000
    } else {
        base
    };
    let targets = [
        ("nothing", 0x1000),
        ("the distributor", platform.gic.distributor.base),
        ("the GIC's other frames", second_frame(&platform.gic)),
        ("the UART", platform.uart.map_or(0, |uart| uart.base)),
        ("the end of RAM", platform.memory[0].end()),
        ("the hypervisor", elsewhere),
        ("beyond every address", 0x4000_0000_0000),
    ];
    let tables = || {
        for (name, target) in targets {
            for level in 1..=3 {
                // The table of this level is at the target address.
                window::set_descriptor(level - 1, target | TABLE);
                try_unreadable_table(tally, name, level);
                window::restore_tables();
            }
        }
        for (name, target) in targets {
            for level in [1, 2] {
                try_block(tally, name, target, level);
                window::restore_tables();
            }
        }
    };
    with_simd(|| window::run_with_window(tables));
}

/// Returns the address of a frame of `gic` next to the distributor: a redistributor, or a GICv2's CPU interface, which
/// stage 2 maps as a device, so a walk faults there, too.
fn second_frame(gic: &Gic<'_>) -> u64 {
    match gic.version2 {
        Some(version2) => version2.gicc.base,
        None => gic.redistributors[0].base,
    }
}

/// Tries every access through a table that can't be read.
fn try_unreadable_table(tally: &mut Tally, name: &str, level: u64) {
    let place = window::ADDRESS + 0x240;
    for shape in shapes::all() {
        // SAFETY: nothing can be reached through the broken table.
        let outcome = unsafe { run_attempt(shape.code, place, 0) };
        let good = match shape.kind {
            Kind::Maintenance | Kind::Harmless => {
                outcome.returned() || has_faulted(&outcome, place, level)
            }
            _ => has_faulted(&outcome, place, level),
        };
        tally.case(
            good,
            format_args!(
                "{} with the level {level} table at {name}: {outcome}",
                shape.name
            ),
        );
    }
    // SAFETY: as above.
    let outcome = unsafe { run_attempt(window::ADDRESS, 0, 0) };
    let good = outcome.trap().is_some_and(|trap| {
        trap.class() == 0x21 && trap.fault() == WALK + level && trap.far == window::ADDRESS
    });
    tally.case(
        good,
        format_args!("fetch with the level {level} table at {name}: {outcome}"),
    );
}

fn has_faulted(outcome: &Outcome, place: u64, level: u64) -> bool {
    outcome.trap().is_some_and(|trap| {
        trap.class() == 0x25 && trap.fault() == WALK + level && trap.far == place
    })
}

/// Tries a block that maps an unmapped address, or an address of a smaller device.
fn try_block(tally: &mut Tally, name: &str, target: u64, level: u64) {
    let size = if level == 1 { 1 << 30 } else { 1 << 21 };
    // A block (bits 1:0 are 0b01) of accessed, normal memory.
    let start = target & !(size - 1);
    window::set_descriptor(level, start | 0x705 | 3 << 53);
    let place = window::ADDRESS + (size - 0x8000);
    let beyond = start + (size - 0x8000);
    if platform().memory[0].contains(beyond) {
        return;
    }
    for shape in shapes::all().filter(|shape| shape.kind == Kind::Load) {
        // SAFETY: the guest has neither memory nor a device there, so an access changes nothing.
        let outcome = unsafe { run_attempt(shape.code, place, 0) };
        tally.case(
            outcome.abort_at(place),
            format_args!(
                "{} in a level {level} block at {name}: {outcome}",
                shape.name
            ),
        );
    }
}
