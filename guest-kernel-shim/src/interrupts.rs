// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupts of this kernel: two SGIs. The virtual timer's is enabled by
//! who needs it.

use arch::gic_cpu;
use core::sync::atomic::Ordering::Relaxed;
use gic::Redistributor;
use platform::Platform;

use crate::percpu::PerCpu;
use crate::tally::Event;
use crate::workload::call;

/// "Look at your request word": a task is to run.
pub const RESCHED: u32 = 0;
/// A function is to be called.
pub const CALL: u32 = 1;

/// Sets up the interrupt controller of this CPU.
///
/// # Safety
/// The description must be true, and its devices mapped.
pub unsafe fn enable(cpu: &PerCpu, platform: &Platform<'_>) {
    // SAFETY: as the caller promises; this CPU is the only one that uses its
    // redistributor.
    let redistributor = unsafe {
        let found = Redistributor::find(&platform.gic, cpu.mpidr);
        let redistributor = found.unwrap_or_else(|error| panic!("{error}"));
        redistributor.set_up();
        redistributor
    };
    redistributor.enable_all(1 << RESCHED | 1 << CALL);
    gic_cpu::enable(false);
}

/// The interrupt handler.
#[inline(always)]
fn handle(intid: u32) {
    let cpu = PerCpu::this();
    cpu.tally.add(Event::Taken);
    match intid {
        // What is requested is in the request word; a busy CPU that does not
        // look there looks here.
        RESCHED => cpu.interrupted.store(true, Relaxed),
        CALL => call::serve(cpu),
        _ => unexpected(intid),
    }
}

#[cold]
fn unexpected(intid: u32) {
    panic!("interrupt {intid} was never enabled");
}

/// The vector's handler.
pub extern "C" fn irq() {
    let intid = gic_cpu::acknowledge();
    if intid == gic_cpu::SPURIOUS {
        return;
    }
    handle(intid);
    gic_cpu::end(intid);
}
