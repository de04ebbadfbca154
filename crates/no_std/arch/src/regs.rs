// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declares the system registers that `aarch64-cpu` 11.2 lacks, in the same form: a constant per
//! register with `get()` and `set()`.
//!
//! Each register is named by its encoding (`S<op0>_<op1>_C<n>_C<m>_<op2>`), so no assembler
//! extension is needed. Field constants are next to their register.

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

    /// Acknowledges the highest-priority pending Group 1 interrupt; returns its INTID.
    ICC_IAR1_EL1 = "S3_0_C12_C12_0", read;
    /// Ends a Group 1 interrupt: drops its priority and, if EOImode is 0, deactivates it.
    ICC_EOIR1_EL1 = "S3_0_C12_C12_1", write;
    /// Deactivates an interrupt if EOImode is 1.
    ICC_DIR_EL1 = "S3_0_C12_C11_1", write;
    /// Sends a Group 1 SGI.
    ICC_SGI1R_EL1 = "S3_0_C12_C11_5", write;
    /// Running priority.
    ICC_RPR_EL1 = "S3_0_C12_C11_3", read;
    /// Priority mask.
    ICC_PMR_EL1 = "S3_0_C4_C6_0", read write;
    /// Binary point, Group 1.
    ICC_BPR1_EL1 = "S3_0_C12_C12_3", read write;
    /// Highest-priority pending Group 1 interrupt.
    ICC_HPPIR1_EL1 = "S3_0_C12_C12_2", read;
    /// CPU interface control: EOImode (bit 1), RSS (bit 18).
    ICC_CTLR_EL1 = "S3_0_C12_C12_4", read write;
    /// Group 0 enable.
    ICC_IGRPEN0_EL1 = "S3_0_C12_C12_6", read write;
    /// Group 1 enable.
    ICC_IGRPEN1_EL1 = "S3_0_C12_C12_7", read write;
    /// System-register enable at EL1.
    ICC_SRE_EL1 = "S3_0_C12_C12_5", read write;
    /// System-register enable at EL2: SRE (0), DFB (1), DIB (2), Enable for EL1 (3).
    ICC_SRE_EL2 = "S3_4_C12_C9_5", read write;

    /// Empty list registers, one bit each.
    ICH_ELRSR_EL2 = "S3_4_C12_C11_5", read;
    /// List registers with an EOI maintenance interrupt, one bit each.
    ICH_EISR_EL2 = "S3_4_C12_C11_3", read;
    /// Active priorities, Group 1, of the physical interface.
    ICC_AP1R0_EL1 = "S3_0_C12_C9_0", read write;
    /// Active priorities, Group 1.
    ICH_AP1R0_EL2 = "S3_4_C12_C9_0", read write;
    /// Active priorities, Group 0.
    ICH_AP0R0_EL2 = "S3_4_C12_C8_0", read write;

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
    /// Active priorities, Group 0.
    ICC_AP0R0_EL1 = "S3_0_C12_C8_4", read write;
    /// Active priorities, Group 0, if there are 6 or 7 bits of preemption.
    ICC_AP0R1_EL1 = "S3_0_C12_C8_5", write;
    /// Active priorities, Group 0, if there are 7 bits of preemption.
    ICC_AP0R2_EL1 = "S3_0_C12_C8_6", write;
    /// Like ICC_AP0R2_EL1.
    ICC_AP0R3_EL1 = "S3_0_C12_C8_7", write;
    /// Like ICC_AP0R1_EL1, Group 1.
    ICC_AP1R1_EL1 = "S3_0_C12_C9_1", write;
    /// Like ICC_AP0R2_EL1, Group 1.
    ICC_AP1R2_EL1 = "S3_0_C12_C9_2", write;
    /// Like ICC_AP0R2_EL1, Group 1.
    ICC_AP1R3_EL1 = "S3_0_C12_C9_3", write;
    /// Like ICC_AP0R1_EL1, for the guest's interface.
    ICH_AP0R1_EL2 = "S3_4_C12_C8_1", read write;
    /// Like ICC_AP0R2_EL1, for the guest's interface.
    ICH_AP0R2_EL2 = "S3_4_C12_C8_2", read write;
    /// Like ICH_AP0R2_EL2.
    ICH_AP0R3_EL2 = "S3_4_C12_C8_3", read write;
    /// Like ICH_AP0R1_EL2, Group 1.
    ICH_AP1R1_EL2 = "S3_4_C12_C9_1", read write;
    /// Like ICH_AP0R2_EL2, Group 1.
    ICH_AP1R2_EL2 = "S3_4_C12_C9_2", read write;
    /// Like ICH_AP0R2_EL2, Group 1.
    ICH_AP1R3_EL2 = "S3_4_C12_C9_3", read write;

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

/// Reads list register `n`.
///
/// # Panics
/// Panics if `n` is 16 or more.
#[inline(always)]
pub fn ich_lr(n: usize) -> u64 {
    list_registers!(read n)
}

/// Writes list register `n`.
///
/// # Panics
/// Panics if `n` is 16 or more.
#[inline(always)]
pub fn set_ich_lr(n: usize, value: u64) {
    list_registers!(write n, value);
}

/// The instruction encodes the system register, so an index needs a branch for each register.
macro_rules! list_registers {
    (read $n:expr) => {
        list_registers!(@each $n, read)
    };
    (write $n:expr, $value:expr) => {
        list_registers!(@each $n, write $value)
    };
    (@each $n:expr, $($access:tt)+) => {
        match $n {
            0 => list_registers!(@one "S3_4_C12_C12_0", $($access)+),
            1 => list_registers!(@one "S3_4_C12_C12_1", $($access)+),
            2 => list_registers!(@one "S3_4_C12_C12_2", $($access)+),
            3 => list_registers!(@one "S3_4_C12_C12_3", $($access)+),
            4 => list_registers!(@one "S3_4_C12_C12_4", $($access)+),
            5 => list_registers!(@one "S3_4_C12_C12_5", $($access)+),
            6 => list_registers!(@one "S3_4_C12_C12_6", $($access)+),
            7 => list_registers!(@one "S3_4_C12_C12_7", $($access)+),
            8 => list_registers!(@one "S3_4_C12_C13_0", $($access)+),
            9 => list_registers!(@one "S3_4_C12_C13_1", $($access)+),
            10 => list_registers!(@one "S3_4_C12_C13_2", $($access)+),
            11 => list_registers!(@one "S3_4_C12_C13_3", $($access)+),
            12 => list_registers!(@one "S3_4_C12_C13_4", $($access)+),
            13 => list_registers!(@one "S3_4_C12_C13_5", $($access)+),
            14 => list_registers!(@one "S3_4_C12_C13_6", $($access)+),
            15 => list_registers!(@one "S3_4_C12_C13_7", $($access)+),
            _ => unreachable!("the architecture has 16 list registers"),
        }
    };
    (@one $encoding:literal, read) => {{
        let value: u64;
        // SAFETY: this reads a list register, which has no side effect.
        unsafe {
            core::arch::asm!(concat!("mrs {0}, ", $encoding), out(reg) value,
                options(nostack, preserves_flags));
        }
        value
    }};
    (@one $encoding:literal, write $value:expr) => {
        // SAFETY: this changes the virtual interrupts that the guest sees, but nothing of EL2.
        unsafe {
            core::arch::asm!(concat!("msr ", $encoding, ", {0}"), in(reg) $value,
                options(nostack, preserves_flags));
        }
    };
}
use list_registers;
