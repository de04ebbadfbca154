// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the performance monitors of this CPU: cycles, and instructions if the machine counts them
//! (event INST_RETIRED; DDI 0487K.a, D14.11.3).
//!
//! The counters count at EL1 and at EL2 (NSH), so they include the hypervisor's work for a wake-up. A counter belongs
//! to one CPU, so it can't measure the time between events on two CPUs; the clock does, and [`crate::clock::cycles`]
//! converts that to cycles. Whether the cycle counter continues in WFI depends on the machine.

use aarch64_cpu::registers::{ID_AA64DFR0_EL1, Readable};
use arch::insn;
use arch::regs::{
    PMCCFILTR_EL0, PMCCNTR_EL0, PMCEID0_EL0, PMCNTENSET_EL0, PMCR_EL0, PMEVCNTR0_EL0,
    PMEVTYPER0_EL0,
};
use spin::once::Once;

/// PMCR_EL0: E (0) enable, P (1) and C (2) reset, LC (6) 64-bit cycle counter. The other fields of
/// PMCR_EL0 are 0: after a reset, they may have any value; DP (5) would stop the cycle counter where event
/// counting is prohibited, and FZO (9) would stop the event counters on overflow (DDI 0487K.a, PMCR_EL0).
const ENABLE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 6;
/// PMCCFILTR_EL0 and PMEVTYPERn_EL0: NSH, count at EL2.
const AT_EL2: u64 = 1 << 27;
/// Event number of INST_RETIRED; also its bit in PMCEID0_EL0.
const INST_RETIRED: u64 = 8;
/// PMCNTENSET_EL0: the cycle counter, and event counter 0.
const CYCLES: u64 = 1 << 31;
const COUNTER0: u64 = 1;

/// Finds out whether there is a PMU as the architecture describes it (PMUVer). `works` returns
/// whether its argument runs without an exception: Xen has been seen to show the machine's PMUVer
/// to a guest without a PMU, to which the PMU's registers are then UNDEFINED.
pub fn detect_pmu(works: impl FnOnce(fn()) -> bool) {
    let version = ID_AA64DFR0_EL1.get() >> 8 & 0xf;
    let is_claimed = version != 0 && version != 0xf;
    IS_THERE.call_once(|| is_claimed && works(|| PMCCFILTR_EL0.set(AT_EL2)));
}

/// Whether there is a PMU.
pub fn is_present() -> bool {
    IS_THERE.get().is_some_and(|&found| found)
}

static IS_THERE: Once<bool> = Once::new();

/// Whether the PMU counts instructions.
pub fn counts_instructions() -> bool {
    is_present() && PMCEID0_EL0.get() >> INST_RETIRED & 1 != 0
}

/// Starts the counters of this CPU.
pub fn start_counters() {
    if !is_present() {
        return;
    }
    PMCCFILTR_EL0.set(AT_EL2);
    PMEVTYPER0_EL0.set(AT_EL2 | INST_RETIRED);
    PMCNTENSET_EL0.set(CYCLES | COUNTER0);
    PMCR_EL0.set(ENABLE);
    insn::isb();
}

/// Returns the cycles so far; there must be a PMU. The CPU may read the counter early.
#[inline(always)]
pub fn cycles() -> u64 {
    PMCCNTR_EL0.get()
}

/// Returns the cycles and instructions so far; 0 for a count that does not exist.
pub fn read_counts() -> [u64; 2] {
    if !is_present() {
        return [0; 2];
    }
    insn::isb();
    let instructions = if counts_instructions() {
        PMEVCNTR0_EL0.get()
    } else {
        0
    };
    [cycles(), instructions]
}
