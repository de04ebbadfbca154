// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the neighbour a turn, and preserves the vCPU's whole state during the turn.
//!
//! | what | how |
//! |---|---|
//! | general registers | the vCPU's are on EL2's stack, the neighbour's in [`General`](crate::cpu::tenant::General) |
//! | EL1 and EL0 registers | exchanged ([`arch::el1::Untrapped`], [`arch::el1::Effective`]) |
//! | stage-1 registers | stay the vCPU's while the neighbour's stage 1 is off, and are emulated ([`super::stage1`]) |
//! | floating point | stays the vCPU's, and traps; exchanged when the neighbour first uses it |
//! | stage 2, traps | VTTBR_EL2, HCR_EL2, CPTR_EL2, MDCR_EL2, CNTHCTL_EL2 |
//! | TLB | entries are tagged with the VMID, so nothing is invalidated |
//! | virtual interface | stays the vCPU's: off, and every access traps (ICH_HCR_EL2; IHI 0069H, 12.4.2) |
//! | the vCPU's virtual timer | off, since the neighbour may have access to it; EL2's timer is set in its place |
//! | the vCPU's physical timer | continues; the neighbour's accesses trap |
//! | PMU | stopped (PMCR_EL0.E), so that the vCPU's counters do not count the neighbour; accesses trap |
//! | debug registers | MDSCR_EL1 is 0, so none has an effect; accesses trap |
//! | pointer authentication keys, SCXTNUM_ELx | stay the vCPU's; the neighbour's use of them traps |
//! | exclusive monitor, event register | an exception return clears the monitor and sets the event register (DDI 0487K.a, D1.4.1 and D1.7.1): so a store exclusive fails if a turn separates it from its load, and a turn loses no event of the vCPU |

use aarch64_cpu::registers::{
    CNTPCT_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, ELR_EL2, ID_AA64DFR0_EL1, Readable, SPSR_EL2,
    Writeable,
};
use abi::Shared;
use arch::insn;
use arch::regs::{PMCR_EL0, VDISR_EL2, VTTBR_EL2};

use crate::cpu::tenant::{Tenant, Worlds, more};
use crate::neighbour::switch::{Back, run_neighbour};
use crate::neighbour::trapped;

/// PMCR_EL0.E.
const COUNTING: u64 = 1;

// While registers are exchanged, the registers of EL1&0 belong partly to one guest, partly to the other. No
// table walk uses them: at EL2 that regime is out of context, where the PE makes no speculative walks (DDI
// 0487K.a, D8, out-of-context translation regimes) except for an AT instruction. The image has one AT, which
// examines aborts. Cortex-A57 and A72 (errata 1319537 and 1319367) and Cortex-A55 and A76 (1530923, 1165522)
// may execute it speculatively, so on these cores, these measures alone do not isolate a neighbour.

impl Worlds {
    /// Saves the registers of the vCPU, which will continue at `pc`, and loads the neighbour's.
    #[inline(always)]
    fn leave_vcpu(&mut self, pc: u64) {
        let more = self.more;
        let (own, vcpu) = (&self.own, &mut self.vcpu);
        self.vcpu_return = (pc, SPSR_EL2.get());
        self.vcpu_timer = CNTV_CTL_EL0.get();
        CNTV_CTL_EL0.set(0);
        if more & more::PMU != 0 {
            self.vcpu_counting = PMCR_EL0.get();
            PMCR_EL0.set(self.vcpu_counting & !COUNTING);
        }
        if more & more::ERRORS != 0 {
            vcpu.errors = VDISR_EL2.get();
            VDISR_EL2.set(own.errors);
        }
        vcpu.changing.save();
        own.changing.load();
        own.fixed.load();
        VTTBR_EL2.set(own.map);
        vcpu.effective.save();
        own.effective.load();
        vcpu.untrapped.save();
        own.untrapped.load();
        if more & more::RARE != 0 {
            self.load_more();
        }
    }

