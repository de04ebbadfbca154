// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries the CPU interface of a GICv2, which the guest has in hardware (GICV, IHI 0048B, 5.5): each register
//! gets random values. EL2 must be able to use the list registers afterwards, whatever state the guest has left.

use gic::version2;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::PerCpu;
use platform::Region;
use sched::random::Random;

use super::super::attempt::run_attempt;
use super::super::shapes;
use super::super::tally::Tally;
use super::super::window::{self, As};
use super::{is_described, restore_devices};

/// The first of the group registers (IHI 0048B, 4.3.4).
const GICD_IGROUPR: u64 = 0x80;
/// Number of times that each register gets a value.
const ROUNDS: u32 = 16;

/// Runs the accesses to the interface at `frame`.
pub fn run(tally: &mut Tally, random: &mut Random, frame: Region) {
    let me = PerCpu::this();
    for _ in 0..ROUNDS {
        for offset in (0..frame.size)
            .step_by(4)
            .filter(|offset| has_register(*offset))
        {
            let place = window::map_page(frame.base + offset, As::Device);
            for shape in shapes::all().filter(|shape| is_described(*shape, place)) {
                // SAFETY: the registers are this CPU's own, and are set up again below.
                let outcome = unsafe { run_attempt(shape.code, place, random.draw()) };
                // The architecture has only word accesses (IHI 0048B, 4.1.4).
                tally.case(
                    outcome.returned() || shape.size != 4 && outcome.abort_at(place),
                    format_args!("{} at {:#x}: {outcome}", shape.name, frame.base + offset),
                );
            }
        }
        restore_interface(me);
    }
}

/// Whether `offset` has a register, or is an unused offset next to registers.
fn has_register(offset: u64) -> bool {
    matches!(offset, 0..0x100 | 0x1000..0x1010)
}

/// Sets up the interface of this CPU again, with no interrupt active or pending, and all SPIs in Group 0.
fn restore_interface(me: &PerCpu) {
    restore_devices(me);
    for word in 1..3 {
        let register = platform().gic.distributor.base + GICD_IGROUPR + 4 * word;
        // SAFETY: this only changes the group of SPIs, and this kernel uses no SPI.
        unsafe { (register as *mut u32).write_volatile(0) };
    }
    version2::enable_interface(me.mpidr).expect("it has been enabled before");
}
