// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles each interrupt. `dispatch` is the only module that knows all users of interrupts. The
//! vectors call it through two symbols.

use aarch64_cpu::registers::{CNTP_CTL_EL0, CNTV_CTL_EL0, Readable, Writeable};
use arch::{gic_cpu, insn};
use core::sync::atomic::Ordering::Relaxed;
use gic::version2::{self, Acknowledged};

use crate::interrupts::{self, CALL, RESCHED};
use crate::kernel;
use crate::machine::platform;
use crate::percpu::PerCpu;
use crate::tally::Event;
use crate::workload::call;

/// Handles the interrupt `intid`.
#[inline(always)]
fn handle(intid: u32) {
    let cpu = PerCpu::this();
    cpu.tally.add(Event::Taken);
    match intid {
        // The request word holds the requests; a busy CPU reads this flag instead.
        RESCHED => cpu.interrupted.store(true, Relaxed),
        CALL => call::serve_request(cpu),
        _ => handle_unexpected(cpu, intid),
    }
}

#[cold]
fn handle_unexpected(cpu: &PerCpu, intid: u32) {
    /// CNTV_CTL_EL0, CNTP_CTL_EL0: ENABLE and IMASK. An expired timer stays expired: without
    /// masking, its level would cause interrupts for ever.
    const MASKED: u64 = 3;
    if kernel::handle_interrupt(cpu, intid) {
        return;
    }
    let timer = &platform().timer;
    if intid == timer.virt {
        CNTV_CTL_EL0.set(MASKED);
    } else if intid == timer.phys {
        CNTP_CTL_EL0.set(MASKED);
    }
    // The level has to be low before the end of the interrupt.
    insn::isb();
    cpu.journal.record_interrupt(intid);
    interrupts::call_listener(cpu, intid);
}

/// Handles an interrupt that has come through the time-stamping vector.
#[unsafe(no_mangle)]
extern "C" fn el1_interrupt() {
    el1_acknowledged(gic_cpu::acknowledge());
}

/// Handles the acknowledged interrupt `intid`; the plain vector calls this too.
#[unsafe(no_mangle)]
extern "C" fn el1_acknowledged(intid: u32) {
    if intid == gic_cpu::SPURIOUS {
        return;
    }
    handle(intid);
    gic_cpu::end(intid);
    set_event_register();
}

/// Handles an interrupt that has come through the time-stamping vector, with a GICv2.
#[unsafe(no_mangle)]
extern "C" fn el1_interrupt_version2() {
    handle_acknowledged(version2::acknowledge());
}

/// Handles the interrupt acknowledged by GICC_IAR = `iar`; the plain vector calls this too.
#[unsafe(no_mangle)]
extern "C" fn el1_acknowledged_version2(iar: u32) {
    handle_acknowledged(iar.into());
}

fn handle_acknowledged(acknowledged: Acknowledged) {
    if let Some(intid) = acknowledged.intid() {
        handle(intid);
        version2::end(acknowledged);
        // The handler may have set the timer again, and the timer may have expired before the end of the interrupt.
        if intid == VIRTUAL_TIMER && is_level_high() {
            version2::look_at_levels();
        }
        set_event_register();
    }
}

/// The interrupt of the virtual timer on QEMU's boards, as in Arm BSA (DEN0094C, 3.7).
const VIRTUAL_TIMER: u32 = 27;

/// Whether the virtual timer has expired, and its interrupt is not masked.
#[inline(always)]
fn is_level_high() -> bool {
    // ENABLE and ISTATUS without IMASK.
    CNTV_CTL_EL0.get() & 0b111 == 0b101
}

#[inline(always)]
fn set_event_register() {
    // The handler may have run between a check of the request word and the WFE that follows. The exception
    // return from here generates an event (DDI 0487K.a, D1.7.2), so that the WFE does not wait. On an emulator
    // that omits this event, the WFE would wait despite the request, so the SEVL generates the event.
    insn::sevl();
}
