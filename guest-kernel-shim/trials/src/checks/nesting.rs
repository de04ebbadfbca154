// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes more interrupts active at once than any CPU has list registers, and checks the rules: a more urgent interrupt
//! must not wait, however many interrupts are active (IHI 0069H, 4.8), and each interrupt ends by its own INTID.
//!
//! IRQs are masked, and the checks themselves acknowledge pending interrupts.

use arch::{gic_cpu, insn};
use core::ops::Range;

use gic::Spi;

use super::levels::{Timer, acknowledge, for_each_timer, none_due, redistributor, set_eoi_mode};
use super::outcome::{Failure, ensure};
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{clock, machine};

/// SGIs that this kernel does not use itself.
const SGIS: Range<u32> = 2..16;
const SGI_BITS: u32 = 0xfffc;
/// SPIs that no device uses.
const SPIS: Range<u32> = 40..48;
/// The usual priority of the timer, the SGIs and the SPIs.
const USUAL: u8 = 0x80;

fn send_sgi(intid: u32) {
    gic_cpu::send_sgi(intid, PerCpu::this().mpidr);
    clock::wait_for(|| redistributor().pending() >> intid & 1 != 0);
}

fn ensure_active(bits: u32, what: Failure) -> Result<(), Failure> {
    ensure(redistributor().active() == bits, what)
}

fn set_priority(intid: u32, priority: u8) {
    // SAFETY: this is this CPU's own redistributor.
    unsafe { redistributor().set_priority(intid, priority) };
}

/// Runs `check` through [`for_each_timer`], with EOImode `two_steps`; leaves no SGI active.
fn with_sgis(two_steps: bool, check: impl Fn(Timer) -> Result<(), Failure>) -> Result<(), Failure> {
    redistributor().enable_all(SGI_BITS);
    let result = for_each_timer(|timer| {
        set_eoi_mode(two_steps);
        let result = check(timer);
        set_eoi_mode(false);
        redistributor().clear_pending(SGI_BITS);
        redistributor().clear_active(SGI_BITS);
        set_priority(timer.intid, USUAL);
        result
    });
    SGIS.for_each(|intid| set_priority(intid, USUAL));
    result
}

/// Checks nesting in which each SGI is more urgent than the active ones, and the timer is the most urgent. The
/// interrupts end in reverse order, and each becomes pending again in between.
pub fn each_more_urgent() -> Result<(), Failure> {
    with_sgis(false, |timer| {
        let mut all = 0;
        for intid in SGIS {
            set_priority(intid, (0x100 - 0x10 * intid) as u8);
            send_sgi(intid);
            acknowledge(intid)?;
            all |= 1 << intid;
        }
        set_priority(timer.intid, 0);
        timer.raise();
        acknowledge(timer.intid)?;
        ensure_active(all | timer.bit(), "not all are active")?;
        none_due()?;
        timer.lower();
        gic_cpu::end(timer.intid);
        for intid in SGIS.rev() {
            ensure_active(all, "another one is active")?;
            send_sgi(intid);
            none_due()?;
            // The level stays high, so the timer's interrupt is pending again after it has been ended.
            timer.raise();
            acknowledge(timer.intid)?;
            gic_cpu::end(timer.intid);
            acknowledge(timer.intid)?;
            timer.lower();
            gic_cpu::end(timer.intid);
            gic_cpu::end(intid);
            acknowledge(intid)?;
            ensure_active(all, "not active again")?;
            gic_cpu::end(intid);
            all &= !(1 << intid);
        }
        ensure_active(0, "something is still active")
    })
}

