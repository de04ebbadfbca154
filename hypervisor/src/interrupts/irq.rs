// SPDX-License-Identifier: MIT OR Apache-2.0
//! Physical interrupts: the exit by one, and those that EL2 takes while it waits.
//!
//! Only what came as an exception is an exit. What ended a wait at EL2 is acknowledged
//! there, with interrupts masked, and part of the exit by the WFI.

use abi::Counter;
use arch::gic_cpu;

use crate::cpu::percpu::PerCpu;
use crate::cpu::trace::{On, Trace, Traced};
use crate::dumps::watchdog;
use crate::interrupts::{kick, vgic_cpu};
use crate::machine::machine;

/// First INTID that is not an SGI.
const PPI: u32 = 16;

/// What the guest did when an interrupt came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    /// It waited at EL2.
    Waiting,
    /// It ran.
    Running,
}

/// The exit, traced.
pub extern "C" fn exit() {
    let cpu = PerCpu::this();
    On::note(cpu, Traced::Interrupt, 0);
    count(cpu, handle(cpu, gic_cpu::acknowledge(), Came::Running));
}

/// The exit after an acknowledge that gave `intid`: what is left of it by
/// `exits::fast_paths`.
pub extern "C" fn acknowledged(intid: u32) {
    let cpu = PerCpu::this();
    count(cpu, handle(cpu, intid, Came::Running));
}

/// Counts the exit, also one whose interrupt was gone when it was acknowledged.
#[inline(always)]
fn count(cpu: &PerCpu, cause: Option<Counter>) {
    cpu.vcpu.counters.add(cause.unwrap_or(Counter::Irq));
}

/// The same for what ended a wait.
pub extern "C" fn waited(intid: u32) {
    handle(PerCpu::this(), intid, Came::Waiting);
}

/// Takes the most urgent pending physical interrupt; whether there was one.
#[inline(always)]
pub fn take(cpu: &PerCpu) -> bool {
    handle(cpu, gic_cpu::acknowledge(), Came::Waiting).is_some()
}

/// Handles interrupt `intid`, which is active; what an exit by it counts as, if it was
/// one.
///
/// No barrier follows the acknowledge: what is done for an interrupt reads no
/// memory but this CPU's, except for the pending word, which is emptied by an atomic
/// exchange. Its store is not made before the acknowledge has returned, and the other
/// CPU set its bits before it rang the doorbell ([`kick::send`]), so the exchange
/// finds them.
#[inline(always)]
fn handle(cpu: &PerCpu, intid: u32, came: Came) -> Option<Counter> {
    if intid < PPI {
        // EOImode 1: priority drop and deactivation are two writes.
        gic_cpu::end(intid);
        gic_cpu::deactivate(intid);
        vgic_cpu::inject(cpu, intid, None);
        return Some(Counter::Irq);
    }
    take_other(cpu, intid, came)
}

#[cold]
fn take_other(cpu: &PerCpu, intid: u32, came: Came) -> Option<Counter> {
    let platform = &machine().platform;
    if intid >= 1020 {
        return None;
    }
    gic_cpu::end(intid);
    let mut cause = Counter::Irq;
    if intid == platform.gic.maintenance {
        // Before the pending word is emptied: bits that are set later have a doorbell
        // of their own.
        gic_cpu::deactivate(intid);
        if vgic_cpu::maintain(cpu) {
            cause = Counter::Maintenance;
        }
        kick::serve(cpu);
    } else if intid == platform.timer.virt || intid == platform.timer.phys {
        // It stays active until the guest ends it through the list register:
        // a level that is still high must not interrupt again meanwhile.
        vgic_cpu::inject(cpu, intid, Some(intid));
        if came == Came::Running {
            vgic_cpu::watch();
        }
    } else if intid == platform.timer.hyp {
        watchdog::expired(cpu);
        gic_cpu::deactivate(intid);
    } else {
        // EL2 did not enable it; firmware may have left it so.
        gic_cpu::deactivate(intid);
    }
    Some(cause)
}
