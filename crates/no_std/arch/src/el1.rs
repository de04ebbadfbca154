// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of a guest at EL1 and EL0, in groups, for a CPU with more than one guest.
//!
//! | group | accesses by EL1 | effect while stage 1 is off |
//! |---|---|---|
//! | [`Untrapped`] | no control of Armv8.0 traps them, or exceptions to EL1 change them too | yes |
//! | [`Auxiliary`] | likewise, where they exist | no |
//! | [`Effective`] | can be trapped | yes |
//! | [`Stage1`] | can be trapped | no |
//!
//! The controls that trap are HCR_EL2.TVM and TRVM (TTBRn, TCR, MAIR, AMAIR, CONTEXTIDR, SCTLR), HCR_EL2.TID2 (CSSELR),
//! CPTR_EL2.TCPAC (CPACR) and MDCR_EL2.TDA (MDSCR) (DDI 0487K.a, D24.2.53, D24.2.35 and D24.3.17).
//!
//! The groups leave out the general registers, PC and PSTATE (saved on the exception), floating point
//! ([`Fp`]) and the timers.

use aarch64_cpu::registers::*;

use crate::insn;
use crate::regs::{CNTKCTL_EL1, MDSCR_EL1};

/// Declares a group of registers, in pairs, because one memory access saves or loads a pair.
macro_rules! group {
    ($(#[$doc:meta])* $group:ident { $($one:ident = $ONE:ident, $two:ident = $TWO:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[repr(C)]
        #[expect(missing_docs, reason = "each is the register of its name")]
        pub struct $group { $(pub $one: u64, pub $two: u64,)* }

        impl $group {
            /// Returns registers that are all zero.
            #[must_use]
            pub const fn zero() -> Self {
                Self { $($one: 0, $two: 0,)* }
            }

            /// Reads the current values from the CPU.
            #[inline(always)]
            pub fn save(&mut self) {
                $(
                    let (one, two) = ($ONE.get(), $TWO.get());
                    (self.$one, self.$two) = (one, two);
                )*
            }

            /// Writes the values to the CPU's registers. The values take effect only after a context synchronization
            /// event.
            #[inline(always)]
            pub fn load(&self) {
                $(
                    let (one, two) = (self.$one, self.$two);
                    $ONE.set(one);
                    $TWO.set(two);
                )*
            }
        }
    };
}
pub(crate) use group;

group! {
    /// Registers that EL1 can change without a trap. An exception to EL1 writes ELR, SPSR, ESR and FAR.
    Untrapped {
        vbar = VBAR_EL1,
        cntkctl = CNTKCTL_EL1,
        elr = ELR_EL1,
        spsr = SPSR_EL1,
        esr = ESR_EL1,
        far = FAR_EL1,
        sp_el0 = SP_EL0,
        sp_el1 = SP_EL1,
        tpidr_el0 = TPIDR_EL0,
        tpidrro = TPIDRRO_EL0,
        tpidr_el1 = TPIDR_EL1,
        par = PAR_EL1,
    }
}

group! {
    /// Registers that an exception to EL1 may change, in an IMPLEMENTATION DEFINED way, and that many CPUs lack
    /// ([`has_auxiliary`]).
    Auxiliary {
        afsr0 = AFSR0_EL1,
        afsr1 = AFSR1_EL1,
    }
}

group! {
    /// Registers with an effect even while stage 1 is off: SCTLR.EE, TCR.TBIn (DDI 0487K.a, TCR_EL1, field TBI0: it has
    /// an effect whether or not the translation regime is enabled), CPACR.FPEN, MDSCR.
    Effective {
        sctlr = SCTLR_EL1,
        tcr = TCR_EL1,
        cpacr = CPACR_EL1,
        mdscr = MDSCR_EL1,
    }
}

group! {
    /// Registers without an effect on EL1 and EL0 while stage 1 is off. CSSELR has an effect on CCSIDR_EL1, which
    /// HCR_EL2.TID2 traps too.
    Stage1 {
        ttbr0 = TTBR0_EL1,
        ttbr1 = TTBR1_EL1,
        mair = MAIR_EL1,
        amair = AMAIR_EL1,
        contextidr = CONTEXTIDR_EL1,
        csselr = CSSELR_EL1,
    }
}

/// Whether any bit of the group [`Auxiliary`] can be written on this CPU. Without such a bit, no guest can leave a
/// value there, and no write could restore one. This function leaves the registers unchanged.
#[must_use]
pub fn has_auxiliary() -> bool {
    let mut before = Auxiliary::zero();
    before.save();
    let ones = Auxiliary {
        afsr0: u64::MAX,
        afsr1: u64::MAX,
    };
    ones.load();
    insn::isb();
    let mut after = Auxiliary::zero();
    after.save();
    before.load();
    after.afsr0 | after.afsr1 != 0
}

/// Whether this CPU has FEAT_RAS (ID_AA64PFR0_EL1.RAS, bits 31:28), and with it VDISR_EL2. That register holds the
/// error deferred by EL1; while HCR_EL2.AMO is set, EL1 accesses it as DISR_EL1 (DDI 0487K.a, DISR_EL1).
#[must_use]
pub fn has_ras() -> bool {
    ID_AA64PFR0_EL1.get() >> 28 & 0xf != 0
}

/// The registers of floating point and SIMD. This image is compiled without floating point and SIMD,
/// so these registers always belong to a guest.
#[derive(Clone, Debug)]
#[repr(C, align(16))]
pub struct Fp {
    vectors: [u128; 32],
    control: u64,
    status: u64,
}

impl Fp {
    /// Returns registers that are all zero.
    #[must_use]
    pub const fn zero() -> Self {
        Self {
            vectors: [0; 32],
            control: 0,
            status: 0,
        }
    }

    /// Reads the current values from the CPU. The registers must not trap at EL2 (CPTR_EL2.TFP).
    pub fn save(&mut self) {
        // SAFETY: the code stores 528 bytes, the size of this value, to this value.
        unsafe {
            core::arch::asm!(
                ".arch_extension fp",
                ".arch_extension simd",
                "stp q0, q1, [{to}]",
                "stp q2, q3, [{to}, #32]",
                "stp q4, q5, [{to}, #64]",
                "stp q6, q7, [{to}, #96]",
                "stp q8, q9, [{to}, #128]",
                "stp q10, q11, [{to}, #160]",
                "stp q12, q13, [{to}, #192]",
                "stp q14, q15, [{to}, #224]",
                "stp q16, q17, [{to}, #256]",
                "stp q18, q19, [{to}, #288]",
                "stp q20, q21, [{to}, #320]",
                "stp q22, q23, [{to}, #352]",
                "stp q24, q25, [{to}, #384]",
                "stp q26, q27, [{to}, #416]",
                "stp q28, q29, [{to}, #448]",
                "stp q30, q31, [{to}, #480]",
                "mrs {a}, fpcr",
                "mrs {b}, fpsr",
                "str {a}, [{to}, #512]",
                "str {b}, [{to}, #520]",
                to = in(reg) core::ptr::from_mut(self), a = out(reg) _, b = out(reg) _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Writes the values to the CPU's registers. The registers must not trap at EL2.
    pub fn load(&self) {
        // SAFETY: the code loads 528 bytes, the size of this value, from this value, into registers
        // that no compiled code of this image uses.
        unsafe {
            core::arch::asm!(
                ".arch_extension fp",
                ".arch_extension simd",
                "ldp q0, q1, [{from}]",
                "ldp q2, q3, [{from}, #32]",
                "ldp q4, q5, [{from}, #64]",
                "ldp q6, q7, [{from}, #96]",
                "ldp q8, q9, [{from}, #128]",
                "ldp q10, q11, [{from}, #160]",
                "ldp q12, q13, [{from}, #192]",
                "ldp q14, q15, [{from}, #224]",
                "ldp q16, q17, [{from}, #256]",
                "ldp q18, q19, [{from}, #288]",
                "ldp q20, q21, [{from}, #320]",
                "ldp q22, q23, [{from}, #352]",
                "ldp q24, q25, [{from}, #384]",
                "ldp q26, q27, [{from}, #416]",
                "ldp q28, q29, [{from}, #448]",
                "ldp q30, q31, [{from}, #480]",
                "ldr {a}, [{from}, #512]",
                "ldr {b}, [{from}, #520]",
                "msr fpcr, {a}",
                "msr fpsr, {b}",
                from = in(reg) core::ptr::from_ref(self), a = out(reg) _, b = out(reg) _,
                options(nostack, preserves_flags, readonly)
            );
        }
    }
}

const _: () = assert!(size_of::<Fp>() == 528);
