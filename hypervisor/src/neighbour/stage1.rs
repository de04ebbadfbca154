// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulates the registers that only stage 1 uses ([`arch::el1::Stage1`]), for a neighbour whose stage 1 is off.
//!
//! A switch leaves the vCPU's values in these registers. They have no effect on the neighbour:
//!
//! - SCTLR_EL1 is the neighbour's own, and its M is 0, so no walk uses TTBRn_EL1, TCR_EL1 or MAIR_EL1. HCR_EL2.DC
//!   makes memory Normal Write-Back, and SCTLR_EL1.M, C and I behave as 0, 1 and 1 (DDI 0487K.a, HCR_EL2, field DC;
//!   SCTLR_EL1, fields C and I).
//! - The neighbour's accesses trap before they read or write a register (HCR_EL2.TVM, TRVM, TID2), and this module
//!   serves them from memory. CPACR_EL1 traps too (CPTR_EL2.TCPAC), so that a switch need not save it.
//!
//! A write of 1 to SCTLR_EL1.M ends this: from then on, until another program begins, each turn exchanges these
//! registers, and none of them traps.
//!
//! SCTLR_EL1.M and HCR_EL2.DC may be cached in a TLB (SCTLR_EL1, field M; HCR_EL2, field DC), so within a VMID a change
//! of DC needs an invalidation (D8.17), which [`turn_on`] and `program` execute. A switch needs none: TLB entries of
//! another VMID do not match (D8.16), and DC does not change between two turns of a neighbour. Entries of the neighbour
//! may have the vCPU's ASID, since TTBRn_EL1 hold that ASID. While stage 1 is off, the entries of all ASIDs are equal.

use aarch64_cpu::registers::{
    AFSR0_EL1, AFSR1_EL1, CCSIDR_EL1, CLIDR_EL1, CPACR_EL1, CSSELR_EL1, ESR_EL1, FAR_EL1, HCR_EL2,
    Readable, SCTLR_EL1, TCR_EL1, Writeable,
};
use arch::insn;
use arch::regs::CTR_EL0;
use trap::cache;
use trap::esr::encoding;
use trap::sysreg::SystemRegister;

use crate::cpu::tenant::{Worlds, more};
use crate::cpu::traps::HCR_NEIGHBOUR;

/// SCTLR_EL1.M.
const STAGE1_ON: u64 = 1;

/// Declares constants with the encodings of registers.
macro_rules! names {
    ($($name:ident = $op0:literal $op1:literal $crn:literal $crm:literal $op2:literal,)*) => {
        mod name {
            use super::encoding;
            $(pub const $name: u32 = encoding($op0, $op1, $crn, $crm, $op2);)*
        }
    };
}

names! {
    SCTLR = 3 0 1 0 0,
    CPACR = 3 0 1 0 2,
    TTBR0 = 3 0 2 0 0,
    TTBR1 = 3 0 2 0 1,
    TCR = 3 0 2 0 2,
    AFSR0 = 3 0 5 1 0,
    AFSR1 = 3 0 5 1 1,
    ESR = 3 0 5 2 0,
    FAR = 3 0 6 0 0,
    MAIR = 3 0 10 2 0,
    AMAIR = 3 0 10 3 0,
    CONTEXTIDR = 3 0 13 0 1,
    CCSIDR = 3 1 0 0 0,
    CLIDR = 3 1 0 0 1,
    CSSELR = 3 2 0 0 0,
    CTR = 3 3 0 0 1,
}

/// Emulates `access` and steps over it; returns false if the neighbour has no such register.
pub fn handle_access(worlds: &mut Worlds, access: SystemRegister) -> bool {
    let rt = access.rt as usize;
    if access.read {
        let Some(value) = read(worlds, access.encoding) else {
            return false;
        };
        if let Some(register) = worlds.general.x.get_mut(rt) {
            *register = value;
        }
    } else {
        let value = worlds.general.x.get(rt).copied().unwrap_or(0);
        if !write(worlds, access.encoding, value) {
            return false;
        }
    }
    worlds.general.pc += 4;
    true
}

/// Returns the neighbour's value of the register `encoding`.
fn read(worlds: &Worlds, encoding: u32) -> Option<u64> {
    let (effective, stage1) = (&worlds.own.effective, &worlds.own_stage1);
    Some(match encoding {
        name::SCTLR => effective.sctlr,
        name::TCR => effective.tcr,
        name::CPACR => effective.cpacr,
        name::TTBR0 => stage1.ttbr0,
        name::TTBR1 => stage1.ttbr1,
        name::MAIR => stage1.mair,
        name::AMAIR => stage1.amair,
        name::CONTEXTIDR => stage1.contextidr,
        name::CSSELR => stage1.csselr,
        // The CPU holds the neighbour's own values of these.
        name::ESR => ESR_EL1.get(),
        name::FAR => FAR_EL1.get(),
        name::AFSR0 => AFSR0_EL1.get(),
        name::AFSR1 => AFSR1_EL1.get(),
        // These belong to the CPU.
        name::CTR => CTR_EL0.get(),
        name::CLIDR => CLIDR_EL1.get(),
        name::CCSIDR => cache_size(stage1.csselr),
        _ => return None,
    })
}

/// Writes `value` to the neighbour's register `encoding`; returns whether there is such a register.
fn write(worlds: &mut Worlds, encoding: u32, value: u64) -> bool {
    let (effective, stage1) = (&mut worlds.own.effective, &mut worlds.own_stage1);
    match encoding {
        name::SCTLR => {
            effective.sctlr = value;
            SCTLR_EL1.set(value);
            if value & STAGE1_ON != 0 {
                turn_on(worlds);
            }
        }
        name::TCR => {
            effective.tcr = value;
            TCR_EL1.set(value);
        }
        name::CPACR => {
            effective.cpacr = value;
            CPACR_EL1.set(value);
        }
        name::TTBR0 => stage1.ttbr0 = value,
        name::TTBR1 => stage1.ttbr1 = value,
        name::MAIR => stage1.mair = value,
        name::AMAIR => stage1.amair = value,
        name::CONTEXTIDR => stage1.contextidr = value,
        name::CSSELR => stage1.csselr = value,
        name::ESR => ESR_EL1.set(value),
        name::FAR => FAR_EL1.set(value),
        name::AFSR0 => AFSR0_EL1.set(value),
        name::AFSR1 => AFSR1_EL1.set(value),
        _ => return false,
    }
    true
}

/// Returns CCSIDR_EL1 for the cache that `selector`, a value of CSSELR_EL1, selects, or 0 if there is none.
fn cache_size(selector: u64) -> u64 {
    if !cache::exists(CLIDR_EL1.get(), selector) {
        return 0;
    }
    let vcpu = CSSELR_EL1.get();
    CSSELR_EL1.set(selector);
    insn::isb();
    let size = CCSIDR_EL1.get();
    CSSELR_EL1.set(vcpu);
    size
}

/// Exchanges the stage-1 registers from here on, after the neighbour has turned its stage 1 on.
fn turn_on(worlds: &mut Worlds) {
    worlds.more |= more::STAGE1;
    worlds.vcpu_stage1.save();
    worlds.own_stage1.load();
    worlds.own.changing.hcr = HCR_NEIGHBOUR;
    HCR_EL2.set(HCR_NEIGHBOUR);
    // VTTBR_EL2 has the neighbour's VMID. All TLB entries of that VMID from the time without stage 1 have to go,
    // because they combine both stages.
    insn::isb();
    insn::tlbi_vmalls12e1();
    insn::dsb_nsh();
}
