// SPDX-License-Identifier: MIT OR Apache-2.0
//! Executes thousands of WFE, WFI, WFET and WFIT instructions, with deadlines in the past, soon, and at the end
//! of time, from every register, trapped and not trapped. Each of these waits has to end.

use arch::{gic_cpu, insn};
use plan::Trap;

use super::attempt::run_attempt;
use super::bystanders::others_go_on;
use super::stubs;
use super::tally::Tally;
use guest_kernel_shim::features::features;
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{clock, hypervisor, interrupts};
use sched::random::Random;

/// An SGI that this kernel does not use.
const SGI: u32 = 5;
/// WFET X0 and WFIT X0.
const WFET: u32 = 0xd503_1000;
const WFIT: u32 = 0xd503_1020;
/// WFE and WFI.
const WFE: u32 = 0xd503_205f;
const WFI: u32 = 0xd503_207f;

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    for trap in [Trap::None, Trap::Wfi, Trap::Wfe, Trap::Both] {
        hypervisor::set_trap(trap);
        if features().wfxt {
            for instruction in [WFET, WFIT] {
                for register in 0..32 {
                    try_limits(tally, random, trap, instruction, register);
                }
            }
        }
        try_many_waits(tally, trap);
    }
    hypervisor::set_trap(Trap::None);
    undo_wake();
}

/// Tries deadlines in `register`.
fn try_limits(tally: &mut Tally, random: &mut Random, trap: Trap, instruction: u32, register: u32) {
    // X16 or X17 keeps the return address.
    let back = if register == 16 { 17 } else { 16 };
    stubs::write_code(&[
        0xaa1e_03e0 | back,     // mov xB, x30
        0xaa00_03e0 | register, // mov xN, x0
        instruction | register,
        0xaa00_03e0 | register << 16, // mov x0, xN
        0xd65f_0000 | back << 5,      // ret xB
        stubs::RET,
    ]);
    let now = clock::now();
    let over = [0, 1, now / 2, now, random.below(now)];
    let near = [now + clock::us_to_ticks(20), now + clock::us_to_ticks(50)];
    let far = [1 << 62, 1 << 63, u64::MAX - 1, u64::MAX, now + (1 << 40)];
    for deadline in over.into_iter().chain(near).chain(far) {
        // If the deadline is distant, an event or an interrupt has to end the wait. A deadline in
        // XZR needs this too: QEMU 11.1 mistakes it for the stack pointer.
        ensure_wake(far.contains(&deadline) || register == 31);
        // SAFETY: the code only waits; the registers of the calling convention are restored.
        let outcome = unsafe { run_attempt(stubs::place(), deadline, 0) };
        let kept = if register == 31 { 0 } else { deadline };
        tally.case(
            outcome.returned() && outcome.value == kept,
            format_args!(
                "{instruction:#x} with {deadline:#x} in register {register}, trap {trap:?}: {outcome}"
            ),
        );
        undo_wake();
    }
}

/// Makes sure that the next wait ends, if this is `needed`.
fn ensure_wake(needed: bool) {
    if needed {
        let me = PerCpu::this();
        interrupts::redistributor(me).enable_all(1 << SGI);
        gic_cpu::send_sgi(SGI, me.mpidr);
        insn::sevl();
    }
}

/// Executes as many waits as fit into the page of code, one after another. Each wait ends at once.
fn try_many_waits(tally: &mut Tally, trap: Trap) {
    for (name, instruction) in [("WFE", WFE), ("WFI", WFI)] {
        stubs::write_code(&[instruction, stubs::RET]);
        ensure_wake(true);
        for _ in 0..2000 {
            insn::sevl();
            // SAFETY: the instruction only waits.
            let outcome = unsafe { run_attempt(stubs::place(), 0, 0) };
            tally.check_part(outcome.returned(), format_args!("{name}: {outcome}"));
        }
        undo_wake();
        tally.case(
            others_go_on(1),
            format_args!("nobody measures in a storm of {name}, trap {trap:?}"),
        );
    }
}

/// Undoes [`ensure_wake`].
fn undo_wake() {
    let redistributor = interrupts::redistributor(PerCpu::this());
    redistributor.clear_pending(1 << SGI);
    redistributor.disable_all(1 << SGI);
}
