// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hostile CPU's neighbour, if the plan names one: another guest, which tries forbidden accesses too, and which
//! nothing that is tried here may harm.

use core::cell::Cell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use abi::{KnobValue, Neighbour, Shared};
use arch::insn;
use plan::{Deliver, Plan};

use super::tally::Tally;
use crate::system_registers::System;
use guest_kernel_shim::{clock, hypervisor};

/// CPUs have neighbours.
static THERE: AtomicBool = AtomicBool::new(false);

/// Length of a slice, us: a class takes some milliseconds at least.
const SLICE_US: u32 = 50;

/// Learns whether there are to be neighbours.
pub fn learn(plan: &Plan) {
    THERE.store(plan.lists.neighbour.values[0].is_there(), Relaxed);
}

/// Whether there are.
pub fn is_there() -> bool {
    THERE.load(Relaxed)
}

/// Whether a class can be done so: with direct delivery, no interrupt would end a turn.
pub fn may_be(deliver: Deliver) -> bool {
    deliver == Deliver::Inject || !is_there()
}

/// The CPU that runs gets its neighbour, which has slices, and the CPU in a trapped WFE as well.
pub fn begin() {
    if is_there() {
        hypervisor::set(KnobValue::Slice(clock::ticks(SLICE_US)));
        hypervisor::set(KnobValue::YieldOnWfe(true));
        hypervisor::set(KnobValue::Neighbour(Neighbour::Hostile));
    }
}

/// Checks that the neighbour has got on and that nothing of it has changed. Then ends it.
pub fn end(tally: &mut Tally) {
    if !is_there() {
        return;
    }
    let slices = || hypervisor::shared()[Shared::Slices as usize];
    let before = slices();
    let kept = Cell::new(true);
    // Where CPUs are threads of a busy host, a slice may begin late.
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

/// Whether this CPU's registers keep their values over some slices.
fn keeps_registers() -> bool {
    insn::mask_irq();
    let system = System::put(1);
    clock::pause(clock::ticks(4 * SLICE_US));
    let kept = system.is_kept();
    system.put_back();
    insn::unmask_irq();
    kept
}
