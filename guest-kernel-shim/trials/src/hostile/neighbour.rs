// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the hostile CPU's neighbour, if the plan names one: another guest, which also tries
//! forbidden accesses, and which no trial here may harm.

use core::cell::Cell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use abi::{KnobValue, Neighbour, Shared};
use arch::insn;
use plan::{Deliver, Plan};

use super::tally::Tally;
use crate::system_registers::System;
use guest_kernel_shim::{clock, hypervisor};

/// Whether CPUs have neighbours.
static THERE: AtomicBool = AtomicBool::new(false);

/// Length of a slice, in us. A class takes at least some milliseconds, so many slices fall into it.
const SLICE_US: u32 = 50;

/// Notes whether the plan asks for neighbours.
pub fn learn(plan: &Plan) {
    THERE.store(plan.lists.neighbour.values[0].is_there(), Relaxed);
}

/// Whether CPUs have neighbours.
pub fn is_there() -> bool {
    THERE.load(Relaxed)
}

/// Whether a class can run with a neighbour: with direct delivery, no interrupt would end a turn.
pub fn may_be(deliver: Deliver) -> bool {
    deliver == Deliver::Inject || !is_there()
}

/// Gives the running CPU its neighbour, which gets slices, and also the CPU during a trapped WFE.
pub fn begin() {
    if is_there() {
        hypervisor::set(KnobValue::Slice(clock::ticks(SLICE_US)));
        hypervisor::set(KnobValue::YieldOnWfe(true));
        hypervisor::set(KnobValue::Neighbour(Neighbour::Hostile));
    }
}

/// Checks that the neighbour has made progress and that none of its state has changed. Then ends
/// the neighbour.
pub fn end(tally: &mut Tally) {
    if !is_there() {
        return;
    }
    let slices = || hypervisor::shared()[Shared::Slices as usize];
    let before = slices();
    let kept = Cell::new(true);
    // If CPUs are threads of a busy host, a slice may begin late.
    let turns = clock::wait_for(|| {
        kept.set(kept.get() && keeps_registers());
        slices() > before
    });
    let damaged = hypervisor::shared()[Shared::Damaged as usize];
    hypervisor::set(KnobValue::Neighbour(Neighbour::None));
    hypervisor::set(KnobValue::Slice(0));
    hypervisor::set(KnobValue::YieldOnWfe(false));
    tally.race(kept.get(), format_args!("a turn changed a register"));
    tally.race(turns, format_args!("the neighbour has no turn any more"));
    tally.race(
        damaged == 0,
        format_args!("the neighbour found {damaged} values changed"),
    );
}

/// Returns whether this CPU's registers keep their values over some slices.
fn keeps_registers() -> bool {
    insn::mask_irq();
    let system = System::put(1);
    clock::pause(clock::ticks(4 * SLICE_US));
    let kept = system.is_kept();
    system.put_back();
    insn::unmask_irq();
    kept
}
