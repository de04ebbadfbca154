// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's neighbour, if the plan names one: now and then it is replaced by another, with or
//! without slices.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use abi::{KnobValue, Neighbour, Shared};
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{clock, hypervisor};
use sched::random::Random;

use super::violation::{Kind, violation};

/// Whether there may be a neighbour.
static POSSIBLE: AtomicBool = AtomicBool::new(false);

/// Lengths of a slice in us; 0 for no slices.
const SLICES: [u32; 3] = [0, 20, 100];

/// Finds out whether there may be a neighbour.
pub fn find() {
    let possible = hypervisor::try_set(KnobValue::Neighbour(Neighbour::Work));
    POSSIBLE.store(possible, Relaxed);
    none();
}

/// Whether there may be a neighbour.
pub fn is_possible() -> bool {
    POSSIBLE.load(Relaxed)
}

/// Takes the neighbour from this CPU: its interrupts may be its own now.
pub fn none() {
    if is_possible() {
        hypervisor::set(KnobValue::Neighbour(Neighbour::None));
    }
}

/// Draws another neighbour. EL2 refuses while the vCPU owns its interrupts.
pub fn change(_: &'static PerCpu, random: &mut Random) {
    let neighbours = [
        Neighbour::None,
        Neighbour::Work,
        Neighbour::Cache(16),
        Neighbour::Hostile,
    ];
    let neighbour = random.of(&neighbours);
    let slice = clock::ticks(random.of(&SLICES));
    let yields = random.one_in(2);
    if is_possible() {
        hypervisor::set(KnobValue::Slice(slice));
        hypervisor::set(KnobValue::YieldOnWfe(yields));
        hypervisor::try_set(KnobValue::Neighbour(neighbour));
    }
}

/// Checks that the neighbour has not changed, except by itself.
pub fn check(me: &PerCpu) {
    if !is_possible() {
        return;
    }
    let damaged = hypervisor::shared()[Shared::Damaged as usize];
    if damaged != 0 {
        violation(
            Kind::Leak,
            format_args!(
                "CPU {}: its neighbour found {damaged} values changed",
                me.index
            ),
        );
    }
}

/// Returns the units that the neighbour of this CPU has done, and its turns.
pub fn done() -> (u64, u64) {
    let counts = hypervisor::shared();
    (
        counts[Shared::Work as usize],
        counts[Shared::Turns as usize],
    )
}
