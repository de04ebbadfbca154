// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual interrupts of this CPU: crate `vgic` on this CPU's registers.

mod line;
mod look;

pub use line::{IRQ_MASKED, TRAP_GROUP1, lines, sample, unwatch, watch};
pub use look::{audit, stray};

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{ICH_HCR_EL2, ICH_VTR_EL2, Readable, Writeable};
use abi::Counter;
use arch::gic_cpu;
use arch::regs::{ICC_SRE_EL2, ICH_EISR_EL2, ICH_ELRSR_EL2, ich_lr, set_ich_lr};
use gic::Redistributor;
use platform::Platform;
use vgic::{Bank, List, ListRegister, Private};

use crate::cpu::percpu::PerCpu;
use crate::cpu::{pending_word, traps};
use crate::interrupts::kick;
use crate::machine::machine;
use crate::machine::vm::vm;
use crate::refuse;

/// ICC_SRE_EL2: system registers at EL2 (0), bypass off (1, 2); EL1's choice of
/// its own traps (3 is 0).
const SRE: u64 = 0x7;
/// ICH_HCR_EL2: En (0), UIE (1).
const ENABLE: u64 = 1 << 0;
const UNDERFLOW: u64 = 1 << 1;
/// Priority of everything that EL2 takes: none preempts another.
const PRIORITY: u8 = 0x80;
/// Every SGI, as bits of the redistributor's registers.
const SGIS: u32 = 0xffff;

/// The list registers of the CPU that runs.
struct ListRegisters;

impl Bank for ListRegisters {
    #[inline(always)]
    fn count(&self) -> usize {
        // ListRegs, bits 4:0: one less than there are.
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
    }

    fn set_underflow(&mut self, on: bool) {
        let rest = ICH_HCR_EL2.get() & !UNDERFLOW;
        ICH_HCR_EL2.set(rest | if on { UNDERFLOW } else { 0 });
    }
}

/// Sets up the interrupt controller of this CPU for EL2.
///
/// # Safety
/// The description must be true and mapped, and `cpu` the CPU that runs.
pub unsafe fn prepare(cpu: &PerCpu, platform: &Platform<'_>) -> Result<(), gic::Error> {
    // SAFETY: as the caller promises; each CPU has its own redistributor.
    let redistributor = unsafe {
        let redistributor = Redistributor::find(&platform.gic, cpu.mpidr)?;
        redistributor.set_up();
        redistributor
    };
    cpu.redistributor.call_once(|| redistributor);
    ICC_SRE_EL2.set(SRE);
    arch::insn::isb();
    own(&redistributor, platform);
    for n in 0..ListRegisters.count() {
        set_ich_lr(n, 0);
    }
    // With one register "at most one is in use" always holds, and the
    // maintenance interrupt that refills it would never end.
    if ListRegisters.count() < 2 {
        refuse!("GIC: one list register, and Rouse needs two");
    }
    ICH_HCR_EL2.set(ENABLE);
    Ok(())
}

/// The interrupts that EL2 takes: SGIs, the maintenance interrupt and its own
/// timer's. Those of the guest's timers follow the guest's enables.
fn own(redistributor: &Redistributor, platform: &Platform<'_>) {
    for intid in 0..vgic::PRIVATE {
        // SAFETY: only EL2 of the CPU that it belongs to gets here.
        unsafe { redistributor.set_priority(intid, PRIORITY) };
    }
    let timer = platform.timer.hyp;
    redistributor.enable_all(SGIS | 1 << platform.gic.maintenance | 1 << timer);
    gic_cpu::enable(true);
}

/// The physical interrupt behind a private INTID of the guest.
fn hardware(intid: u32) -> Option<u32> {
    let timer = &machine().platform.timer;
    (intid == timer.virt || intid == timer.phys).then_some(intid)
}

/// PPIs whose physical enable follows the guest's.
fn timers() -> u32 {
    let timer = &machine().platform.timer;
    1 << timer.virt | 1 << timer.phys
}

