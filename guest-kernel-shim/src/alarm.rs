// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the alarm, a virtual-timer interrupt that ends waits which might not end otherwise.
//! While interrupts are unmasked, the alarm ends any wait on any machine.
//!
//! The alarm fires when its time comes, and then again and again until it is turned off. An alarm that
//! fired only once would not bound a wait: between arming the alarm and waiting, a hypervisor or an
//! emulator's host may stop this CPU for any length of time, to run something else. Then the alarm fires
//! before the wait, and the wait does not end. An alarm that repeats ends the wait, whenever it fires:
//!
//! - while the CPU waits: an interrupt that PSTATE does not mask wakes WFE, WFET and WFI (DDI 0487K.a, D1.7.1, D1.7.2),
//!   and an interrupt that is routed to EL2 is not masked by the EL1 state (D1.7.1.4 and D1.7.2.1, entries marked A);
//! - before a WFE or WFET: the return from the handler sets the event register (D1.7.1.1), so the wait
//!   returns at once; for an emulator that omits this, the handler sets the register ([`crate::dispatch`]);
//! - before a WFI: this interrupt is lost, and the next one ends the wait.
//!
//! None of this holds while PSTATE.I is set: WFE need not end for a masked interrupt, so a wait needs another bound.

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Writeable};
use arch::insn;
use core::sync::atomic::Ordering::Relaxed;

use crate::bell::Bell;
use crate::machine::platform;
use crate::percpu::PerCpu;
use crate::{clock, interrupts};

/// Time between two interrupts of the alarm, in microseconds. A handler takes far less, so the waiting CPU makes
/// progress between two interrupts.
const AGAIN_US: u32 = 2000;

/// The virtual timer of this CPU, which serves as an alarm until this value is dropped. Only one
/// CPU at a time has an alarm; the others are parked meanwhile.
pub struct Alarm {
    bell: &'static Bell,
}

impl Alarm {
    /// Takes the virtual timer for the alarm, and lets it interrupt this CPU.
    pub fn new() -> Self {
        let cpu = PerCpu::this();
        let timer = platform().timer.virt;
        interrupts::set_first_listener(handle_interrupt);
        interrupts::redistributor(cpu).enable_all(1 << timer);
        Self { bell: &cpu.bell }
    }

    /// Sets the alarm to `ticks` from now, and returns that time.
    #[inline(always)]
    pub fn set(&self, ticks: u64) -> u64 {
        let due = clock::now() + ticks;
        CNTV_CVAL_EL0.set(due);
        CNTV_CTL_EL0.set(1);
        insn::isb();
        due
    }

    /// Turns the alarm off.
    #[inline(always)]
    pub fn clear(&self) {
        CNTV_CTL_EL0.set(0);
        insn::isb();
    }

    /// Clears the record of the alarm's first interrupt.
    pub fn forget(&self) {
        self.bell.rings.store(0, Relaxed);
    }

    /// Returns the time of the alarm's first interrupt since [`Self::forget`], in ticks.
    pub fn rang_at(&self) -> Option<u64> {
        let rang = self.bell.rings.load(Relaxed) != 0;
        rang.then(|| self.bell.first.load(Relaxed))
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.clear();
        interrupts::end_first_listener();
    }
}

/// Handles interrupt `intid` of `cpu`, the running CPU, while there is an alarm. If this is the timer's
/// interrupt, counts it and sets the timer for the next one. The interrupt handler has turned the timer off.
fn handle_interrupt(cpu: &PerCpu, intid: u32) {
    if intid != platform().timer.virt {
        interrupts::call_second(cpu, intid);
        return;
    }
    let bell = &cpu.bell;
    let now = clock::now();
    if bell.rings.fetch_add(1, Relaxed) == 0 {
        bell.first.store(now, Relaxed);
    }
    CNTV_CVAL_EL0.set(now + clock::us_to_ticks(AGAIN_US));
    CNTV_CTL_EL0.set(1);
    insn::isb();
}
