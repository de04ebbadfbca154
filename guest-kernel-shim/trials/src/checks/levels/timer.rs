// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the checks a timer of this CPU, and its interrupt.

use aarch64_cpu::registers::{
    CNTP_CTL_EL0, CNTP_CVAL_EL0, CNTPCT_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, Readable, Writeable,
};
use arch::gic_cpu::SPURIOUS;
use arch::{gic_cpu, insn};
use core::cell::Cell;
use gic::Redistributor;

use super::super::outcome::{Failure, ensure};
use guest_kernel_shim::interrupts::{self, journal};
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{clock, machine};

/// CNTx_CTL_EL0: ENABLE, and ISTATUS.
const ENABLE: u64 = 1;
const EXPIRED: u64 = 1 << 2;
/// A timer of this CPU, and its interrupt.
#[derive(Clone, Copy)]
pub struct Timer {
    pub intid: u32,
    pub physical: bool,
}

impl Timer {
    pub fn both() -> [Self; 2] {
        let timer = &machine::platform().timer;
        [(timer.virt, false), (timer.phys, true)].map(|(intid, physical)| Self { intid, physical })
    }

    pub fn other(self) -> Self {
        Self::both()[usize::from(!self.physical)]
    }

    pub fn bit(self) -> u32 {
        1 << self.intid
    }

    /// Makes the timer expire in `ticks`.
    pub fn arm(self, ticks: u64) {
        if self.physical {
            CNTP_CVAL_EL0.set(CNTPCT_EL0.get() + ticks);
            CNTP_CTL_EL0.set(ENABLE);
        } else {
            CNTV_CVAL_EL0.set(clock::now() + ticks);
            CNTV_CTL_EL0.set(ENABLE);
        }
        insn::isb();
    }

    pub fn has_expired(self) -> bool {
        let control = if self.physical {
            CNTP_CTL_EL0.get()
        } else {
            CNTV_CTL_EL0.get()
        };
        control & EXPIRED != 0
    }

    /// Makes the timer expire, and waits until the interrupt controller has noticed.
    pub fn raise(self) {
        self.arm(0);
        while !self.has_expired() {
            insn::yield_now();
        }
        spin_briefly();
    }

    /// Turns the timer off, and waits until the interrupt controller has noticed.
    pub fn lower(self) {
        if self.physical {
            CNTP_CTL_EL0.set(0);
        } else {
            CNTV_CTL_EL0.set(0);
        }
        insn::isb();
        spin_briefly();
    }

    pub fn enable(self) {
        redistributor().enable_all(self.bit());
    }

    pub fn disable(self) {
        redistributor().disable_all(self.bit());
    }

    pub fn pending(self) -> bool {
        redistributor().pending() & self.bit() != 0
    }

    pub fn active(self) -> bool {
        redistributor().active() & self.bit() != 0
    }

    /// Acknowledges the timer's pending interrupt, after giving it time to arrive.
    pub fn acknowledge(self) -> Result<(), Failure> {
        acknowledge(self.intid)
    }
}

/// Acknowledges `intid`, which has to be the most urgent interrupt, after giving it time to arrive.
pub fn acknowledge(intid: u32) -> Result<(), Failure> {
    if machine::platform().gic.version2.is_some() {
        gic::version2::look_at_levels();
    }
    let got = Cell::new(SPURIOUS);
    clock::wait_for(|| {
        got.set(gic_cpu::acknowledge());
        got.get() != SPURIOUS
    });
    ensure(got.get() == intid, "it is not there to be acknowledged")
}

/// Waits a moment without an exit.
pub fn spin_briefly() {
    let end = clock::now() + clock::us_to_ticks(20);
    while clock::now() < end {
        insn::yield_now();
    }
}

pub fn redistributor() -> &'static Redistributor {
    interrupts::redistributor(PerCpu::this())
}

/// Fails if there is an interrupt to acknowledge.
pub fn none_due() -> Result<(), Failure> {
    match gic_cpu::acknowledge() {
        SPURIOUS => Ok(()),
        intid => {
            gic_cpu::end(intid);
            Err("one came for which there is no reason any more")
        }
    }
}

/// Runs `check` with each timer, with IRQs masked, both timers off and their interrupts enabled,
/// and undoes these settings afterwards.
pub fn for_each_timer(check: impl Fn(Timer) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut result = Ok(());
    for timer in Timer::both() {
        insn::mask_irq();
        journal(PerCpu::this()).clear();
        Timer::both().into_iter().for_each(Timer::enable);
        result = result.and_then(|()| check(timer)).and_then(|()| none_due());
        for timer in Timer::both() {
            timer.lower();
            timer.disable();
            redistributor().clear_pending(timer.bit());
            redistributor().clear_active(timer.bit());
        }
        insn::unmask_irq();
    }
    result
}
