// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a vCPU take and give up the CPU interface, and turn off and on, while another vCPU writes
//! every register of its redistributor and sends it SGIs. No interrupt may be left active in the
//! machine, and afterwards every SGI must still be delivered.

use super::tally::Tally;
use super::victims;
use arch::insn;
use guest_kernel_shim::clock;
use guest_kernel_shim::hypervisor;
use guest_kernel_shim::interrupts::redistributor;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::PerCpu;
use sched::random::Random;

/// Time limit of a round, in seconds: far longer than a round takes on an overloaded emulator.
const PATIENCE_S: u64 = 60;
/// Number of rounds of each kind.
const ROUNDS: u64 = 200;
/// Offsets from the start of the redistributor (IHI 0069H, 12.11): GICR_ISENABLER0, GICR_ISPENDR0,
/// GICR_ICPENDR0, GICR_ISACTIVER0, GICR_ICACTIVER0, GICR_IGROUPR0, GICR_IPRIORITYR0.
const SET_ENABLE: u64 = 0x1_0100;
const SET_PENDING: u64 = 0x1_0200;
const CLEAR_PENDING: u64 = 0x1_0280;
const SET_ACTIVE: u64 = 0x1_0300;
const CLEAR_ACTIVE: u64 = 0x1_0380;
const GROUP: u64 = 0x1_0080;
const PRIORITY: u64 = 0x1_0400;

/// Registers of the victim's redistributor that are written meanwhile.
const WRITES: [&[u64]; 3] = [
    &[SET_ACTIVE],
    &[SET_ACTIVE, CLEAR_ACTIVE],
    &[
        SET_ENABLE,
        SET_PENDING,
        CLEAR_PENDING,
        SET_ACTIVE,
        CLEAR_ACTIVE,
        GROUP,
        PRIORITY,
    ],
];

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let victim = victims::all_victims()[0];
    tally.case(victims::take_cpu(victim), format_args!("CPU_OFF"));
    for act in [
        victims::off_owned(),
        victims::off_direct(),
        victims::switch(),
    ] {
        for writes in WRITES {
            run_against(tally, random, victim, act, writes);
        }
    }
}

/// Makes the victim do `act` again and again, while `writes` are made.
fn run_against(
    tally: &mut Tally,
    random: &mut Random,
    victim: &'static PerCpu,
    act: u64,
    writes: &[u64],
) {
    let mut wrong = 0;
    for _ in 0..ROUNDS {
        let counter = victims::reset_counts();
        write_register(victim, CLEAR_ACTIVE, u32::MAX);
        let started = victims::start_victim(victim, act, counter) == 0;
        let end = clock::now() + PATIENCE_S * clock::frequency();
        let mut off = false;
        while !off && clock::now() < end {
            hammer_redistributor(victim, random, writes);
            off = victims::is_off(victim);
        }
        if !started || !off || victims::visit_count() != 1 || victims::complaint_count() != 0 {
            wrong += 1;
        }
    }
    tally.check_part(
        wrong == 0,
        format_args!("{wrong} of {ROUNDS} rounds against {writes:x?} ended otherwise"),
    );
    check_delivery(tally, victim);
}

/// Writes some of the registers `writes`, sends an SGI, and writes GICD_CTLR's own value back to it.
fn hammer_redistributor(victim: &PerCpu, random: &mut Random, writes: &[u64]) {
    for _ in 0..32 {
        let bits = random.draw() as u32 & 0xffff;
        match random.below(8) {
            0 => insn::write_sgi(arch::gic_cpu::sgi_value(bits & 15, victim.mpidr)),
            1 => {
                let control = platform().gic.distributor.base as *mut u32;
                // SAFETY: this is GICD_CTLR, which the guest has mapped, and which gets the value that it has.
                unsafe { control.write_volatile(control.read_volatile()) };
            }
            _ => write_register(victim, random.of(writes), bits),
        }
    }
}

fn write_register(victim: &PerCpu, offset: u64, value: u32) {
    let place = (redistributor(victim).base() + offset) as *mut u32;
    // SAFETY: this is a register of the redistributor of a vCPU that does not run this kernel.
    unsafe { place.write_volatile(value) };
}

/// Checks that every SGI reaches the victim, which has no interrupt active.
fn check_delivery(tally: &mut Tally, victim: &'static PerCpu) {
    for (offset, value) in [
        (CLEAR_ACTIVE, u32::MAX),
        (CLEAR_PENDING, u32::MAX),
        (GROUP, u32::MAX),
        (SET_ENABLE, 0xffff),
        (PRIORITY, 0x8080_8080),
        (PRIORITY + 4, 0x8080_8080),
        (PRIORITY + 8, 0x8080_8080),
        (PRIORITY + 12, 0x8080_8080),
    ] {
        write_register(victim, offset, value);
    }
    for act in [victims::takes(), victims::takes_direct()] {
        let counter = victims::reset_counts();
        let started = victims::start_victim(victim, act, counter);
        tally.case(started == 0, format_args!("CPU_ON afterwards: {started}"));
        for intid in 0..16 {
            insn::write_sgi(arch::gic_cpu::sgi_value(intid, victim.mpidr));
        }
        let came = victims::is_off_soon(victim) && victims::visit_count() == 1;
        tally.case(came, format_args!("an SGI does not come any more"));
        if !came {
            hypervisor::call(0x8400_0008, [0; 3]);
        }
    }
}