/// Makes SGI or PPI `intid` pending for this CPU's vCPU.
#[inline(always)]
pub fn inject(cpu: &PerCpu, intid: u32, hw: Option<u32>) {
    let vcpu = &cpu.vcpu;
    match vcpu.private.ready(intid) {
        Some(priority) => {
            // SAFETY: this CPU's own; `List::inject` does not come here again.
            unsafe {
                vcpu.list
                    .with(|list| list.inject(&mut ListRegisters, intid, priority, hw));
            }
            vcpu.counters.add(Counter::Listed);
        }
        None if hw.is_none() => vcpu.private.set_pending(intid),
        // It has just been disabled, by another CPU: it stays active physically
        // until [`evaluate`], which is on its way, lets its line speak again.
        None => {}
    }
}

/// Whether the guest has an interrupt to acknowledge, as of the last look at the
/// lines ([`sample`]).
#[inline(always)]
pub fn deliverable(cpu: &PerCpu) -> bool {
    // SAFETY: this CPU's own; `deliverable` does not come here again.
    unsafe { cpu.vcpu.list.with(|list| list.deliverable(&ListRegisters)) }
}

/// The maintenance interrupt: lists what waited for a register, if the list
/// registers are running empty, or lets go of what the guest has ended and another
/// vCPU waits for. Answers whether there was either.
pub fn maintain(cpu: &PerCpu) -> bool {
    if ICH_EISR_EL2.get() != 0 {
        evaluate(cpu);
        return true;
    }
    let asked = ICH_HCR_EL2.get() & UNDERFLOW != 0;
    if asked {
        // SAFETY: this CPU's own; `refill` does not come here again.
        unsafe { cpu.vcpu.list.with(|list| list.refill(&mut ListRegisters)) }
    }
    asked
}

/// Brings this CPU in line with the registers of the virtual interrupt
/// controller after one was written.
pub fn evaluate(cpu: &PerCpu) {
    if to_machine(cpu) {
        return;
    }
    let private = &cpu.vcpu.private;
    let vcpu = spis(cpu);
    // SAFETY: this CPU's own; nothing in the closure comes here again.
    let (listed, others) = unsafe {
        cpu.vcpu.list.with(|list| {
            let mut distributor = vm().distributor.lock();
            let forward = distributor.forwards();
            let listed = list.sync(&mut ListRegisters, private, forward);
            expect(list, private);
            let others = list.sync_spis(&mut ListRegisters, &mut distributor, vcpu);
            (listed, others)
        })
    };
    follow_timers(cpu);
    release_timers(cpu, listed);
    if others {
        evaluate_others(cpu);
    }
}

/// Says what is to be listed when one of the interrupts arrives that EL2 takes
/// for the guest: what the short way does without asking.
fn expect(list: &mut List, private: &Private) {
    let sgis = (1 << pending_word::FIRST_SGI) - 1;
    for intid in vgic::ones((sgis | timers()).into()) {
        let priority = private.ready(intid);
        let value =
            priority.map(|priority| ListRegister::pending(intid, priority, hardware(intid)));
        list.expect(intid, value);
    }
}

/// The vCPU of `cpu`, as the distributor knows it.
fn spis(cpu: &PerCpu) -> vgic::Vcpu {
    let number = vm().find(cpu.mpidr).map_or(0, |(number, _)| number);
    vgic::Vcpu {
        number,
        affinity: cpu.mpidr,
    }
}

/// The physical interrupt of a timer is active from when EL2 took it until its
/// virtual one ends: it was ended by register, taken back, or is a software
/// interrupt meanwhile, whose end does not reach the physical one. Of those
/// that are not `listed` it ends here, and comes again if the level is high.
fn release_timers(cpu: &PerCpu, listed: u32) {
    cpu.redistributor().clear_active(timers() & !listed);
}

