// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries exceptions: every instruction that causes an exception, returns to states that do not exist, and exceptions
//! whose vectors themselves fault. EL2 stops a vCPU that can't leave its own vector any more, and the vCPU can be
//! turned on again.

use core::arch::global_asm;

use super::attempt::run_attempt;
use super::tally::Tally;
use super::victims;
use guest_kernel_shim::machine::platform;
use sched::random::Random;

global_asm!(
    r#"
    .section .text.hostile, "ax"
    // Returns to x0 in the state x1.
hostile_return_to:
    msr     elr_el1, x0
    msr     spsr_el1, x1
    isb
    eret

    .balign 8
hostile_instructions:
    udf     #0
    udf     #65535
    brk     #0
    brk     #65535
    svc     #0
    svc     #65535
    hlt     #1
    dcps1   #0
    dcps2   #0
    dcps3   #0
    .inst   0xd6bf03e0                      // DRPS
    .inst   0xffffffff
    .inst   0xe7ffdeff
    .inst   0x04000000                      // SVE ADD
    .inst   0xd503477f                      // SMSTART
    .inst   0x1e202000                      // FCMP
    "#
);

arch::symbol_addresses! {
    /// Performs an exception return to address x0 in state x1.
    return_to = hostile_return_to;
    /// The instructions, one after another.
    instructions = hostile_instructions;
}

/// ESR_EL1.EC of SVC.
const SVC: u64 = 0x15;
/// Classes of ESR_EL1 in which each instruction may end (D24.2.40).
const CLASSES: [&[u64]; 16] = [
    &[0x00],
    &[0x00],
    &[0x3c],
    &[0x3c],
    &[SVC],
    &[SVC],
    &[0x00],
    &[0x00],
    &[0x00],
    &[0x00],
    &[0x00],
    &[0x00],
    &[0x00],
    &[0x00, 0x19],
    &[0x00, 0x1d],
    &[0x07],
];

/// Runs the class.
pub fn run(tally: &mut Tally, _random: &mut Random) {
    for (n, classes) in CLASSES.iter().enumerate() {
        let at = instructions() + 4 * n as u64;
        // SAFETY: each instruction ends in an exception and changes nothing.
        let outcome = unsafe { run_attempt(at, 0, 0) };
        let good = outcome.trap().is_some_and(|trap| {
            // After a call, ELR_EL1 is the address of the next instruction.
            let next = at + if trap.class() == SVC { 4 } else { 0 };
            classes.contains(&trap.class()) && trap.elr == next
        });
        tally.case(good, format_args!("instruction {n}: {outcome}"));
    }
    try_returns(tally);
    try_endless_faults(tally);
}

/// Tries an exception return to every mode, including modes that do not exist here (D1.4.5).
fn try_returns(tally: &mut Tally) {
    const ILLEGAL: u64 = 0x0e;
    const FETCH_FROM_EL0: u64 = 0x20;
    let target = instructions();
    for mode in 0..32 {
        for flags in [0x3c0, 0x3c0 | 1 << 20, 0x3c0 | 1 << 21] {
            // SAFETY: the target is an undefined instruction, which EL0 can't even
            // fetch.
            let outcome = unsafe { run_attempt(return_to(), target, flags | mode) };
            let good = match mode {
                // EL0 and, if the CPU has it, AArch32 at EL0.
                0 | 16 => outcome
                    .trap_from_el0()
                    .or(outcome.trap())
                    .is_some_and(|trap| {
                        matches!(trap.class(), FETCH_FROM_EL0 | ILLEGAL | 0x22 | 0x32)
                    }),
                4 | 5 => !outcome.returned(),
                _ => outcome.trap().is_some_and(|trap| trap.class() == ILLEGAL),
            };
            tally.case(
                good,
                format_args!("return to mode {mode:#x} with {flags:#x}: {outcome}"),
            );
        }
    }
    for (address, class) in [
        (target + 1, 0x22),
        (target + 2, 0x22),
        (1 << 52, 0x21),
        (0x1000, 0x21),
    ] {
        // SAFETY: nothing at these addresses can be executed.
        let outcome = unsafe { run_attempt(return_to(), address, 0x3c5) };
        let good = outcome.trap().is_some_and(|trap| trap.class() == class);
        tally.case(good, format_args!("return to {address:#x}: {outcome}"));
    }
}

/// Causes exceptions that never end, which only EL2 can notice.
fn try_endless_faults(tally: &mut Tally) {
    let victim = victims::all_victims()[0];
    tally.case(victims::take_cpu(victim), format_args!("CPU_OFF"));
    let ram = platform().memory[0];
    let places = [
        ("nothing", 0x1000),
        ("the distributor", platform().gic.distributor.base),
        ("the end of RAM", ram.end()),
        ("far out", 0x70_0000_0000),
    ];
    for (place, address) in places {
        for (act, name) in [
            (victims::vectors(), "vectors"),
            (victims::jump(), "everything"),
            (victims::trap(), "vectors of a trap"),
            (victims::tables(), "tables"),
        ] {
            let address = address & !0x7ff;
            let answer = victims::start_victim(victim, act, address) as i64;
            tally.case(answer == 0, format_args!("CPU_ON: {answer}"));
            tally.case(
                victims::is_off_soon(victim),
                format_args!("one with {name} at {place} is not stopped"),
            );
        }
    }
    // Afterwards, the vCPU works when it is turned on again.
    let counter = victims::reset_counts();
    let answer = victims::start_victim(victim, victims::off(), counter) as i64;
    tally.case(
        answer == 0,
        format_args!("CPU_ON of one that was stopped: {answer}"),
    );
    let off = victims::is_off_soon(victim) && victims::visit_count() == 1;
    tally.case(off, format_args!("one that was stopped does not run again"));
}
