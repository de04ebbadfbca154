// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delivers the virtual interrupts of this CPU: runs [`vgic::Delivery`] on this CPU's registers.

mod direct;
mod set_up;
mod timer_lines;

pub use direct::{
    deliver, enable_sgis, end_direct, go_direct, leave_direct, secure_sgis, show_secure, write_gicr,
};
pub use set_up::{
    PRIORITY, clear_guest, disable_sgis, has_active_priorities, has_group0, pmr_value, prepare_cpu,
};
pub use timer_lines::{IRQ_MASKED, TRAP_GROUP1, handle_access_trap, high_ppis, trap_next_access};

use abi::Counter;
use arch::regs::{
    ICC_CTLR_EL1, ICH_AP1R0_EL2, ICH_AP1R1_EL2, ICH_AP1R2_EL2, ICH_AP1R3_EL2, ICH_EISR_EL2,
    ICH_ELRSR_EL2, ICH_HCR_EL2, ICH_VMCR_EL2, ICH_VTR_EL2, ich_lr, set_ich_lr,
};
use arch::{gic_cpu, insn};
use trap::interface::Register;
use vgic::{
    Asked, Bank, Delivery, Distributor, Due, Fault, Interface, ListRegister, Maintenance,
    Registers, Shared, Vcpu,
};

use crate::cpu::pending_word;
use crate::cpu::percpu::PerCpu;
use crate::interrupts::kick;
use crate::machine::machine;
use crate::machine::vm::vm;

/// ICH_HCR_EL2.NPIE.
const NO_PENDING: u64 = 1 << 3;
/// ICH_HCR_EL2.TC: EL1's accesses to the interface's registers of both groups trap.
const TRAP_COMMON: u64 = 1 << 10;
/// Every SGI, as bits of the redistributor's registers.
const SGIS: u32 = 0xffff;

/// The CPU interface of the running CPU.
struct ThisCpu<'a>(&'a PerCpu);

impl Bank for ThisCpu<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        // ListRegs, bits 4:0: the number of list registers minus one.
        (ICH_VTR_EL2.get() & 0x1f) as usize + 1
    }

    #[inline(always)]
    fn empty(&self) -> u32 {
        ICH_ELRSR_EL2.get() as u32
    }

    #[inline(always)]
    fn read(&self, n: usize) -> ListRegister {
        ListRegister(ich_lr(n))
    }

    #[inline(always)]
    fn write(&mut self, n: usize, value: ListRegister) {
        set_ich_lr(n, value.0);
        insn::isb();
    }

    #[inline(always)]
    fn write_last(&mut self, n: usize, value: ListRegister) {
        set_ich_lr(n, value.0);
    }

    fn ask(&mut self, asked: Asked) {
        let rest = ICH_HCR_EL2.get() & !(NO_PENDING | TRAP_COMMON);
        let refill = if asked.refill { NO_PENDING } else { 0 };
        // A trap that waits for a timer's interrupt to be acknowledged stays: `handle_access_trap` ends it.
        let traps = if asked.traps {
            TRAP_COMMON | TRAP_GROUP1
        } else {
            0
        };
        ICH_HCR_EL2.set(rest | refill | traps);
    }
}

impl Interface for ThisCpu<'_> {
    const SGIS: u32 = (1 << pending_word::FIRST_SGI) - 1;

    fn ended(&self) -> u32 {
        ICH_EISR_EL2.get() as u32
    }

    fn asked(&self) -> Asked {
        let control = ICH_HCR_EL2.get();
        Asked {
            refill: control & NO_PENDING != 0,
            traps: control & TRAP_COMMON != 0,
        }
    }

    fn timers(&self) -> u32 {
        timer_ppis()
    }

    fn lines(&self) -> u32 {
        high_ppis(self.0)
    }

    fn vcpu(&self) -> Vcpu {
        let number = vm().find(self.0.mpidr).map_or(0, |(number, _)| number);
        Vcpu {
            number,
            affinity: self.0.mpidr,
        }
    }

    fn enable(&mut self, on: u32, off: u32) {
        self.0.redistributor().enable_all(on);
        if off != 0 {
            self.0.redistributor().disable_all(off);
        }
    }

    fn clear_active(&mut self, intids: u32) {
        self.0.redistributor().clear_active(intids);
    }

    fn deactivate(&mut self, intid: u32) {
        gic_cpu::deactivate(intid);
    }

    fn active(&self) -> u32 {
        let private = u32::MAX;
        self.0.redistributor().still_active(private)
    }
}

