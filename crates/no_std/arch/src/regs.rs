// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declares the system registers that `aarch64-cpu` 11.2 lacks, in the same form: a constant per
//! register with `get()` and `set()`.
//!
//! Each register is named by its encoding (`S<op0>_<op1>_C<n>_C<m>_<op2>`), so no assembler
//! extension is needed. Field constants are next to their register.

pub use crate::gic_regs::*;

/// Declares registers with their encoding and access.
macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident = $encoding:literal, $($access:ident)+;)*) => {$(
        $(#[$doc])*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        pub struct $name;
        impl $name { $(registers!(@$access $encoding);)+ }
    )*};
    (@read $encoding:literal) => {
        /// Reads the register.
        #[inline(always)]
        pub fn get(self) -> u64 {
            let value: u64;
            // SAFETY: this is a register read; if the register has a side effect (acknowledging an
            // interrupt), the register's documentation describes it.
            unsafe {
                core::arch::asm!(concat!("mrs {0}, ", $encoding), out(reg) value,
                    options(nostack, preserves_flags));
            }
            value
        }
    };
    (@write $encoding:literal) => {
        /// Writes the register; an ISB makes the write take effect for later instructions.
        #[inline(always)]
        pub fn set(self, value: u64) {
            // SAFETY: none of the registers of this file changes memory, the stack or the
            // translation of the running code. There is no `nomem`, so earlier stores stay before
            // the write.
            unsafe {
                core::arch::asm!(concat!("msr ", $encoding, ", {0}"), in(reg) value,
                    options(nostack, preserves_flags));
            }
        }
    };
}

registers! {
    /// Cache types: DminLine (19:16).
    CTR_EL0 = "S3_3_C0_C0_1", read;
    /// Zeroing by DC ZVA: BS (3:0), DZP (4).
    DCZID_EL0 = "S3_3_C0_C0_7", read;
    /// Feature register: WFxT (bits 3:0) among others.
    ID_AA64ISAR2_EL1 = "S3_0_C0_C6_2", read;
    /// Feature register: E2H0 (bits 27:24) among others.
    ID_AA64MMFR4_EL1 = "S3_0_C0_C7_4", read;

    /// PMU control: E (0), P (1), C (2), DP (5), LC (6), N (15:11).
    PMCR_EL0 = "S3_3_C9_C12_0", read write;
    /// PMU counter enable, set; bit 31 is the cycle counter.
    PMCNTENSET_EL0 = "S3_3_C9_C12_1", read write;
    /// Bit map of implemented common events; bit 8 is INST_RETIRED.
    PMCEID0_EL0 = "S3_3_C9_C12_6", read;
    /// Cycle counter.
    PMCCNTR_EL0 = "S3_3_C9_C13_0", read write;
    /// Cycle counter filter: NSH (27) counts at EL2.
    PMCCFILTR_EL0 = "S3_3_C14_C15_7", read write;
    /// Event counter 0.
    PMEVCNTR0_EL0 = "S3_3_C14_C8_0", read write;
    /// Event type and filter of counter 0.
    PMEVTYPER0_EL0 = "S3_3_C14_C12_0", read write;

    /// The value that the guest reads from MIDR_EL1.
    VPIDR_EL2 = "S3_4_C0_C0_0", read write;
    /// EL2 control of EL1's view of the counter, and of the EL2 event stream.
    CNTHCTL_EL2 = "S3_4_C14_C1_0", read write;
    /// EL2 physical timer, control.
    CNTHP_CTL_EL2 = "S3_4_C14_C2_1", read write;
    /// EL2 physical timer, compare value.
    CNTHP_CVAL_EL2 = "S3_4_C14_C2_2", read write;
    /// EL1 control of the counter and of the EL1 event stream.
    CNTKCTL_EL1 = "S3_0_C14_C1_0", read write;
    /// Interrupt status: I (7), F (6), A (8).
    ISR_EL1 = "S3_0_C12_C1_0", read;
    /// The SError that an error synchronization barrier has deferred: A (31), and its syndrome.
    /// Needs FEAT_RAS; UNKNOWN after a reset.
    DISR_EL1 = "S3_0_C12_C1_1", read write;
    /// The register that EL1 accesses as DISR_EL1 while HCR_EL2.AMO is set (FEAT_RAS).
    VDISR_EL2 = "S3_4_C12_C1_1", read write;
    /// OS lock access: writing OSLK (0) locks or unlocks.
    OSLAR_EL1 = "S2_0_C1_C0_4", write;
    /// OS lock status: OSLK (1), OSLM (3, 0).
    OSLSR_EL1 = "S2_0_C1_C1_4", read;
    /// Debug exceptions of this PE: SS (0), KDE (13), MDE (15).
    MDSCR_EL1 = "S2_0_C0_C2_2", read write;
    /// Traps of accesses to AArch32 system registers.
    HSTR_EL2 = "S3_4_C1_C1_3", read write;
    /// Memory partitioning identification: HAS_HCR (17).
    MPAMIDR_EL1 = "S3_0_C10_C4_4", read;
}

/// ISR_EL1.I: an IRQ is pending, masked or not (DDI 0487K.a, D23.2).
pub const IRQ_PENDING: u64 = 1 << 7;

/// Reads the feature register S3_0_C0_C`crm`_`op2`; returns 0 unless `crm` is 1 to 7 and `op2` 0 to
/// 7. Registers that are not allocated read as zero (DDI 0487K.a, D24.3.1).
#[must_use]
pub fn feature_register(crm: u32, op2: u32) -> u64 {
    match crm {
        1 => feature_registers!("1", op2),
        2 => feature_registers!("2", op2),
        3 => feature_registers!("3", op2),
        4 => feature_registers!("4", op2),
        5 => feature_registers!("5", op2),
        6 => feature_registers!("6", op2),
        7 => feature_registers!("7", op2),
        _ => 0,
    }
}

/// The instruction encodes the system register, so each pair of numbers needs a branch.
macro_rules! feature_registers {
    ($crm:literal, $op2:expr) => {
        match $op2 {
            0 => feature_registers!(@one $crm, "0"),
            1 => feature_registers!(@one $crm, "1"),
            2 => feature_registers!(@one $crm, "2"),
            3 => feature_registers!(@one $crm, "3"),
            4 => feature_registers!(@one $crm, "4"),
            5 => feature_registers!(@one $crm, "5"),
            6 => feature_registers!(@one $crm, "6"),
            7 => feature_registers!(@one $crm, "7"),
            _ => 0,
        }
    };
    (@one $crm:literal, $op2:literal) => {{
        let value: u64;
        // SAFETY: this reads an identification register, which has no side effect.
        unsafe {
            core::arch::asm!(concat!("mrs {0}, S3_0_C0_C", $crm, "_", $op2), out(reg) value,
                options(nomem, nostack, preserves_flags));
        }
        value
    }};
}
use feature_registers;