    /// Saves the neighbour's registers, and loads the vCPU's.
    #[inline(always)]
    fn enter_vcpu(&mut self) {
        let more = self.more;
        if more & (more::RARE | more::FP) != 0 {
            self.save_more();
        }
        let (own, vcpu) = (&mut self.own, &self.vcpu);
        own.untrapped.save();
        vcpu.untrapped.load();
        // The neighbour's values are in memory already: its writes to these registers trap, unless its stage 1 is on.
        vcpu.effective.load();
        VTTBR_EL2.set(vcpu.map);
        vcpu.fixed.load();
        vcpu.changing.load();
        if more & more::ERRORS != 0 {
            own.errors = VDISR_EL2.get();
            VDISR_EL2.set(vcpu.errors);
        }
        if more & more::PMU != 0 {
            PMCR_EL0.set(self.vcpu_counting);
        }
        CNTV_CTL_EL0.set(self.vcpu_timer);
        ELR_EL2.set(self.vcpu_return.0);
        SPSR_EL2.set(self.vcpu_return.1);
        // The neighbour's WFE may have consumed an event that was meant for the vCPU. The exception return sets the
        // event register again (D1.7.1); QEMU's exception return does not (`eret_sets_event` in docs/fidelity.md).
        insn::sevl();
        // The vCPU's timer may be due, and the list registers are read next.
        insn::isb();
    }

    /// Saves the vCPU's registers that most turns leave alone, and loads the neighbour's.
    #[cold]
    #[inline(never)]
    fn load_more(&mut self) {
        if self.more & more::AUXILIARY != 0 {
            self.vcpu_auxiliary.save();
            self.own_auxiliary.load();
        }
        if self.more & more::STAGE1 != 0 {
            self.vcpu_stage1.save();
            self.own_stage1.load();
        }
        if self.more & more::TIMER != 0 {
            self.vcpu_timer_end = CNTV_CVAL_EL0.get();
            // The neighbour can read the register.
            CNTV_CVAL_EL0.set(0);
        }
    }

    /// Saves the neighbour's registers that most turns leave alone, and loads the vCPU's.
    #[cold]
    #[inline(never)]
    fn save_more(&mut self) {
        if self.more & more::AUXILIARY != 0 {
            self.own_auxiliary.save();
            self.vcpu_auxiliary.load();
        }
        if self.more & more::STAGE1 != 0 {
            self.own.effective.save();
            self.own_stage1.save();
            self.vcpu_stage1.load();
        }
        if self.more & more::TIMER != 0 {
            CNTV_CVAL_EL0.set(self.vcpu_timer_end);
        }
        if self.more & more::FP != 0 {
            self.own_fp.save();
            self.vcpu_fp.load();
            self.more &= !more::FP;
        }
    }
}

/// Whether there is a PMU (ID_AA64DFR0_EL1.PMUVer).
pub fn has_pmu() -> bool {
    !matches!(ID_AA64DFR0_EL1.get() >> 8 & 0xf, 0 | 0xf)
}

/// Lets the neighbour run until an interrupt comes and `over` returns true; returns how many ticks
/// this took, including the two switches. The vCPU then continues at `pc`.
#[inline(always)]
pub fn run_turn(tenant: &Tenant, pc: u64, mut over: impl FnMut() -> bool) -> u64 {
    // SAFETY: the state is this CPU's own, and no code that runs meanwhile, `over` included, uses it.
    let worlds = unsafe { tenant.worlds.here() };
    worlds.begin = CNTPCT_EL0.get();
    worlds.leave_vcpu(pc);
    loop {
        // SAFETY: all state of the vCPU has been exchanged, or traps; `program` wrote the program and its table. The
        // exception return is the context synchronization event.
        match unsafe { run_neighbour(&raw mut worlds.general) } {
            Back::Interrupt if over() => break,
            Back::Interrupt => {}
            Back::Trapped => {
                tenant.add_count(Shared::Trapped, 1);
                trapped::handle_exit(worlds);
            }
        }
    }
    worlds.enter_vcpu();
    tenant.add_count(Shared::Turns, 1);
    CNTPCT_EL0.get() - worlds.begin
}
