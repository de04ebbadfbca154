// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest may do by itself: the control registers of EL2, as they are
//! while a vCPU runs. `docs/isolation.md` has a line for each bit.
//!
//! The rule: the guest has without a trap what belongs to this CPU's EL1 alone. What
//! belongs to the machine, to EL2 or to another CPU traps, and so does what EL2 would have
//! to save and load. Neither is announced in the feature registers (`trap::id`). Every
//! register is written here, because their reset values are UNKNOWN.
//!
//! Section numbers are those of DDI 0487K.a.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{
    CPTR_EL2, ID_AA64DFR0_EL1, ID_AA64MMFR0_EL1, ID_AA64MMFR1_EL1, ID_AA64PFR0_EL1,
    ID_AA64PFR1_EL1, MDCR_EL2, Readable, Writeable,
};
use arch::regs::{
    CNTHCTL_EL2, HAFGRTR_EL2, HCRX_EL2, HDFGRTR_EL2, HDFGWTR_EL2, HFGITR_EL2, HFGRTR_EL2,
    HFGWTR_EL2, HSTR_EL2, MPAM2_EL2, MPAMHCR_EL2, MPAMIDR_EL1, PMCR_EL0,
};

use crate::stage;

/// HCR_EL2 while a guest runs, without what the knobs decide (D24.2.53).
pub const HCR_GUEST: u64 = {
    let translation = 1 << 0; // VM: stage 2
    let set_way = 1 << 1; // SWIO: invalidation by set and way cleans as well
    let id3 = 1 << 18; // TID3: feature registers, see `trap::id`
    let smc = 1 << 19; // TSC: the firmware is EL2's
    let implementation = 1 << 20; // TIDCP: the implementation's own registers
    let auxiliary = 1 << 21; // TACR: ACTLR_EL1
    let aarch64 = 1 << 31; // RW
    let ordering = 1 << 35; // TLOR: limited ordering regions
    let errors = 1 << 36; // TERR: error records are the machine's
    let keys = 3 << 40; // APK, API: pointer authentication is the guest's own
    let context = 1 << 53; // EnSCXT: SCXTNUM_ELx is the guest's own
    let tags = 1 << 58; // TID5: with ATA 0 there are no tags
    translation
        | set_way
        | id3
        | smc
        | implementation
        | auxiliary
        | aarch64
        | ordering
        | errors
        | keys
        | context
        | tags
};

/// HCRX_EL2 (D24.2.54): MSCEn (11), the memory copy instructions. Everything else
/// that it can let through is hidden.
const HCRX_GUEST: u64 = 1 << 11;

/// CPTR_EL2 with E2H = 0 (D24.2.35): RES1; TZ (8) SVE, TSM (12) SME, TTA (20)
/// trace registers, TAM (30) activity monitors; FP is the guest's own.
const CPTR_GUEST: u64 = 0x33ff | 1 << 20 | 1 << 30;

/// MDCR_EL2 (D24.3.17) besides HPMN: TDOSA (10), TDRA (11), TPMS (14), TTRF (19).
/// E2PB and E2TB 0: the profiling and trace buffers are EL2's, and trap.
const MDCR_GUEST: u64 = 1 << 10 | 1 << 11 | 1 << 14 | 1 << 19;

/// CNTHCTL_EL2 with E2H = 0 (D24.12.10): EL1PCTEN (0), EL1PCEN (1): physical
/// counter and timer are the guest's as well.
const CNTHCTL_GUEST: u64 = 3;

/// MPAM2_EL2: TRAPMPAM1EL1 (48), TRAPMPAM0EL1 (49), partition 0.
const MPAM_GUEST: u64 = 3 << 48;
/// MPAMIDR_EL1.HAS_HCR: there is MPAMHCR_EL2 (DDI 0598D.b, 7.3.4).
const MPAM_HAS_HCR: u64 = 1 << 17;

/// The registers of memory partitioning are left as firmware had them.
static LEAVE_MPAM: AtomicBool = AtomicBool::new(false);

/// What becomes of memory partitioning. Firmware may keep its registers for itself
/// (MPAM3_EL3.TRAPLOWER): then EL3 gets the first access, and what it does with it is not
/// known. So it is announced, and boot argument `rouse.no-mpam` leaves it out.
pub fn announce_mpam(leave: bool) {
    LEAVE_MPAM.store(leave, Relaxed);
    if has_mpam() {
        stage!(
            "mpam",
            "{}",
            if leave {
                "left as firmware had it: what the guest uses of it is not trapped"
            } else {
                "MPAM2_EL2 is written next; if this is the last line, firmware keeps it: rouse.no-mpam"
            }
        );
    }
}

/// FEAT_MPAM, by its number or its fraction.
fn has_mpam() -> bool {
    has(ID_AA64PFR0_EL1.get(), 40) || has(ID_AA64PFR1_EL1.get(), 16)
}

/// The four-bit field of `register` whose lowest bit is `low`, not being zero.
const fn has(register: u64, low: u32) -> bool {
    register >> low & 0xf != 0
}

/// Sets all of this CPU's but HCR_EL2, which the knobs change.
pub fn set_up() {
    let (mmfr0, mmfr1) = (ID_AA64MMFR0_EL1.get(), ID_AA64MMFR1_EL1.get());
    let pfr0 = ID_AA64PFR0_EL1.get();
    CPTR_EL2.set(CPTR_GUEST);
    MDCR_EL2.set(MDCR_GUEST | counters());
    CNTHCTL_EL2.set(CNTHCTL_GUEST);
    HSTR_EL2.set(0);
    // FEAT_HCX.
    if has(mmfr1, 40) {
        HCRX_EL2.set(HCRX_GUEST);
    }
    // FEAT_FGT: nothing traps that only these could trap; what they could let
    // through (the bits whose names begin with n) is not.
    if has(mmfr0, 56) {
        HFGRTR_EL2.set(0);
        HFGWTR_EL2.set(0);
        HFGITR_EL2.set(0);
        HDFGRTR_EL2.set(0);
        HDFGWTR_EL2.set(0);
        // FEAT_AMUv1.
        if has(pfr0, 44) {
            HAFGRTR_EL2.set(0);
        }
    }
    if has_mpam() && !LEAVE_MPAM.load(Relaxed) {
        MPAM2_EL2.set(MPAM_GUEST);
        if MPAMIDR_EL1.get() & MPAM_HAS_HCR != 0 {
            MPAMHCR_EL2.set(0);
        }
    }
}

/// MDCR_EL2.HPMN: all event counters are the guest's.
fn counters() -> u64 {
    let pmu = ID_AA64DFR0_EL1.get() >> 8 & 0xf;
    if matches!(pmu, 0 | 0xf) {
        return 0;
    }
    // PMCR_EL0.N, bits 15:11.
    PMCR_EL0.get() >> 11 & 0x1f
}
