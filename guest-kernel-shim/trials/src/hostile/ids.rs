// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries the identification registers: each can be read and returns the same value every time, none
//! can be written, and none announces a feature that traps.

use aarch64_cpu::registers::{MIDR_EL1, MPIDR_EL1, Readable};

use super::attempt::Outcome;
use super::registers::{mrs_instruction, msr_instruction};
use super::stubs;
use super::tally::Tally;
use guest_kernel_shim::percpu::PerCpu;
use sched::random::Random;

/// Fields that have to be zero, by register: features that EL2 does not give a guest.
const HIDDEN: [(u32, u32, u64, &str); 14] = [
    // CRm, op2, mask.
    (4, 0, 0xff00, "EL2 and EL3"),
    (4, 0, 0xf << 28, "RAS"),
    (4, 0, 0xf << 32, "SVE"),
    (4, 0, 0xff << 40, "MPAM and AMU"),
    (4, 1, 0xf << 8, "MTE"),
    (4, 1, 0xf << 24, "SME"),
    (4, 1, 0xf << 44, "GCS"),
    (4, 4, u64::MAX, "SVE"),
    (4, 5, u64::MAX, "SME"),
    (5, 0, 0xf << 4, "trace"),
    (
        5,
        0,
        0xff << 40 | 0xf << 32,
        "SPE, trace filter, trace buffer",
    ),
    (6, 1, 0xf << 60, "LS64"),
    (7, 1, 0xf << 16, "LORegions"),
    (7, 3, 0xff, "TCR2 and SCTLR2"),
];

/// Runs the class.
pub fn run(tally: &mut Tally, _random: &mut Random) {
    for crm in 1..8 {
        for op2 in 0..8 {
            let first = read_id_register(crm, op2);
            tally.case(
                first.returned(),
                format_args!("S3_0_C0_C{crm}_{op2} can't be read: {first}"),
            );
            let again = read_id_register(crm, op2);
            tally.case(
                again.value == first.value,
                format_args!("S3_0_C0_C{crm}_{op2} changes"),
            );
            let code = [msr_instruction(0x4000 | crm << 3 | op2)];
            // SAFETY: this writes a register that can only be read.
            let written = unsafe { stubs::run_code(&code, 0, 0) };
            tally.case(
                written.is_undefined_at(stubs::place()),
                format_args!("S3_0_C0_C{crm}_{op2} can be written: {written}"),
            );
        }
    }
    for (crm, op2, mask, what) in HIDDEN {
        let value = read_id_register(crm, op2).value;
        tally.case(
            value & mask == 0,
            format_args!("S3_0_C0_C{crm}_{op2} promises {what}: {value:#x}"),
        );
    }
    let me = PerCpu::this();
    tally.case(
        MPIDR_EL1.get() & platform::AFFINITY == me.mpidr,
        format_args!("MPIDR_EL1 is another CPU's"),
    );
    tally.case(MIDR_EL1.get() != 0, format_args!("MIDR_EL1 is zero"));
}

/// Reads the ID register that CRm `crm` and op2 `op2` encode.
fn read_id_register(crm: u32, op2: u32) -> Outcome {
    // SAFETY: the read has no effect.
    unsafe { stubs::run_code(&[mrs_instruction(0x4000 | crm << 3 | op2)], 0, 0) }
}