impl Registers for ThisCpu<'_> {
    fn kind(&self) -> u64 {
        ICH_VTR_EL2.get()
    }

    fn ranges(&self) -> u64 {
        /// ICC_CTLR_EL1.RSS and ExtRange.
        const RANGES: u64 = 0b11 << 18;
        ICC_CTLR_EL1.get() & RANGES
    }

    fn settings(&self) -> u64 {
        ICH_VMCR_EL2.get()
    }

    fn set_settings(&mut self, settings: u64) {
        ICH_VMCR_EL2.set(settings);
    }

    fn active_priorities(&self, n: usize) -> u32 {
        let bits = match n {
            0 => ICH_AP1R0_EL2.get(),
            1 => ICH_AP1R1_EL2.get(),
            2 => ICH_AP1R2_EL2.get(),
            _ => ICH_AP1R3_EL2.get(),
        };
        bits as u32
    }

    fn set_active_priorities(&mut self, n: usize, bits: u32) {
        match n {
            0 => ICH_AP1R0_EL2.set(bits.into()),
            1 => ICH_AP1R1_EL2.set(bits.into()),
            2 => ICH_AP1R2_EL2.set(bits.into()),
            _ => ICH_AP1R3_EL2.set(bits.into()),
        }
    }
}

/// The guest's distributor, under its lock.
struct Locked;

impl Shared for Locked {
    #[inline]
    fn with<R>(&self, use_it: impl FnOnce(&mut Distributor) -> R) -> R {
        // strict sgi-after-stores: the only stores are to the lock: a CPU that reads the lock too
        // early waits until it is free.
        use_it(&mut vm().distributor.lock())
    }
}

/// Runs `use_it` on the interrupts of this CPU's vCPU.
#[inline(always)]
fn on_vgic<R>(cpu: &PerCpu, use_it: impl FnOnce(&mut Delivery<'_, ThisCpu<'_>, Locked>) -> R) -> R {
    // SAFETY: this is the CPU's own list. `use_it` calls crate `vgic` and the two implementations
    // above, none of which calls `on_vgic` again.
    unsafe {
        cpu.vcpu.list.with(|list| {
            use_it(&mut Delivery {
                private: &cpu.vcpu.private,
                list,
                interface: ThisCpu(cpu),
                shared: Locked,
            })
        })
    }
}

/// Returns the PPIs whose physical enable bit follows the guest's.
fn timer_ppis() -> u32 {
    let timer = &machine().platform.timer;
    1 << timer.virt | 1 << timer.phys
}

/// Makes SGI or PPI `intid` pending for this CPU's vCPU; `hw` is the corresponding physical
/// interrupt. The caller must return to the guest or execute an ISB next: a list register may have
/// been written.
#[inline(always)]
pub fn inject_interrupt(cpu: &PerCpu, intid: u32, hw: Option<u32>) {
    if on_vgic(cpu, |delivery| delivery.inject(intid, hw)) {
        cpu.vcpu.counters.add(Counter::Listed);
    }
}

/// If the value for the acknowledged interrupt `intid` is prepared, lists it in list register 0, which must be empty,
/// and ends the physical interrupt; returns whether it did so. A return to the guest must follow.
#[inline(always)]
pub fn list_expected(cpu: &PerCpu, intid: u32) -> bool {
    let Some(value) = on_vgic(cpu, |delivery| delivery.list.first_arrival(intid)) else {
        return false;
    };
    set_ich_lr(0, value.0);
    gic_cpu::end(intid);
    if value.0 >> ListRegister::HW_BIT & 1 == 0 {
        gic_cpu::deactivate(intid);
    }
    true
}

/// Returns whether the guest had an interrupt to acknowledge at the last [`sample_timer_lines`].
#[inline(always)]
pub fn has_deliverable(cpu: &PerCpu) -> bool {
    on_vgic(cpu, |delivery| delivery.deliverable())
}

