// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets what a guest may do without EL2, through the values that EL2's control registers have while
//! a vCPU runs. `docs/isolation.md` has a line for each bit.
//!
//! The rule is this: the guest accesses state that belongs only to this CPU's EL1, and no such access
//! traps. Accesses to state of the machine, of EL2 or of another CPU trap, and so do accesses to state
//! that EL2 would have to save and load. The feature registers (`trap::id`) announce neither kind of
//! state. Every register is written ([`arch::controls`]), because the reset values are UNKNOWN.
//!
//! Section numbers are those of DDI 0487K.a.

use core::fmt;

use arch::controls::Controls;
use arch::insn;
use arch::optional::{LEFT, Optional};
use platform::Region;

use crate::console::log;
use crate::say;

/// HCR_EL2 while a guest runs, without the bits that the knobs decide (D24.2.53).
pub const HCR_GUEST: u64 = {
    let translation = 1 << 0; // VM: stage 2
    let walks = 1 << 2; // PTW: no table walk of the guest reads a device that stage 2 maps
    let set_way = 1 << 1; // SWIO: invalidation by set and way cleans as well
    let id3 = 1 << 18; // TID3: feature registers, see `trap::id`
    let smc = 1 << 19; // TSC: only EL2 calls the firmware
    let implementation = 1 << 20; // TIDCP: the implementation's own registers
    let auxiliary = 1 << 21; // TACR: ACTLR_EL1
    let aarch64 = 1 << 31; // RW
    let ordering = 1 << 35; // TLOR: limited ordering regions
    let errors = 1 << 36; // TERR: error records are the machine's
    let keys = 3 << 40; // APK, API: pointer authentication is the guest's own
    let context = 1 << 53; // EnSCXT: SCXTNUM_ELx is the guest's own
    let tags = 1 << 58; // TID5: with ATA 0 there are no tags
    translation
        | walks
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

/// HCRX_EL2 (D24.2.54): MSCEn (11), the memory copy instructions. Guests do not see the other
/// features that this register can enable.
const HCRX_GUEST: u64 = 1 << 11;

/// CPTR_EL2 with E2H = 0 (D24.2.35): RES1; TZ (8) SVE, TSM (12) SME, TTA (20)
/// trace registers, TAM (30) activity monitors; FP is the guest's own.
const CPTR_GUEST: u64 = 0x33ff | 1 << 20 | 1 << 30;

/// MDCR_EL2 (D24.3.17) besides HPMN: TDOSA (10), TDRA (11), TPMS (14), TTRF (19).
/// E2PB and E2TB are 0: the profiling and trace buffers are EL2's, and trap.
const MDCR_GUEST: u64 = 1 << 10 | 1 << 11 | 1 << 14 | 1 << 19;

/// CNTHCTL_EL2 with E2H = 0 (D24.12.10): EL1PCTEN (0), EL1PCEN (1): the guest owns the physical
/// counter and timer as well.
const CNTHCTL_GUEST: u64 = 3;

/// MPAM2_EL2: TRAPMPAM1EL1 (48), TRAPMPAM0EL1 (49), partition 0.
const MPAM_GUEST: u64 = 3 << 48;

/// Makes the hypervisor leave alone the registers in `names`, a comma-separated list.
///
/// # Errors
/// Returns the first name for which there is no register that firmware may keep.
pub fn note_left_alone(names: &str) -> Result<(), &str> {
    for name in names.split(',') {
        let mut all = Optional::ALL.iter();
        let found = all.find(|register| register.name() == name);
        found.ok_or(name)?.leave();
    }
    Ok(())
}

/// Tries to write the registers that firmware may keep ([`Optional`]), on the first CPU. Each register is named on the
/// console before it is written: firmware that does not know the register may end the machine instead of returning an
/// UNDEFINED exception. Registers that are left alone are not tried.
pub fn try_optional_writes() {
    log::print(format_args!("rouse: stage registers: trying"));
    for register in Optional::ALL {
        if register.is_there() && !register.is_left() {
            log::print(format_args!(" {}", register.name()));
            register.set(0);
            insn::isb();
        }
    }
    log::print(format_args!("\n"));
    if registers_left_alone().next().is_some() {
        say!("registers left alone, since firmware keeps them or rouse.leave names them:{Left}");
    }
    pages::clean(Region {
        base: LEFT.0.as_ptr() as u64,
        size: size_of_val(&LEFT) as u64,
    });
}

/// Returns the registers of this CPU that are left alone.
fn registers_left_alone() -> impl Iterator<Item = &'static Optional> {
    let all = Optional::ALL.iter();
    all.filter(|register| register.is_left() && register.is_there())
}

/// Prints the names of the registers that are left alone.
struct Left;

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        registers_left_alone().try_for_each(|register| write!(f, " {}", register.name()))
    }
}

/// Sets all control registers of this CPU except HCR_EL2, which the knobs change.
pub fn set_control_registers() {
    let controls = Controls {
        cptr: CPTR_GUEST,
        mdcr: MDCR_GUEST,
        cnthctl: CNTHCTL_GUEST,
        hcrx: HCRX_GUEST,
        mpam: Some(MPAM_GUEST),
    };
    controls.write();
}

/// Whether the memory copy instructions work at EL1. The instructions do not work if firmware keeps HCRX_EL2, which has
/// the bit MSCEn.
pub fn has_copy_instructions() -> bool {
    !Optional::Hcrx.is_left()
}
