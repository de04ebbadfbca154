// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries every encoding of MRS and MSR, 32768 of each, whether it names a register or not. A read
//! returns a value or is undefined. The value is then written back, which has no effect or is
//! undefined. Registers of EL2 and EL3 and implementation-defined registers are undefined here.

use super::attempt::{Outcome, run_attempt};
use super::stubs::{self, RET, WORDS};
use super::tally::Tally;
use sched::random::Random;

/// Number of encodings: op0 (2 or 3), op1, CRn, CRm and op2 as 15 bits.
const COUNT: u32 = 1 << 15;

/// Returns the instruction MRS X0 with encoding `n`.
pub const fn mrs_instruction(n: u32) -> u32 {
    0xd530_0000 | n << 5
}

/// Returns the instruction MSR X0 with encoding `n`.
pub const fn msr_instruction(n: u32) -> u32 {
    0xd510_0000 | n << 5
}

/// Returns op0, op1, CRn, CRm, op2 of encoding `n`.
pub const fn encoding_parts(n: u32) -> [u32; 5] {
    [2 + (n >> 14), n >> 11 & 7, n >> 7 & 15, n >> 3 & 15, n & 7]
}

/// Returns the encoding with the parts given.
const fn encode(op0: u32, op1: u32, crn: u32, crm: u32, op2: u32) -> u32 {
    (op0 - 2) << 14 | op1 << 11 | crn << 7 | crm << 3 | op2
}

/// Expected outcome of a read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A value, or undefined, depending on the CPU.
    ValueOrUndefined,
    Undefined,
    Value,
}

/// Returns the outcome that the architecture and the hypervisor guarantee for a read.
fn expected_read(n: u32) -> Expected {
    match encoding_parts(n) {
        // Registers of EL2, EL3 and Secure EL1, and the names by which EL2 accesses EL1's registers.
        [3, 4..=7, ..] => Expected::Undefined,
        // Trace registers, and the implementation's own registers (D24.2).
        [2, 1, ..] | [3, _, 11 | 15, ..] => Expected::Undefined,
        // Identification (D24.3).
        [3, 0, 0, 1..=7, _] => Expected::Value,
        // Limited ordering regions, error records, activity monitors.
        [3, 0, 10, 4, _] | [3, 0, 5, 3..=5, _] | [3, 3, 13, 2..=15, _] => Expected::Undefined,
        _ => Expected::ValueOrUndefined,
    }
}

/// Encodings of reads that would acknowledge an interrupt.
const ACKNOWLEDGE: [u32; 3] = [
    encode(3, 0, 12, 8, 0),
    encode(3, 0, 12, 12, 0),
    encode(3, 0, 12, 9, 5),
];

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let mut first = 0;
    while first < COUNT {
        first += try_encodings(tally, first);
    }
    for n in RANDOM {
        for _ in 0..8 {
            write_random(tally, n, random.draw());
        }
    }
}

/// Tries encodings from `first` on, as many as the page of code holds. Returns how many it tried.
fn try_encodings(tally: &mut Tally, first: u32) -> u32 {
    // Each encoding takes a read and a write, and two returns.
    let count = WORDS as u32 / 4;
    let mut code = [RET; WORDS];
    for (n, place) in (first..).zip(code.chunks_exact_mut(4)) {
        place[0] = mrs_instruction(n);
        place[2] = msr_instruction(n);
    }
    stubs::write_code(&code);
    for n in first..first + count {
        let at = stubs::place() + u64::from(n - first) * 16;
        let [op0, op1, crn, crm, op2] = encoding_parts(n);
        if ACKNOWLEDGE.contains(&n) {
            continue;
        }
        // SAFETY: a read changes nothing, except for the registers in `ACKNOWLEDGE`, which are skipped.
        let read = unsafe { run_attempt(at, 0, 0) };
        let good = match expected_read(n) {
            Expected::Undefined => read.is_undefined_at(at),
            Expected::Value => read.returned(),
            Expected::ValueOrUndefined => {
                read.returned() || read.is_undefined_at(at) || is_disabled(&read)
            }
        };
        tally.case(
            good,
            format_args!("MRS S{op0}_{op1}_C{crn}_C{crm}_{op2}: {read}"),
        );
        // SAFETY: the value that was read is written back. A register that can't be read gets zero,
        // which sends, ends and invalidates nothing that any CPU uses.
        let written = unsafe { run_attempt(at + 8, read.value, 0) };
        let good = match expected_read(n) {
            Expected::Undefined => written.is_undefined_at(at + 8),
            _ => written.returned() || written.is_undefined_at(at + 8) || is_disabled(&written),
        };
        tally.case(
            good,
            format_args!("MSR S{op0}_{op1}_C{crn}_C{crm}_{op2}: {written}"),
        );
    }
    count
}