/// Samples the lines of the guest's timers; see [`timer_lines`].
#[cold]
pub fn sample_timer_lines(cpu: &PerCpu) {
    on_vgic(cpu, |delivery| delivery.sample());
}

/// Serves the maintenance interrupt; returns whether the list registers caused it. If they did, the caller must
/// execute an ISB before the next read of their state.
#[inline(always)]
pub fn serve_maintenance(cpu: &PerCpu) -> bool {
    match on_vgic(cpu, |delivery| delivery.maintain()) {
        Maintenance::Nothing => false,
        Maintenance::Refilled => true,
        Maintenance::Ended => {
            update_cpu(cpu);
            true
        }
    }
}

/// Updates this CPU after a register of the virtual interrupt controller was written.
pub fn update_cpu(cpu: &PerCpu) {
    // Only this CPU changes whether EL2 or hardware delivers its interrupts.
    if cpu.vcpu.switch.is_direct() {
        write_gicr(cpu);
        return;
    }
    if on_vgic(cpu, |delivery| delivery.evaluate()) {
        update_other_cpus(cpu);
    }
}

/// Emulates a trapped access of the guest to its CPU interface through [`Delivery::access`], and
/// returns the value of a read. The lines of the timers must have been sampled.
pub fn emulate_access(cpu: &PerCpu, register: Register, write: Option<u64>) -> Option<u64> {
    let (value, due) = on_vgic(cpu, |delivery| delivery.access(register, write))?;
    do_due(cpu, due);
    Some(value)
}

/// Does the work that is due after an access to the guest's CPU interface.
pub fn do_due(cpu: &PerCpu, due: Due) {
    if due != Due::Nothing {
        update_cpu(cpu);
    }
    if due == Due::Everywhere {
        update_other_cpus(cpu);
    }
}

/// Lists this CPU's pending SGIs of a GICv2.
pub fn inject_sgis(cpu: &PerCpu) {
    if on_vgic(cpu, |delivery| delivery.inject_sgis()) {
        cpu.vcpu.counters.add(Counter::Listed);
    }
}

/// Emulates an access to GICD_CPENDSGIR or GICD_SPENDSGIR.
pub fn access_senders(cpu: &PerCpu, access: vgic::Access) -> u64 {
    on_vgic(cpu, |delivery| delivery.access_senders(access))
}

/// Emulates an access to the CPU interface of a GICv2. The lines of the timers must have been sampled.
pub fn access_interface(cpu: &PerCpu, access: vgic::Access) -> (u64, Due) {
    on_vgic(cpu, |delivery| delivery.access_interface(access))
}

/// Lets other vCPUs read which interrupts are pending and active here.
pub fn publish_states(cpu: &PerCpu) {
    if cpu.vcpu.switch.is_direct() {
        return direct::publish_states(cpu);
    }
    on_vgic(cpu, |delivery| delivery.publish());
}

/// Releases the SPIs that were listed here before hardware began to deliver interrupts: their
/// pending states were given back, and other vCPUs may be waiting for them.
pub fn release_spis(cpu: &PerCpu) {
    if on_vgic(cpu, |delivery| delivery.release_spis()) {
        update_other_cpus(cpu);
    }
}

/// Makes every other CPU evaluate the registers of the virtual interrupt controller.
fn update_other_cpus(cpu: &PerCpu) {
    let others = vm().cpus.iter();
    let others = others.filter(|other| !core::ptr::eq(**other, cpu));
    others.for_each(|other| kick::send_requests(other, pending_word::EVALUATE));
}

/// Checks the list registers against EL2's record of them; `quiet` means that the guest has no interrupt to take. In
/// direct mode, no list register may be in use.
pub fn audit_lists(cpu: &PerCpu, quiet: bool) -> Result<(), Fault> {
    let direct = cpu.vcpu.switch.is_direct();
    on_vgic(cpu, |delivery| delivery.audit(quiet, direct))
}

/// Returns the private interrupts that are physically active although the guest has them neither pending nor active.
pub fn stray_active(cpu: &PerCpu) -> u32 {
    if cpu.vcpu.switch.is_direct() {
        return 0;
    }
    on_vgic(cpu, |delivery| delivery.stray())
}
