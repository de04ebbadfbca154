// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where hardware delivers: the guest's registers in the physical redistributor.

use core::sync::atomic::Ordering::Relaxed;

use super::set_up::own;
use super::{SGIS, lines, timers, with};
use crate::cpu::percpu::PerCpu;
use crate::cpu::{pending_word, traps};
use crate::machine::machine;
use crate::machine::vm::vm;

/// Lets other vCPUs read what is pending and active here.
pub fn publish(cpu: &PerCpu) {
    let (redistributor, guest) = (cpu.redistributor(), SGIS | timers());
    let (pending, active) = (redistributor.pending(), redistributor.active());
    cpu.vcpu.private.publish(pending & guest, active & guest);
}

/// Puts the guest's registers into the physical redistributor of `cpu`, if that
/// is in direct mode; whether it is. Any CPU may do so. Under the lock the last CPU to
/// write has also read the registers last, and the redistributor stays the guest's.
pub fn to_machine(cpu: &PerCpu) -> bool {
    let _alone = cpu.vcpu.switching.lock();
    if !cpu.vcpu.direct.load(Relaxed) {
        return false;
    }
    let (private, redistributor) = (&cpu.vcpu.private, cpu.redistributor());
    let guest = SGIS | timers();
    let forward = vm().distributor.lock().forwards();
    let ready = private.refresh(forward) & guest;
    for intid in (0..vgic::PRIVATE).filter(|intid| guest >> intid & 1 != 0) {
        // SAFETY: under the lock no other CPU writes this redistributor's priorities.
        unsafe { redistributor.set_priority(intid, private.priority(intid)) };
    }
    redistributor.disable_all(guest & !ready);
    let [withdraw, deactivate, activate] = private.take_requests().map(|bits| bits & guest);
    redistributor.clear_pending(withdraw);
    redistributor.clear_active(deactivate);
    redistributor.set_active(activate);
    let pending = private.take_pending(guest);
    // Noted, because the machine does not tell what is set from what a line makes.
    cpu.vcpu.lines_set.fetch_or(pending & timers(), Relaxed);
    redistributor.set_pending(pending);
    redistributor.enable_all(ready);
    true
}

/// Takes the physical redistributor of this CPU back for EL2. What is pending
/// there stays so and comes as an interrupt to EL2.
pub fn from_machine(cpu: &PerCpu) {
    let _alone = cpu.vcpu.switching.lock();
    // What software set of the timers' is the guest's still, unless it was taken
    // since; behind a level that is high that can't be told, and it is the level.
    let set = cpu.vcpu.lines_set.swap(0, Relaxed);
    let set = set & cpu.redistributor().pending() & !lines(cpu);
    cpu.redistributor().clear_pending(set);
    vgic::ones(set.into()).for_each(|intid| cpu.vcpu.private.set_pending(intid));
    own(cpu.redistributor(), &machine().platform);
    with(cpu, |delivery| delivery.follow_timers());
    traps::set_direct(false);
}

/// Delivers `bits` of a pending word to a CPU that is in direct mode. `false`: it is not
/// any more, and nothing was done.
pub fn deliver(cpu: &PerCpu, bits: u32) -> bool {
    if bits & pending_word::EVALUATE != 0 && !to_machine(cpu) {
        return false;
    }
    // Right in either mode: EL2 takes a physical SGI for a virtual one.
    cpu.redistributor().set_pending(bits & pending_word::SGIS);
    true
}

/// Leaves what the guest has active physically to its list registers.
pub fn keep_active(cpu: &PerCpu) {
    let active = cpu.redistributor().still_active(SGIS | timers());
    cpu.redistributor().clear_active(active);
    cpu.vcpu.private.activate(active);
}