/// Whether EL1's own controls (CPACR_EL1) refused the access: they disable FP, SVE and SME for this
/// kernel.
fn is_disabled(outcome: &Outcome) -> bool {
    outcome
        .trap()
        .is_some_and(|trap| matches!(trap.class(), 0x07 | 0x19 | 0x1d | 0x18))
}

/// Registers that may hold any value for a moment: the registers of the guest's timers, its PMU, its disabled
/// breakpoints, and its CPU interface.
const RANDOM: [u32; 40] = [
    encode(3, 3, 14, 2, 0),
    encode(3, 3, 14, 2, 1),
    encode(3, 3, 14, 2, 2),
    encode(3, 3, 14, 3, 0),
    encode(3, 3, 14, 3, 1),
    encode(3, 3, 14, 3, 2),
    encode(3, 0, 14, 1, 0),
    encode(3, 3, 9, 12, 0),
    encode(3, 3, 9, 12, 1),
    encode(3, 3, 9, 12, 2),
    encode(3, 3, 9, 12, 3),
    encode(3, 3, 9, 12, 4),
    encode(3, 3, 9, 12, 5),
    encode(3, 3, 9, 13, 0),
    encode(3, 3, 9, 13, 1),
    encode(3, 3, 9, 14, 0),
    encode(3, 0, 9, 14, 1),
    encode(3, 3, 14, 8, 0),
    encode(3, 3, 14, 12, 0),
    encode(3, 3, 14, 15, 7),
    encode(2, 0, 0, 0, 4),
    encode(2, 0, 0, 0, 6),
    encode(2, 0, 1, 0, 4),
    encode(2, 0, 1, 3, 4),
    encode(2, 0, 1, 4, 4),
    encode(3, 0, 1, 0, 1),
    encode(3, 0, 4, 6, 0),
    encode(3, 0, 12, 8, 3),
    encode(3, 0, 12, 8, 4),
    encode(3, 0, 12, 9, 0),
    encode(3, 0, 12, 12, 3),
    encode(3, 0, 12, 12, 4),
    encode(3, 0, 12, 12, 5),
    encode(3, 0, 12, 12, 6),
    encode(3, 0, 12, 12, 7),
    encode(3, 0, 5, 1, 0),
    encode(3, 0, 6, 0, 0),
    encode(3, 0, 7, 4, 0),
    encode(3, 0, 10, 3, 0),
    encode(3, 3, 13, 0, 2),
];

/// Writes a random value to a register, and restores the old value.
fn write_random(tally: &mut Tally, n: u32, value: u64) {
    let at = stubs::place();
    let mut code = [RET; 4];
    code[0] = mrs_instruction(n);
    code[2] = msr_instruction(n);
    stubs::write_code(&code);
    // SAFETY: these registers hold nothing that this CPU needs while its interrupts are masked, and their values are
    // restored.
    let [kept, written, read, restored] = unsafe {
        let kept = run_attempt(at, 0, 0);
        [
            kept,
            run_attempt(at + 8, value, 0),
            run_attempt(at, 0, 0),
            run_attempt(at + 8, kept.value, 0),
        ]
    };
    let fine = |outcome: &Outcome, at| outcome.returned() || outcome.is_undefined_at(at);
    let good =
        fine(&kept, at) && fine(&written, at + 8) && fine(&read, at) && fine(&restored, at + 8);
    let [op0, op1, crn, crm, op2] = encoding_parts(n);
    tally.case(
        good,
        format_args!("S{op0}_{op1}_C{crn}_C{crm}_{op2} = {value:#x}: {written}; {read}"),
    );
}
