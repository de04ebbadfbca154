// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of EL2 that firmware may withhold. If EL3 has not turned on a register's feature
//! (DDI 0487K.a, SCR_EL3: TCR2En, SCTLR2En, HXEn, FGTEn, FGTEn2; MPAM3_EL3.TRAPLOWER), an access
//! traps to EL3, which returns an UNDEFINED exception to EL2 or even stops the machine. The hardware
//! then treats the values of all these registers except MPAM's as 0. So software must leave such a
//! register alone, and this module records which registers are left alone.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{
    ELR_EL2, ID_AA64MMFR0_EL1, ID_AA64MMFR1_EL1, ID_AA64PFR0_EL1, ID_AA64PFR1_EL1, Readable,
    Writeable,
};

use crate::regs::{MPAMIDR_EL1, feature_register};

/// Declares the registers, each with its name, its encoding and a function that returns whether this CPU has it.
macro_rules! optional {
    ($($variant:ident = $name:literal, $n:literal $m:literal $op2:literal, $there:ident;)*) => {
        /// An optional register.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Optional { $(#[doc = $name] $variant,)* }

        impl Optional {
            /// All optional registers, in the order in which software tries them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the register's name in the architecture.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the instruction that writes the register from X0.
            const fn instruction(self) -> u32 {
                match self { $(Self::$variant => MSR | $n << 12 | $m << 8 | $op2 << 5,)* }
            }

            /// Whether this CPU has the register.
            #[must_use]
            pub fn is_there(self) -> bool {
                let features = Features::read();
                match self { $(Self::$variant => $there(&features),)* }
            }

            /// Writes the register. This CPU must have the register, the register must not be left alone, and vectors
            /// that call [`left_alone`] must be in place. Must be followed by a context
            /// synchronization event.
            #[inline(always)]
            pub fn set(self, value: u64) {
                match self { $(Self::$variant => {
                    // SAFETY: EL2's translation is turned on later, with values that are set later; the other
                    // registers only affect EL1. The code has no `nomem`, so earlier stores stay before the write.
                    unsafe {
                        core::arch::asm!(concat!("msr S3_4_C", $n, "_C", $m, "_", $op2, ", {0}"),
                            in(reg) value, options(nostack, preserves_flags));
                    }
                })* }
            }

            /// Writes each register for which `value` returns a value, like [`Self::set`], if this
            /// CPU has the register and it is not left alone. On most machines, no
            /// register is left alone, and a starting CPU then does not check each register.
            #[inline(always)]
            pub fn write_all(value: impl Fn(Self) -> Option<u64>) {
                let some_left = SOME_LEFT.load(Relaxed);
                let features = Features::read();
                $(if let Some(value) = value(Self::$variant)
                    && $there(&features)
                    && !(some_left && Self::$variant.is_left())
                {
                    Self::$variant.set(value);
                })*
            }
        }
    };
}

/// The instruction MSR S3_4_C0_C0_0, X0.
const MSR: u32 = 0xd51c_0000;
/// Bits of MSR that don't encode the register: Rt (4:0), and L (21), which makes the access a read.
const NOT_NAME: u32 = 0x1f | 1 << 21;
/// MPAMIDR_EL1.HAS_HCR: there is MPAMHCR_EL2 (DDI 0598D.b, 7.3.4).
const MPAM_HAS_HCR: u64 = 1 << 17;

optional! {
    Tcr2 = "TCR2_EL2", 2 0 3, has_tcr2;
    Sctlr2 = "SCTLR2_EL2", 1 0 3, has_sctlr2;
    Hcrx = "HCRX_EL2", 1 2 2, has_hcrx;
    Hfgrtr = "HFGRTR_EL2", 1 1 4, has_fgt;
    Hfgwtr = "HFGWTR_EL2", 1 1 5, has_fgt;
    Hfgitr = "HFGITR_EL2", 1 1 6, has_fgt;
    Hdfgrtr = "HDFGRTR_EL2", 3 1 4, has_fgt;
    Hdfgwtr = "HDFGWTR_EL2", 3 1 5, has_fgt;
    Hafgrtr = "HAFGRTR_EL2", 3 1 6, has_monitor_traps;
    Hfgrtr2 = "HFGRTR2_EL2", 3 1 2, has_fgt2;
    Hfgwtr2 = "HFGWTR2_EL2", 3 1 3, has_fgt2;
    Hfgitr2 = "HFGITR2_EL2", 3 1 7, has_fgt2;
    Hdfgrtr2 = "HDFGRTR2_EL2", 3 1 0, has_fgt2;
    Hdfgwtr2 = "HDFGWTR2_EL2", 3 1 1, has_fgt2;
    Mpam2 = "MPAM2_EL2", 10 5 0, has_mpam;
    MpamHcr = "MPAMHCR_EL2", 10 4 0, has_mpam_hcr;
}

