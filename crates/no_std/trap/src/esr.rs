// SPDX-License-Identifier: MIT OR Apache-2.0
//! The syndrome register (ESR_EL2, D23.2.39).

/// Class: unknown reason, which includes undefined instructions.
pub const UNKNOWN: u32 = 0x00;
/// Class: WFI, WFE, WFIT or WFET.
pub const WFX: u32 = 0x01;
/// Class: trapped floating point or SIMD.
pub const FP: u32 = 0x07;
/// Class: HVC from AArch64.
pub const HVC64: u32 = 0x16;
/// Class: SMC from AArch64.
pub const SMC64: u32 = 0x17;
/// Class: MSR, MRS or system instruction.
pub const SYSREG: u32 = 0x18;
/// Class: instruction abort from a lower exception level.
pub const INST_ABORT_LOWER: u32 = 0x20;
/// Class: data abort from a lower exception level.
pub const DATA_ABORT_LOWER: u32 = 0x24;

/// IL: the trapped instruction has 32 bits.
pub const IL: u64 = 1 << 25;

/// The value of a syndrome register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Esr(pub u64);

impl Esr {
    /// Returns EC, bits 31:26: the class of the exception.
    #[must_use]
    #[inline(always)]
    pub const fn class(self) -> u32 {
        (self.0 >> 26 & 0x3f) as u32
    }

    /// Returns ISS, bits 24:0: details that depend on the class.
    #[must_use]
    #[inline(always)]
    pub const fn iss(self) -> u32 {
        (self.0 & 0x1ff_ffff) as u32
    }
}

/// Returns a register's encoding in the bit positions of the ISS.
#[must_use]
pub const fn encoding(op0: u32, op1: u32, crn: u32, crm: u32, op2: u32) -> u32 {
    op0 << 20 | op2 << 17 | op1 << 14 | crn << 10 | crm << 1
}