/// Enables the physical interrupts of the timers that can be delivered: a level
/// is to wait in the machine, where it is gone when it is low.
fn follow_timers(cpu: &PerCpu) {
    let ready = cpu.vcpu.private.all_ready() & timers();
    cpu.redistributor().enable_all(ready);
    cpu.redistributor().disable_all(timers() & !ready);
}

/// Lets other vCPUs read what is pending and active here.
pub fn publish(cpu: &PerCpu) {
    if cpu.vcpu.direct.load(Relaxed) {
        let (redistributor, guest) = (cpu.redistributor(), SGIS | timers());
        let (pending, active) = (redistributor.pending(), redistributor.active());
        cpu.vcpu.private.publish(pending & guest, active & guest);
        return;
    }
    sample(cpu);
    // SAFETY: this CPU's own; `publish` does not come here again.
    unsafe {
        cpu.vcpu.list.with(|list| {
            list.publish(&ListRegisters, &cpu.vcpu.private);
            let mut distributor = vm().distributor.lock();
            list.publish_spis(&ListRegisters, &mut distributor, spis(cpu));
        });
    }
}

/// Moves what is listed and pending back to the registers.
pub fn unlist(cpu: &PerCpu) {
    // SAFETY: this CPU's own; nothing in the closure comes here again.
    unsafe {
        cpu.vcpu.list.with(|list| {
            list.drain(&mut ListRegisters, |one| match one.hw() {
                Some(_) => {}
                None if one.intid() < vgic::PRIVATE => cpu.vcpu.private.set_pending(one.intid()),
                None => vm().distributor.lock().give_back(one.intid()),
            });
        });
    }
    release_timers(cpu, 0);
}

/// Puts the guest's registers into the physical redistributor of `cpu`, if that
/// is in direct mode; whether it is. Any CPU may do so: the lock sees to it that
/// who comes last has read the registers last, and that the redistributor stays
/// the guest's meanwhile.
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
        // SAFETY: under the lock nobody else writes this redistributor's priorities.
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
    follow_timers(cpu);
    traps::set_direct(false);
}

/// Delivers mailbox `bits` to a CPU that is in direct mode; `false` if it is no
/// longer, and nothing was done.
pub fn deliver(cpu: &PerCpu, bits: u32) -> bool {
    if bits & pending_word::EVALUATE != 0 && !to_machine(cpu) {
        return false;
    }
    // Right in either mode: EL2 takes a physical SGI for a virtual one.
    cpu.redistributor().set_pending(bits & pending_word::SGIS);
    true
}

/// Lets go of the SPIs that were listed here: what is pending of them was given
/// back, and other vCPUs may be waiting for it.
pub fn release_spis(cpu: &PerCpu) {
    let waiting = vm().distributor.lock().release(spis(cpu));
    if waiting {
        evaluate_others(cpu);
    }
}

/// Has every other CPU look at the registers.
fn evaluate_others(cpu: &PerCpu) {
    let others = vm().cpus.iter();
    let others = others.filter(|other| !core::ptr::eq(**other, cpu));
    others.for_each(|other| kick::send(other, pending_word::EVALUATE));
}

/// Leaves what the guest has active physically to its list registers.
pub fn keep_active(cpu: &PerCpu) {
    let active = cpu.redistributor().active() & (SGIS | timers());
    cpu.redistributor().clear_active(active);
    cpu.vcpu.private.activate(active);
}

/// Whether the guest has an interrupt active, whoever owns the interface: in a
/// list register, or physically. The running priority alone does not tell where
/// the guest ends interrupts in two steps.
pub fn has_active(cpu: &PerCpu) -> bool {
    if cpu.vcpu.direct.load(Relaxed) {
        return cpu.redistributor().active() & (SGIS | timers()) != 0;
    }
    let used = (0..ListRegisters.count()).filter(|&n| ListRegisters.empty() >> n & 1 == 0);
    used.map(|n| ListRegisters.read(n))
        .any(ListRegister::is_active)
}
