// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the neighbour a turn, and keeps the vCPU's whole state for the time after it.
//!
//! | what | how |
//! |---|---|
//! | general registers | the vCPU's are on the stack of EL2, the neighbour's in [`General`](crate::cpu::tenant::General) |
//! | EL1 and EL0 registers | exchanged ([`arch::el1::El1`]) |
//! | floating point | stays the vCPU's, and traps; exchanged when the neighbour first uses it |
//! | stage 2, traps | VTTBR_EL2, HCR_EL2, CPTR_EL2, MDCR_EL2, CNTHCTL_EL2 |
//! | TLB | by VMID: nothing is invalidated |
//! | virtual interface | stays the vCPU's: off, and every access traps (ICH_HCR_EL2; IHI 0069H, 12.4.2) |
//! | the vCPU's virtual timer | off, since the neighbour may have access to it; EL2's timer is set in its place |
//! | the vCPU's physical timer | continues; the neighbour's accesses trap |
//! | PMU | stopped (PMCR_EL0.E), so that the vCPU's counters do not count the neighbour; accesses trap |
//! | debug registers | MDSCR_EL1 is 0, so none has an effect; accesses trap |
//! | pointer authentication keys, SCXTNUM_ELx | stay the vCPU's; the neighbour's use of them traps |
//! | exclusive monitor, event register | an exception return clears the monitor and sets the event register (DDI 0487K.a, D1.4.1 and D1.7.1): so a store exclusive fails if a turn separates it from its load, and a turn loses no event of the vCPU |

use aarch64_cpu::registers::{
    CNTPCT_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, CPTR_EL2, ELR_EL2, HCR_EL2, ID_AA64DFR0_EL1,
    ID_AA64MMFR0_EL1, MDCR_EL2, Readable, SPSR_EL2, VBAR_EL2, VTTBR_EL2, Writeable,
};
use abi::Shared;
use arch::insn;
use arch::regs::{CNTHCTL_EL2, ICH_HCR_EL2, PMCR_EL0};
use arch::{el1, regs};

use crate::cpu::tenant::Tenant;
use crate::cpu::traps::{HCR_NEIGHBOUR, TRAP_FP};
use crate::machine::machine;
use crate::neighbour::switch::{Back, run_neighbour, set_vectors};
use crate::neighbour::trapped;

/// MDCR_EL2: TPMCR (5), TPM (6), TDA (9).
const TRAP_COUNTERS_AND_DEBUG: u64 = 1 << 5 | 1 << 6 | 1 << 9;
/// CNTHCTL_EL2: EL1PCTEN (0), EL1PCEN (1).
const PHYSICAL_TIMER: u64 = 3;
/// CNTHCTL_EL2.EL1TVT, with FEAT_ECV.
const TRAP_VIRTUAL_TIMER: u64 = 1 << 13;
/// ICH_HCR_EL2: TC (10), TALL0 (11), TALL1 (12), and not En (0).
const NO_INTERFACE: u64 = 1 << 10 | 1 << 11 | 1 << 12;
/// PMCR_EL0.E.
const COUNTING: u64 = 1;

// While registers are exchanged, the registers of EL1&0 belong partly to one guest, partly to the other. No
// table walk uses them: at EL2 that regime is out of context, where the PE makes no speculative walks (DDI
// 0487K.a, D8, out-of-context translation regimes) except for an AT instruction. The image has one AT, which
// examines aborts. Cortex-A57 and A72 (errata 1319537 and 1319367) and Cortex-A55 and A76 (1530923, 1165522)
// may execute it speculatively, so on these cores, these measures alone do not isolate a neighbour.

/// Registers of the vCPU that [`el1::El1`] does not hold, while the neighbour has the CPU.
struct Left {
    pc: u64,
    pstate: u64,
    hcr: u64,
    vectors: u64,
    cptr: u64,
    mdcr: u64,
    cnthctl: u64,
    interface: u64,
    errors: u64,
    timer: u64,
    timer_end: u64,
    /// PMCR_EL0, if the PMU is counting.
    counting: Option<u64>,
}

