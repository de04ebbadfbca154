// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fills the registers of EL2 and EL1 that are UNKNOWN after a reset.
//!
//! The boot protocol makes a higher exception level responsible for UNKNOWN registers (Linux,
//! Documentation/arch/arm64/booting.rst), but specifies the values of only a few: the others may
//! have any value. Registers that the protocol names have the specified values.

use aarch64_cpu::registers::{ID_AA64MMFR0_EL1, ID_AA64MMFR1_EL1, Readable};
use arch::regs::feature_register;

/// A pattern that is both an address without memory or device and a valid translation table descriptor.
pub const PATTERN: u64 = 0x5a5a_5a5a_5a5a_5a5b;
/// Every bit set: whatever can trap traps, and whatever can be on is on.
const ONES: u64 = u64::MAX;

/// The number of registers that were filled, and a register that reads as 0 afterwards, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filled {
    /// Number of registers that were filled.
    pub all: u32,
    /// A register that reads as 0.
    pub empty: Option<&'static str>,
}

/// Writes registers, and reads them back.
macro_rules! fill {
    ($filled:ident: $($name:literal = $value:expr,)*) => {$({
        let read: u64;
        // SAFETY: the code that this CPU executes until it enters the next image runs with the MMU
        // off, uses no floating point, and depends on none of these registers.
        unsafe {
            core::arch::asm!(
                concat!("msr ", $name, ", {value}"),
                "isb",
                concat!("mrs {read}, ", $name),
                value = in(reg) $value, read = out(reg) read,
                options(nostack, preserves_flags),
            );
        }
        $filled.all += 1;
        if read == 0 {
            $filled.empty = Some($name);
        }
    })*};
}

/// Whether the CPU has FEAT_PAN.
pub fn has_pan() -> bool {
    ID_AA64MMFR1_EL1.get() >> 20 & 0xf != 0
}

/// Fills all registers except HCR_EL2 and SCTLR_EL2, which are written last.
pub fn fill_registers() -> Filled {
    let mut filled = Filled::default();
    fill_translation(&mut filled);
    fill_exceptions(&mut filled);
    fill_el1_controls(&mut filled);
    fill_optional(&mut filled);
    filled
}

fn fill_translation(filled: &mut Filled) {
    fill! { filled:
        "ttbr0_el2" = PATTERN, "tcr_el2" = PATTERN, "mair_el2" = PATTERN,
        "vttbr_el2" = PATTERN, "vtcr_el2" = PATTERN,
        "sctlr_el1" = PATTERN, "ttbr0_el1" = PATTERN, "ttbr1_el1" = PATTERN,
        "tcr_el1" = PATTERN, "mair_el1" = PATTERN, "contextidr_el1" = PATTERN,
        "par_el1" = PATTERN,
    }
}

fn fill_exceptions(filled: &mut Filled) {
    fill! { filled:
        "vbar_el2" = PATTERN, "elr_el2" = PATTERN, "spsr_el2" = PATTERN,
        "esr_el2" = PATTERN, "far_el2" = PATTERN, "hpfar_el2" = PATTERN,
        "tpidr_el2" = PATTERN, "sp_el1" = PATTERN, "vbar_el1" = PATTERN,
        "elr_el1" = PATTERN, "spsr_el1" = PATTERN, "esr_el1" = PATTERN,
        "far_el1" = PATTERN, "tpidr_el1" = PATTERN, "tpidr_el0" = PATTERN,
        "tpidrro_el0" = PATTERN,
    }
}

/// Fills the registers with which EL2 decides what EL1 may do and read.
fn fill_el1_controls(filled: &mut Filled) {
    fill! { filled:
        "cptr_el2" = ONES, "mdcr_el2" = PATTERN | 0xff_0000, "hstr_el2" = PATTERN,
        "cnthctl_el2" = ONES, "cntvoff_el2" = PATTERN,
        "vpidr_el2" = PATTERN, "vmpidr_el2" = PATTERN,
        "cpacr_el1" = ONES, "cntkctl_el1" = ONES, "mdscr_el1" = PATTERN & !1,
    }
}

/// Fills the registers that only some CPUs have.
fn fill_optional(filled: &mut Filled) {
    let (mmfr0, mmfr1) = (ID_AA64MMFR0_EL1.get(), ID_AA64MMFR1_EL1.get());

    let mmfr3 = feature_register(7, 3);
    let field = |register: u64, low: u32| register >> low & 0xf;
    if field(mmfr1, 8) != 0 {
        // FEAT_VHE: CONTEXTIDR_EL2, TTBR1_EL2.
        fill! { filled: "S3_4_C13_C0_1" = PATTERN, "S3_4_C2_C0_1" = PATTERN, }
    }
    if field(mmfr1, 40) != 0 {
        // FEAT_HCX: HCRX_EL2.
        fill! { filled: "S3_4_C1_C2_2" = ONES, }
    }
    if field(mmfr0, 56) != 0 {
        // FEAT_FGT: HFGRTR_EL2, HFGWTR_EL2, HFGITR_EL2, HDFGRTR_EL2, HDFGWTR_EL2.
        fill! { filled:
            "S3_4_C1_C1_4" = ONES, "S3_4_C1_C1_5" = ONES, "S3_4_C1_C1_6" = ONES,
            "S3_4_C3_C1_4" = ONES, "S3_4_C3_C1_5" = ONES,
        }
    }
    if field(mmfr0, 56) > 1 {
        // FEAT_FGT2: HFGRTR2_EL2, HFGWTR2_EL2, HFGITR2_EL2, HDFGRTR2_EL2, HDFGWTR2_EL2.
        fill! { filled:
            "S3_4_C3_C1_2" = ONES, "S3_4_C3_C1_3" = ONES, "S3_4_C3_C1_7" = ONES,
            "S3_4_C3_C1_0" = ONES, "S3_4_C3_C1_1" = ONES,
        }
    }
    if field(mmfr0, 60) > 1 {
        // FEAT_ECV: CNTPOFF_EL2.
        fill! { filled: "S3_4_C14_C0_6" = PATTERN, }
    }
    if field(mmfr3, 0) != 0 {
        // FEAT_TCR2: TCR2_EL1, TCR2_EL2.
        fill! { filled: "S3_0_C2_C0_3" = ONES, "S3_4_C2_C0_3" = ONES, }
    }
    if field(mmfr3, 8) != 0 {
        // FEAT_S1PIE: PIR_EL1, PIR_EL2.
        fill! { filled: "S3_0_C10_C2_3" = PATTERN, "S3_4_C10_C2_3" = PATTERN, }
    }
}
