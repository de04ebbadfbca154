// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exit by physical interrupt.

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
    handle(cpu, gic_cpu::acknowledge(), Came::Running);
}

/// The exit after an acknowledge that gave `intid`: what is left of it by
/// `exits::fast_paths`.
pub extern "C" fn acknowledged(intid: u32) {
    handle(PerCpu::this(), intid, Came::Running);
}

/// The same for what ended a wait.
pub extern "C" fn waited(intid: u32) {
    handle(PerCpu::this(), intid, Came::Waiting);
}

/// Takes the most urgent pending physical interrupt; whether there was one.
#[inline(always)]
pub fn take(cpu: &PerCpu) -> bool {
    handle(cpu, gic_cpu::acknowledge(), Came::Waiting)
}

/// Handles interrupt `intid`, which is active; whether it was one.
///
/// No barrier follows the acknowledge: what is done for an interrupt reads no
/// memory but this CPU's, except for the pending word, which is emptied by an atomic
/// exchange. Its store is not made before the acknowledge has returned, and the other
/// CPU set its bits before it rang the doorbell ([`kick::send`]), so the exchange
/// finds them.
#[inline(always)]
fn handle(cpu: &PerCpu, intid: u32, came: Came) -> bool {
    if intid < PPI {
        cpu.vcpu.counters.add(Counter::Irq);
        // EOImode 1: priority drop and deactivation are two writes.
        gic_cpu::end(intid);
        gic_cpu::deactivate(intid);
        vgic_cpu::inject(cpu, intid, None);
        return true;
    }
    take_other(cpu, intid, came)
}

#[cold]
fn take_other(cpu: &PerCpu, intid: u32, came: Came) -> bool {
    let platform = &machine().platform;
    if intid >= 1020 {
        return false;
    }
    gic_cpu::end(intid);
    if intid == platform.gic.maintenance {
        // Before the pending word is emptied: bits that are set later have a doorbell
        // of their own.
        gic_cpu::deactivate(intid);
        cpu.vcpu.counters.add(match vgic_cpu::maintain(cpu) {
            true => Counter::Maintenance,
            false => Counter::Irq,
        });
        kick::serve(cpu);
    } else if intid == platform.timer.virt || intid == platform.timer.phys {
        // It stays active until the guest ends it through the list register:
        // a level that is still high must not interrupt again meanwhile.
        cpu.vcpu.counters.add(Counter::Irq);
        vgic_cpu::inject(cpu, intid, Some(intid));
        if came == Came::Running {
            vgic_cpu::watch();
        }
    } else if intid == platform.timer.hyp {
        watchdog::expired(cpu);
        gic_cpu::deactivate(intid);
    } else {
        // EL2 did not enable it; firmware may have left it so.
        cpu.vcpu.counters.add(Counter::Irq);
        gic_cpu::deactivate(intid);
    }
    true
}