impl Left {
    /// Saves the vCPU's registers, and sets them for the neighbour whose map is `vttbr`.
    #[inline(always)]
    fn save(vttbr: u64, errors: u64) -> Self {
        let left = Self {
            pc: ELR_EL2.get(),
            pstate: SPSR_EL2.get(),
            hcr: HCR_EL2.get(),
            vectors: VBAR_EL2.get(),
            cptr: CPTR_EL2.get(),
            mdcr: MDCR_EL2.get(),
            cnthctl: CNTHCTL_EL2.get(),
            interface: ICH_HCR_EL2.get(),
            errors: el1::deferred_errors(),
            timer: CNTV_CTL_EL0.get(),
            timer_end: CNTV_CVAL_EL0.get(),
            counting: has_pmu()
                .then(|| PMCR_EL0.get())
                .filter(|control| control & COUNTING != 0),
        };
        if let Some(control) = left.counting {
            PMCR_EL0.set(control & !COUNTING);
        }
        CNTV_CTL_EL0.set(0);
        ICH_HCR_EL2.set(NO_INTERFACE);
        CNTHCTL_EL2.set(left.cnthctl & !PHYSICAL_TIMER | virtual_timer_traps());
        MDCR_EL2.set(left.mdcr | TRAP_COUNTERS_AND_DEBUG);
        CPTR_EL2.set(left.cptr | TRAP_FP);
        el1::set_deferred_errors(errors);
        VTTBR_EL2.set(vttbr);
        HCR_EL2.set(HCR_NEIGHBOUR);
        set_vectors();
        left
    }

    /// Restores the vCPU's registers, and returns the errors that the neighbour has deferred.
    #[inline(always)]
    fn restore(self) -> u64 {
        let errors = el1::deferred_errors();
        VBAR_EL2.set(self.vectors);
        HCR_EL2.set(self.hcr);
        regs::VTTBR_EL2.set(machine().stage2.0);
        el1::set_deferred_errors(self.errors);
        CPTR_EL2.set(self.cptr);
        MDCR_EL2.set(self.mdcr);
        CNTHCTL_EL2.set(self.cnthctl);
        ICH_HCR_EL2.set(self.interface);
        CNTV_CVAL_EL0.set(self.timer_end);
        CNTV_CTL_EL0.set(self.timer);
        if let Some(control) = self.counting {
            PMCR_EL0.set(control);
        }
        ELR_EL2.set(self.pc);
        SPSR_EL2.set(self.pstate);
        // The neighbour's WFE may have consumed an event that was meant for the vCPU. The exception return sets the
        // event register again (D1.7.1); QEMU's exception return does not (`eret_sets_event` in docs/fidelity.md).
        insn::sevl();
        // The vCPU's timer may be due, and the list registers are read next.
        insn::isb();
        errors
    }
}

/// Whether there is a PMU (ID_AA64DFR0_EL1.PMUVer).
fn has_pmu() -> bool {
    !matches!(ID_AA64DFR0_EL1.get() >> 8 & 0xf, 0 | 0xf)
}

/// Returns the bits that trap the virtual timer of EL1, where it can trap (ID_AA64MMFR0_EL1.ECV).
fn virtual_timer_traps() -> u64 {
    match ID_AA64MMFR0_EL1.get() >> 60 {
        0 => 0,
        _ => TRAP_VIRTUAL_TIMER,
    }
}

/// Lets the neighbour run until an interrupt comes and `over` returns true; returns how many ticks
/// this took, including the two switches.
pub fn run_turn(tenant: &Tenant, mut over: impl FnMut() -> bool) -> u64 {
    let begin = CNTPCT_EL0.get();
    // SAFETY: the state is this CPU's own, and no code that runs meanwhile, `over` included, calls this function.
    unsafe {
        tenant.worlds.with(|worlds| {
            let left = Left::save(tenant.stage2.0, worlds.own_errors);
            worlds.vcpu.save();
            worlds.own.load();
            loop {
                // All state of the vCPU has been exchanged, or traps; `program` wrote the program
                // and its table. The exception return is the context synchronization event.
                match run_neighbour(&raw mut worlds.general) {
                    Back::Interrupt if over() => break,
                    Back::Interrupt => {}
                    Back::Trapped => {
                        tenant.add_count(Shared::Trapped, 1);
                        trapped::handle_exit(worlds);
                    }
                }
            }
            worlds.own.save();
            worlds.vcpu.load();
            if worlds.fp_used {
                worlds.own_fp.save();
                worlds.vcpu_fp.load();
                worlds.fp_used = false;
            }
            worlds.own_errors = left.restore();
        });
    }
    tenant.add_count(Shared::Turns, 1);
    CNTPCT_EL0.get() - begin
}
