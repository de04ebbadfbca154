// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and sets registers of a vCPU by KVM's numbers (Documentation/virt/kvm/api.rst, 4.68).

use std::fmt::Write;

use kvm_ioctls::VcpuFd;
use vmm_sys_util::errno;

/// Bases of KVM's numbers of 64-bit arm64 registers: one for core registers, one for system registers.
const CORE: u64 = 0x6030_0000_0010_0000;
const SYSTEM: u64 = 0x6030_0000_0013_0000;

/// Returns KVM's number of register x`n`, which counts 32-bit words in KVM's structure.
pub const fn x_number(n: u64) -> u64 {
    CORE + 2 * n
}
/// The program counter.
pub const PC: u64 = CORE + 64;
/// PSTATE.
pub const PSTATE: u64 = CORE + 66;
/// MPIDR_EL1.
pub const MPIDR_EL1: u64 = system_number(3, 0, 0, 0, 5);

/// Registers other than x0 to x30 that a dump shows.
const SHOWN: [(&str, u64); 8] = [
    ("pc", PC),
    ("pstate", PSTATE),
    ("sp_el1", CORE + 68),
    ("elr_el1", CORE + 70),
    ("esr_el1", system_number(3, 0, 5, 2, 0)),
    ("far_el1", system_number(3, 0, 6, 0, 0)),
    ("sctlr_el1", system_number(3, 0, 1, 0, 0)),
    ("vbar_el1", system_number(3, 0, 12, 0, 0)),
];

/// Returns KVM's number for the register that MRS encodes as op0, op1, CRn, CRm, op2.
const fn system_number(op0: u64, op1: u64, crn: u64, crm: u64, op2: u64) -> u64 {
    SYSTEM | op0 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2
}

/// Reads a register.
pub fn get(cpu: &VcpuFd, register: u64) -> Result<u64, errno::Error> {
    let mut bytes = [0; 8];
    cpu.get_one_reg(register, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Sets a register.
pub fn set(cpu: &VcpuFd, register: u64, value: u64) -> Result<(), errno::Error> {
    cpu.set_one_reg(register, &value.to_le_bytes()).map(drop)
}

/// Formats the registers for a person, four per line.
pub fn format_registers(cpu: &VcpuFd) -> String {
    let numbered = (0..31).map(|n| (format!("x{n}"), x_number(n)));
    let named = SHOWN.map(|(name, register)| (name.to_owned(), register));
    let mut text = String::new();
    for (n, (name, register)) in named.into_iter().chain(numbered).enumerate() {
        let value = match get(cpu, register) {
            Ok(value) => format!("{value:#018x}"),
            Err(error) => format!("{error}"),
        };
        let end = if n % 4 == 3 { "\n" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "  {name:>9} {value}{end}");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
