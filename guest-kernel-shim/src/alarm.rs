// SPDX-License-Identifier: MIT OR Apache-2.0
//! The alarm: an interrupt of the virtual timer, whose only purpose is to end a
//! wait that nothing else may end. Unmasked it ends any wait on any machine.

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Writeable};
use arch::insn;

use crate::percpu::PerCpu;
use crate::{clock, interrupts, start};

/// Lets the timer interrupt this CPU.
pub fn enable() {
    let timer = start::platform().timer.virt;
    interrupts::redistributor(PerCpu::this()).enable_all(1 << timer);
}

/// Sets it to `ticks` from now. The handler turns off one that rang.
pub fn set(ticks: u64) {
    CNTV_CVAL_EL0.set(clock::now() + ticks);
    CNTV_CTL_EL0.set(1);
    insn::isb();
}

/// Turns it off.
pub fn clear() {
    CNTV_CTL_EL0.set(0);
    insn::isb();
}
