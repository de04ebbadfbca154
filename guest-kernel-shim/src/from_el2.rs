// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves EL2 if a machine without a hypervisor starts the image there. EL1 then controls the
//! machine, and leftovers of a reset or of firmware do not affect EL1.

use aarch64_cpu::registers::{
    ELR_EL2, HCR_EL2, ICH_HCR_EL2, Readable, SCTLR_EL1, VTTBR_EL2, Writeable,
};
use arch::controls::Controls;
use arch::image::SCTLR_EL1_RES1;
use arch::regs::ICC_SRE_EL2;
use arch::{gic_cpu, insn, optional};

/// HCR_EL2 (DDI 0487K.a, D24.2.53): EL1 is AArch64 (RW), pointer authentication (API, APK) and
/// SCXTNUM_ELx (EnSCXT) belong to EL1; nothing traps, nothing is routed to EL2, and E2H is 0.
/// HCR_EL2 is written first, because E2H changes the meaning of other registers.
pub const HCR: u64 = 1 << 31 | 3 << 40 | 1 << 53;

/// No feature that this kernel uses traps; SVE and other unused features may. EL1 has the physical counter and timer.
const CONTROLS: Controls = Controls {
    cptr: 0x33ff,
    mdcr: 0,
    cnthctl: 3,
    hcrx: 1 << 11,
    // Memory is not partitioned here, and no register that MPAM traps is used.
    mpam: None,
};

/// ICC_SRE_EL2: system registers (0), no bypass (1, 2), and EL1 chooses for itself (3).
const SRE: u64 = 0xf;

/// Runs at EL2 with [`HCR`] in force, interrupts masked, and the MMU off. The exception return to
/// EL1 follows.
#[unsafe(no_mangle)]
extern "C" fn el2_hand_down() {
    CONTROLS.write();
    // The first instruction at EL1 is fetched under this setting.
    SCTLR_EL1.set(SCTLR_EL1_RES1);
    // Translations are tagged with the VMID even without stage 2: an invalidation would not affect
    // CPUs that have a different VMID (DDI 0487K.a, D8.16).
    VTTBR_EL2.set(0);
    // ICH_HCR_EL2 can trap EL1's accesses to the interface. With a GICv2, the vectors step over these writes.
    ICH_HCR_EL2.set(0);
    ICC_SRE_EL2.set(SRE);
    insn::isb();
    gic_cpu::forget_active(gic_cpu::has_group0());
    HCR_EL2.set(HCR);
}

/// The vectors call this after an exception with an unknown reason at EL2. Returns whether its cause was an access to a
/// register that firmware keeps, or to a GIC register on a CPU that has none. If so, the exception return skips the
/// access. ID_AA64PFR0_EL1.GIC can't decide this: it is 0 on gem5's cores, although they have the registers.
pub extern "C" fn is_stepped_over() -> bool {
    if optional::left_alone() {
        return true;
    }
    let at = ELR_EL2.get();
    // SAFETY: this is the instruction that was fetched last, at a multiple of 4.
    let instruction = unsafe { (at as *const u32).read_volatile() };
    let is_interface = accesses_interface(instruction);
    if is_interface {
        ELR_EL2.set(at + 4);
    }
    is_interface
}

/// Whether `instruction` is MSR or MRS of an ICC or ICH register (DDI 0487K.a, C5.3; IHI 0069H,
/// 12.2): op0 is 3, and CRn is 12 with CRm at least 8, or the register is ICC_PMR_EL1.
const fn accesses_interface(instruction: u32) -> bool {
    let is_access = instruction & 0xffd8_0000 == 0xd518_0000;
    let (crn, crm) = (instruction >> 12 & 0xf, instruction >> 8 & 0xf);
    is_access && (crn == 12 && crm >= 8 || crn == 4 && crm == 6)
}

const _: () = {
    assert!(accesses_interface(0xd51c_c9a0), "msr ICC_SRE_EL2, x0");
    assert!(accesses_interface(0xd51c_cb00), "msr ICH_HCR_EL2, x0");
    assert!(accesses_interface(0xd538_cc80), "mrs x0, ICC_CTLR_EL1");
    assert!(accesses_interface(0xd518_4600), "msr ICC_PMR_EL1, x0");
    assert!(!accesses_interface(0xd51c_1100), "msr HCR_EL2, x0");
    assert!(!accesses_interface(0xd51c_c000), "msr VBAR_EL2, x0");
};