/// The feature registers that show which optional registers this CPU has.
struct Features {
    /// ID_AA64MMFR0_EL1.FGT: FEAT_FGT (1), FEAT_FGT2 (2).
    traps: u64,
    mmfr1: u64,
    pfr0: u64,
}

impl Features {
    #[inline(always)]
    fn read() -> Self {
        Self {
            traps: ID_AA64MMFR0_EL1.get() >> 56 & 0xf,
            mmfr1: ID_AA64MMFR1_EL1.get(),
            pfr0: ID_AA64PFR0_EL1.get(),
        }
    }
}

fn has_tcr2(_: &Features) -> bool {
    feature_register(7, 3) & 0xf != 0
}

fn has_sctlr2(_: &Features) -> bool {
    feature_register(7, 3) & 0xf0 != 0
}

#[inline(always)]
const fn has_hcrx(features: &Features) -> bool {
    features.mmfr1 >> 40 & 0xf != 0
}

#[inline(always)]
const fn has_fgt(features: &Features) -> bool {
    features.traps > 0
}

#[inline(always)]
const fn has_fgt2(features: &Features) -> bool {
    features.traps > 1
}

/// Whether this CPU has FEAT_AMUv1 besides FEAT_FGT.
#[inline(always)]
const fn has_monitor_traps(features: &Features) -> bool {
    features.traps > 0 && features.pfr0 >> 44 & 0xf != 0
}

/// Whether this CPU has FEAT_MPAM, by its major or minor version.
#[inline(always)]
fn has_mpam(features: &Features) -> bool {
    features.pfr0 >> 40 & 0xf != 0 || ID_AA64PFR1_EL1.get() >> 16 & 0xf != 0
}

#[inline(always)]
fn has_mpam_hcr(features: &Features) -> bool {
    has_mpam(features) && !Optional::Mpam2.is_left() && MPAMIDR_EL1.get() & MPAM_HAS_HCR != 0
}

/// A value that shares no cache line with other data, so that no cached write to adjacent data makes its
/// lines dirty after they were cleaned. 2 KiB is the largest granule that CTR_EL0.CWG can report.
#[derive(Debug)]
#[repr(C, align(2048))]
pub struct Apart<T>(pub T);

/// Whether each register is left alone, in the order of [`Optional::ALL`]. Each flag is a byte,
/// because a starting CPU reads it with the MMU off; software must clean the bytes to memory first.
pub static LEFT: Apart<[AtomicBool; Optional::ALL.len()]> =
    Apart([const { AtomicBool::new(false) }; Optional::ALL.len()]);

/// Whether any register is left alone.
static SOME_LEFT: AtomicBool = AtomicBool::new(false);

impl Optional {
    /// Whether the register is left alone.
    #[must_use]
    pub fn is_left(self) -> bool {
        LEFT.0[self as usize].load(Relaxed)
    }

    /// Leaves the register alone from now on.
    pub fn leave(self) {
        LEFT.0[self as usize].store(true, Relaxed);
        SOME_LEFT.store(true, Relaxed);
    }
}

/// Handles an exception that EL2 took from EL2 for an unknown reason; called by EL2's vectors. Returns
/// whether an access to one of these registers caused the exception. If so, the register is left
/// alone from now on, and the exception return skips the access.
pub extern "C" fn left_alone() -> bool {
    let at = ELR_EL2.get();
    // SAFETY: this reads the instruction that was last fetched from `at`, a multiple of 4.
    let instruction = unsafe { (at as *const u32).read_volatile() };
    let mut all = Optional::ALL.iter();
    let Some(found) = all.find(|one| one.instruction() == instruction & !NOT_NAME) else {
        return false;
    };
    found.leave();
    ELR_EL2.set(at + 4);
    true
}
