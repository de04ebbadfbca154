// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles forbidden accesses of the neighbour as if there were no such register, device or memory.

use aarch64_cpu::registers::{
    CPTR_EL2, ELR_EL1, ESR_EL1, ESR_EL2, FAR_EL1, FAR_EL2, Readable, SCTLR_EL1, SPSR_EL1, VBAR_EL1,
    Writeable,
};
use arch::insn;
use trap::esr::{self, Esr};
use trap::sysreg::SystemRegister;
use trap::{abort, inject};

use crate::cpu::tenant::{General, Worlds, more};
use crate::cpu::traps::TRAP_FP;
use crate::neighbour::stage1;

/// Handles an exit of the neighbour.
#[cold]
pub fn handle_exit(worlds: &mut Worlds) {
    let esr = Esr(ESR_EL2.get());
    let general = &mut worlds.general;
    match esr.class() {
        esr::FP => swap_fp_registers(worlds),
        // The neighbour does not wait, because it has no interrupts.
        esr::WFX => general.pc += 4,
        esr::HVC64 => general.x[0] = abi::NOT_SUPPORTED as u64,
        esr::SMC64 => {
            general.pc += 4;
            general.x[0] = abi::NOT_SUPPORTED as u64;
        }
        esr::DATA_ABORT_LOWER | esr::INST_ABORT_LOWER => {
            FAR_EL1.set(FAR_EL2.get());
            let from_el0 = general.pstate & 0xf == 0;
            // The neighbour's table is within its memory, so a walk that fails does so at level 0.
            let walk = abort::is_table_walk(esr).then_some(0);
            enter_vector(general, inject::external_abort_esr(esr, from_el0, walk));
        }
        esr::SYSREG if stage1::handle_access(worlds, SystemRegister::decode(esr.iss())) => {}
        _ => enter_vector(&mut worlds.general, inject::UNDEFINED_ESR),
    }
}

/// Makes EL1 continue at its vector. A vector that itself faults keeps faulting until the turn is over.
fn enter_vector(general: &mut General, syndrome: u64) {
    let entry = inject::exception_entry(general.pstate, VBAR_EL1.get(), SCTLR_EL1.get());
    ELR_EL1.set(general.pc);
    SPSR_EL1.set(general.pstate);
    ESR_EL1.set(syndrome);
    general.pc = entry.pc;
    general.pstate = entry.pstate;
}

/// Handles the neighbour's first use of floating point in a turn; the registers hold the vCPU's values.
fn swap_fp_registers(worlds: &mut Worlds) {
    CPTR_EL2.set(CPTR_EL2.get() & !TRAP_FP);
    insn::isb();
    worlds.vcpu_fp.save();
    worlds.own_fp.load();
    worlds.more |= more::FP;
}
