// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives a CPU a different neighbour from time to time, with or without slices, if the plan names a
//! neighbour.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use abi::{KnobValue, Neighbour, Shared};
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{clock, hypervisor};
use sched::random::Random;

use super::violation::{Kind, stop_machine};

/// Whether there may be a neighbour.
static POSSIBLE: AtomicBool = AtomicBool::new(false);

/// Lengths of a slice in us; 0 means that there are no slices.
const SLICES: [u32; 3] = [0, 20, 100];

/// Finds out whether there may be a neighbour.
pub fn find_support() {
    let possible = hypervisor::try_knob(KnobValue::Neighbour(Neighbour::Work));
    POSSIBLE.store(possible, Relaxed);
    end_neighbour();
}

/// Whether there may be a neighbour.
pub fn is_possible() -> bool {
    POSSIBLE.load(Relaxed)
}

/// Takes the neighbour from this CPU, because the vCPU may be about to take the CPU interface.
pub fn end_neighbour() {
    if is_possible() {
        hypervisor::set_knob(KnobValue::Neighbour(Neighbour::None));
    }
}

/// Draws another neighbour for this CPU. EL2 refuses while the vCPU owns the CPU interface.
pub fn draw_neighbour(_: &'static PerCpu, random: &mut Random) {
    let neighbours = [
        Neighbour::None,
        Neighbour::Work,
        Neighbour::Cache(16),
        Neighbour::Hostile,
    ];
    let neighbour = random.of(&neighbours);
    let slice = clock::us_to_ticks(random.of(&SLICES));
    let yields = random.one_in(2);
    if is_possible() {
        hypervisor::set_knob(KnobValue::Slice(slice));
        hypervisor::set_knob(KnobValue::YieldOnWfe(yields));
        hypervisor::try_knob(KnobValue::Neighbour(neighbour));
    }
}

/// Checks that nothing but the neighbour itself has changed the neighbour's state.
pub fn check_undamaged(me: &PerCpu) {
    if !is_possible() {
        return;
    }
    let damaged = hypervisor::neighbour_counts()[Shared::Damaged as usize];
    if damaged != 0 {
        stop_machine(
            Kind::Leak,
            format_args!(
                "CPU {}: its neighbour found {damaged} values changed",
                me.index
            ),
        );
    }
}

/// Returns how many work units this CPU's neighbour has completed, and how many turns it has had.
pub fn work_done() -> (u64, u64) {
    let counts = hypervisor::neighbour_counts();
    (
        counts[Shared::Work as usize],
        counts[Shared::Turns as usize],
    )
}
