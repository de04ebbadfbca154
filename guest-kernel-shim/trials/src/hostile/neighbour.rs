// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the hostile CPU a neighbour, if the plan names one: another guest, which also tries forbidden accesses, and
//! which no trial here may harm.

use core::cell::Cell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use abi::{KnobValue, Neighbour, Shared};
use arch::insn;
use plan::Plan;

use super::tally::Tally;
use crate::system_registers::System;
use guest_kernel_shim::{clock, hypervisor};

/// Whether CPUs have neighbours.
static THERE: AtomicBool = AtomicBool::new(false);

/// Length of a slice, in us. A class takes at least a few milliseconds, so it spans many slices.
const SLICE_US: u32 = 50;

/// Records whether the plan asks for neighbours.
pub fn note_plan(plan: &Plan) {
    THERE.store(plan.lists.neighbour.values[0].is_there(), Relaxed);
}

/// Whether CPUs have neighbours.
pub fn has_neighbours() -> bool {
    THERE.load(Relaxed)
}

/// Gives the running CPU its neighbour, which runs in slices and during a trapped WFE.
pub fn give_neighbour() {
    if has_neighbours() {
        hypervisor::set_knob(KnobValue::Slice(clock::us_to_ticks(SLICE_US)));
        hypervisor::set_knob(KnobValue::YieldOnWfe(true));
        hypervisor::set_knob(KnobValue::Neighbour(Neighbour::Hostile));
    }
}

/// Checks that the neighbour has made progress and that none of its state has changed. Then ends
/// the neighbour.
pub fn check_and_end(tally: &mut Tally) {
    if !has_neighbours() {
        return;
    }
    let slices = || hypervisor::neighbour_counts()[Shared::Slices as usize];
    let before = slices();
    let kept = Cell::new(true);
    // If CPUs are threads of a busy host, a slice may begin late, so this waits for it.
    let turns = clock::wait_for(|| {
        kept.set(kept.get() && keeps_registers());
        slices() > before
    });
    let damaged = hypervisor::neighbour_counts()[Shared::Damaged as usize];
    hypervisor::set_knob(KnobValue::Neighbour(Neighbour::None));
    hypervisor::set_knob(KnobValue::Slice(0));
    hypervisor::set_knob(KnobValue::YieldOnWfe(false));
    tally.check_part(kept.get(), format_args!("a turn changed a register"));
    tally.check_part(turns, format_args!("the neighbour has no turn any more"));
    tally.check_part(
        damaged == 0,
        format_args!("the neighbour found {damaged} values changed"),
    );
}

/// Returns whether this CPU's registers keep their values over some slices.
fn keeps_registers() -> bool {
    insn::mask_irq();
    let system = System::write_values(1);
    clock::pause(clock::us_to_ticks(4 * SLICE_US));
    let kept = system.is_unchanged();
    system.restore();
    insn::unmask_irq();
    kept
}
