// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes hardware deliver a guest's interrupts: puts the guest's registers into the physical
//! redistributor, through [`vgic::switch`].

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32};

use arch::lock::Lock;
use vgic::switch::{Physical, Sent};

use super::set_up::restore_for_el2;
use super::{SGIS, on_vgic, timer_ppis};
use crate::cpu::percpu::PerCpu;
use crate::cpu::{pending_word, traps};
use crate::machine::machine;
use crate::machine::vm::vm;
use crate::{refuse, say};

/// SGIs that belong to the secure world, as bits: most firmware keeps SGIs 8 to 15. A list register
/// can hold them like any other SGI, but a guest that owns the interface can neither send nor
/// receive them.
static SECURE: AtomicU32 = AtomicU32::new(0);
/// Held while EL2 decides that a vCPU owns its interface, or that a vCPU has a secure SGI enabled.
/// The two are never true at the same time.
static DECIDED: Lock<()> = Lock::new(());
/// Whether EL2 has already reported the conflict between direct delivery and a guest's secure SGI.
static SAID: AtomicBool = AtomicBool::new(false);

/// Records that this CPU can't use the SGIs in `bits`.
pub fn note_secure_sgis(bits: u32) {
    if bits & ((1 << pending_word::FIRST_SGI) - 1) != 0 {
        refuse!(
            "GIC: SGIs {bits:#06x} belong to the secure world; firmware has to leave SGIs 0 to 7 to Non-secure software"
        );
    }
    // A CPU that was given up at boot may arrive here late, at the same time as another CPU.
    SECURE.fetch_or(bits, Relaxed);
}

/// Returns the SGIs that belong to the secure world; see [`note_secure_sgis`].
pub fn secure_sgis() -> u32 {
    SECURE.load(Relaxed)
}

/// Prints the SGIs of the secure world, if there are any.
pub fn show_secure() {
    if secure_sgis() != 0 {
        say!(
            "GIC: SGIs {:#06x} belong to the secure world: a guest that enables one is injected to, not delivered to directly",
            secure_sgis()
        );
    }
}

/// Runs `begin`, after which this CPU's vCPU may own the GIC's CPU interface. Returns `None` if a
/// vCPU has enabled a secure SGI, which the guest would lose.
fn begin_direct_delivery<R>(begin: impl FnOnce() -> Option<R>) -> Option<R> {
    if secure_sgis() == 0 {
        return begin();
    }
    let _alone = DECIDED.lock();
    let needs = |cpu: &PerCpu| cpu.vcpu.private.enabled() & secure_sgis() != 0;
    if vm().cpus.iter().any(|cpu| needs(cpu)) {
        print_once("the guest has enabled one, so direct delivery is refused");
        return None;
    }
    begin()
}

/// Calls `write`, which enables SGIs of a vCPU, with those SGIs in `bits` that the vCPU may enable now.
pub fn enable_sgis<R>(bits: u32, write: impl FnOnce(u32) -> R) -> R {
    if bits & secure_sgis() == 0 {
        return write(bits);
    }
    let _alone = DECIDED.lock();
    if vm().cpus.iter().any(|cpu| cpu.vcpu.switch.is_direct()) {
        print_once("the guest has direct delivery, so it can't enable one");
        return write(bits & !secure_sgis());
    }
    write(bits)
}

fn print_once(what: &str) {
    if !SAID.swap(true, Relaxed) {
        say!(
            "guest: SGIs {:#06x} belong to the secure world: {what}",
            secure_sgis()
        );
    }
}

/// The physical redistributor of any CPU.
struct Of<'a>(&'a PerCpu);

impl Physical for Of<'_> {
    fn timers(&self) -> u32 {
        timer_ppis()
    }

    fn sgis(&self) -> u32 {
        SGIS & !secure_sgis()
    }

    fn pending(&self) -> u32 {
        self.0.redistributor().pending()
    }

    fn active(&self) -> u32 {
        self.0.redistributor().still_active(SGIS | timer_ppis())
    }

    fn set_pending(&self, intids: u32) {
        if intids != 0 {
            // Data for the receiving CPU has to be visible first (IHI 0069H, 12.1.6).
            arch::insn::dsb_ishst();
            self.0.redistributor().set_pending(intids);
        }
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
        // SAFETY: `vgic::switch` calls this under its lock and while hardware delivers, so no other
        // CPU writes this redistributor's priorities.
        unsafe { self.0.redistributor().set_priority(intid, priority) };
    }
}

fn is_gic_on() -> bool {
    // strict sgi-after-stores: the only stores are to the lock: a CPU that reads the lock too early
    // waits until it is free.
    vm().distributor.lock().forwards()
}

/// Lets other vCPUs read which interrupts are pending and active here.
pub fn publish_states(cpu: &PerCpu) {
    let (redistributor, guest) = (cpu.redistributor(), SGIS | timer_ppis());
    let (pending, active) = (redistributor.pending(), redistributor.active());
    cpu.vcpu.private.publish(pending & guest, active & guest);
}

/// Puts the guest's registers into the physical redistributor of `cpu` if hardware delivers there,
/// and returns whether it does.
pub fn write_gicr(cpu: &PerCpu) -> bool {
    let vcpu = &cpu.vcpu;
    vcpu.switch.write(&vcpu.private, &Of(cpu), is_gic_on)
}

/// Sends `bits` of the pending word to the vCPU of `cpu`.
pub fn deliver(cpu: &PerCpu, bits: u32) -> Sent {
    let vcpu = &cpu.vcpu;
    vcpu.switch.send(bits, &vcpu.private, &Of(cpu), is_gic_on)
}

/// Makes hardware deliver this CPU's interrupts, and returns the unserved bits of its pending word.
/// `None` while the guest has an interrupt active, or if an SGI would be lost; in these cases, the
/// caller has to serve the word.
pub fn go_direct(cpu: &PerCpu) -> Option<u32> {
    let left = begin_direct_delivery(|| {
        on_vgic(cpu, |delivery| {
            cpu.vcpu.switch.to_hardware(delivery, &Of(cpu))
        })
    })?;
    // A doorbell that was already rung does not matter from here on: its request has been served,
    // and the guest must not get the doorbell.
    cpu.redistributor().disable_all(machine().doorbell_bit());
    traps::review_routing();
    Some(left)
}

/// Makes EL2 deliver this CPU's interrupts; `None` while the guest has an interrupt active.
pub fn leave_direct(cpu: &PerCpu) -> Option<()> {
    on_vgic(cpu, |delivery| {
        cpu.vcpu.switch.to_hypervisor(delivery, &Of(cpu))
    })?;
    set_up_for_el2(cpu);
    Some(())
}

/// Makes EL2 deliver this CPU's interrupts even while some are active, and keeps those active.
pub fn end_direct(cpu: &PerCpu) {
    on_vgic(cpu, |delivery| {
        cpu.vcpu.switch.reclaim(delivery, &Of(cpu));
    });
    set_up_for_el2(cpu);
    // EL2 may execute a WFI next, and only interrupts that HCR_EL2 routes to EL2 end that WFI (DDI 0487K.a,
    // D24.1.2.2).
    arch::insn::isb();
}

fn set_up_for_el2(cpu: &PerCpu) {
    restore_for_el2(cpu.redistributor(), &machine().platform);
    on_vgic(cpu, |delivery| delivery.follow_timers());
    traps::review_routing();
}
