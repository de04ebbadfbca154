// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where hardware delivers: the guest's registers in the physical redistributor, by
//! [`vgic::switch`].

use vgic::switch::{Physical, Sent};

use super::set_up::own;
use super::{SGIS, timers, with};
use crate::cpu::percpu::PerCpu;
use crate::cpu::traps;
use crate::machine::machine;
use crate::machine::vm::vm;

/// The physical redistributor of a CPU, which may be another one.
struct Of<'a>(&'a PerCpu);

impl Physical for Of<'_> {
    fn timers(&self) -> u32 {
        timers()
    }

    fn pending(&self) -> u32 {
        self.0.redistributor().pending()
    }

    fn active(&self) -> u32 {
        self.0.redistributor().still_active(SGIS | timers())
    }

    fn set_pending(&self, intids: u32) {
        self.0.redistributor().set_pending(intids);
    }

    fn clear_pending(&self, intids: u32) {
        self.0.redistributor().clear_pending(intids);
    }

    fn set_active(&self, intids: u32) {
        self.0.redistributor().set_active(intids);
    }

    fn clear_active(&self, intids: u32) {
        self.0.redistributor().clear_active(intids);
    }

    fn enable(&self, intids: u32) {
        self.0.redistributor().enable_all(intids);
    }

    fn disable(&self, intids: u32) {
        self.0.redistributor().disable_all(intids);
    }

    fn set_priority(&self, intid: u32, priority: u8) {
        // SAFETY: `vgic::switch` calls this under its lock and while hardware delivers:
        // no other CPU writes this redistributor's priorities.
        unsafe { self.0.redistributor().set_priority(intid, priority) };
    }
}

fn forward() -> bool {
    vm().distributor.lock().forwards()
}

/// Lets other vCPUs read what is pending and active here.
pub fn publish(cpu: &PerCpu) {
    let (redistributor, guest) = (cpu.redistributor(), SGIS | timers());
    let (pending, active) = (redistributor.pending(), redistributor.active());
    cpu.vcpu.private.publish(pending & guest, active & guest);
}

/// Puts the guest's registers into the physical redistributor of `cpu`, if hardware delivers
/// there; whether it does.
pub fn to_machine(cpu: &PerCpu) -> bool {
    let vcpu = &cpu.vcpu;
    vcpu.switch.write(&vcpu.private, &Of(cpu), forward)
}

/// Asks the vCPU of `cpu` for `bits` of its pending word.
pub fn send(cpu: &PerCpu, bits: u32) -> Sent {
    let vcpu = &cpu.vcpu;
    vcpu.switch.send(bits, &vcpu.private, &Of(cpu), forward)
}

/// Has hardware deliver to this CPU; the bits of its pending word that are not done. `None`
/// while the guest has an interrupt active, and the word is to be served.
pub fn to_hardware(cpu: &PerCpu) -> Option<u32> {
    let left = with(cpu, |delivery| {
        cpu.vcpu.switch.to_hardware(delivery, &Of(cpu))
    })?;
    // A doorbell that was already rung does not matter from here on: what it was for is
    // done, and the guest must not get it.
    cpu.redistributor().disable_all(machine().doorbell());
    traps::review_route();
    Some(left)
}

/// Has EL2 deliver to this CPU; `None` while the guest has an interrupt active.
pub fn to_hypervisor(cpu: &PerCpu) -> Option<()> {
    with(cpu, |delivery| {
        cpu.vcpu.switch.to_hypervisor(delivery, &Of(cpu))
    })?;
    set_up_for_el2(cpu);
    Some(())
}

/// The same whatever is active: that stays so.
pub fn reclaim(cpu: &PerCpu) {
    with(cpu, |delivery| {
        cpu.vcpu.switch.reclaim(delivery, &Of(cpu));
    });
    set_up_for_el2(cpu);
}

fn set_up_for_el2(cpu: &PerCpu) {
    own(cpu.redistributor(), &machine().platform);
    with(cpu, |delivery| delivery.follow_timers());
    traps::review_route();
}