/// Checks that the next interrupt is always taken while earlier ones have been ended but not deactivated. The
/// interrupts are deactivated in another order, and each is taken again at once.
pub fn ended_and_active() -> Result<(), Failure> {
    with_sgis(true, |timer| {
        timer.raise();
        acknowledge(timer.intid)?;
        gic_cpu::end(timer.intid);
        let mut all = timer.bit();
        for intid in SGIS {
            send_sgi(intid);
            acknowledge(intid)?;
            gic_cpu::end(intid);
            all |= 1 << intid;
            ensure_active(all, "not all are active")?;
        }
        none_due()?;
        let order = SGIS.step_by(2).chain(SGIS.skip(1).step_by(2).rev());
        for intid in order {
            send_sgi(intid);
            none_due()?;
            gic_cpu::deactivate(intid);
            acknowledge(intid)?;
            ensure_active(all, "not active again")?;
            gic_cpu::end(intid);
            gic_cpu::deactivate(intid);
            all &= !(1 << intid);
            ensure_active(all, "another one is active")?;
        }
        // The level is still high.
        gic_cpu::deactivate(timer.intid);
        acknowledge(timer.intid)?;
        timer.lower();
        gic_cpu::end(timer.intid);
        gic_cpu::deactivate(timer.intid);
        ensure_active(0, "something is still active")
    })
}

/// Checks that software can make more interrupts active than there are list registers. Each can be ended, and a new
/// priority of an active and pending interrupt takes effect when it is next taken.
pub fn nested_set_active() -> Result<(), Failure> {
    with_sgis(true, |_| {
        redistributor().set_active(SGI_BITS);
        ensure_active(SGI_BITS, "set active and not shown")?;
        SGIS.for_each(send_sgi);
        none_due()?;
        for intid in SGIS {
            gic_cpu::deactivate(intid);
            acknowledge(intid)?;
            gic_cpu::end(intid);
        }
        redistributor().clear_active(SGI_BITS);
        ensure_active(0, "cleared and active")?;
        set_eoi_mode(false);
        send_sgi(5);
        acknowledge(5)?;
        send_sgi(5);
        set_priority(5, 0x40);
        send_sgi(6);
        gic_cpu::end(5);
        acknowledge(5)?;
        gic_cpu::end(5);
        acknowledge(6)?;
        gic_cpu::end(6);
        ensure_active(0, "something is still active")
    })
}

/// Like [`nested_set_active`], but for SPIs. An SPI that software made active is ended like any other SPI.
pub fn nested_spis() -> Result<(), Failure> {
    let gic = &machine::platform().gic;
    // SAFETY: the machine's description is true, and nothing else uses these SPIs.
    let spi = |intid| unsafe { Spi::new(gic, intid) };
    let result = with_sgis(true, |_| {
        for (intid, sgi) in SPIS.zip(SGIS) {
            spi(intid).set_group1();
            spi(intid).set_priority(USUAL);
            spi(intid).route(PerCpu::this().mpidr);
            spi(intid).enable();
            spi(intid).set_pending();
            acknowledge(intid)?;
            gic_cpu::end(intid);
            send_sgi(sgi);
            acknowledge(sgi)?;
            gic_cpu::end(sgi);
        }
        for (intid, sgi) in SPIS.zip(SGIS) {
            ensure(spi(intid).is_active(), "not active")?;
            spi(intid).set_pending();
            none_due()?;
            gic_cpu::deactivate(intid);
            acknowledge(intid)?;
            gic_cpu::end(intid);
            gic_cpu::deactivate(intid);
            gic_cpu::deactivate(sgi);
            ensure(!spi(intid).is_active(), "still active")?;
        }
        ensure_active(0, "something is still active")?;
        let first = spi(SPIS.start);
        first.set_active();
        first.set_pending();
        insn::isb();
        none_due()?;
        gic_cpu::deactivate(SPIS.start);
        acknowledge(SPIS.start)?;
        gic_cpu::end(SPIS.start);
        gic_cpu::deactivate(SPIS.start);
        ensure(!first.is_active(), "still active")
    });
    for intid in SPIS {
        spi(intid).disable();
        spi(intid).clear_pending();
        spi(intid).clear_active();
    }
    result
}
