// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the neighbour has a turn, and how long.
//!
//! | turn | begins | ends |
//! |---|---|---|
//! | given | the vCPU waits in a trapped WFI | with any interrupt |
//! | yielded | the vCPU executes a WFE that traps (`yield-on`) | with any interrupt, or after a slice |
//! | taken | the vCPU has not waited for a slice | after a slice |
//!
//! In a turn that is taken the vCPU's interrupts wait, as it would have gone on if it had not
//! been interrupted: only EL2's timer has a priority above the mask. Otherwise whatever sends
//! interrupts to a vCPU would decide how much of its CPU the neighbour gets.

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTPCT_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, CNTVOFF_EL2, Readable};
use abi::{Neighbour, Shared};
use arch::insn;
use arch::regs::{ICC_PMR_EL1, IRQ_PENDING, ISR_EL1};

use wait::target::after;

use crate::cpu::percpu::PerCpu;
use crate::cpu::tenant::Tenant;
use crate::cpu::trace::{On, Shared as SharedCpu};
use crate::cpu::traps;
use crate::dumps::own_timer;
use crate::interrupts::vgic_cpu::PRIORITY;
use crate::interrupts::{irq, vgic_cpu};
use crate::machine::machine;
use crate::machine::vm::{self, vm};
use crate::neighbour::place::word;
use crate::neighbour::program::{DAMAGED, DONE};
use crate::neighbour::{program, world};

/// CNTx_CTL_EL0: ENABLE (0), IMASK (1), ISTATUS (2).
const ENABLED: u64 = 0b001;
const HIGH: u64 = 0b101;
const CONTROL: u64 = 0b111;

/// Priority of EL2's timer where there are slices, above that of everything else
/// (`interrupts::vgic_cpu::prepare`), and the mask that lets only it pass, by `vgic_cpu::mask`.
/// Both have their bits in the five that every interface has (IHI 0069H, 4.8.1).
const TIMER_PRIORITY: u8 = 0x40;
const ONLY_TIMER: u8 = 0x60;

/// The exit by an interrupt of a CPU that has a neighbour: afterwards the slice may be over.
pub extern "C" fn interrupt() {
    let cpu = PerCpu::this();
    irq::exit::<SharedCpu>(cpu);
    look(cpu);
}

/// The same, traced, of a CPU that may have one.
pub extern "C" fn interrupt_traced() {
    let cpu = PerCpu::this();
    irq::exit::<On>(cpu);
    look(cpu);
}

/// Lets the neighbour have its slice if that of the vCPU is over.
fn look(cpu: &PerCpu) {
    if let Some(tenant) = cpu.neighbour().filter(|_| is_over(cpu)) {
        take(cpu, tenant);
    }
}

/// Whether the vCPU has had its slice.
fn is_over(cpu: &PerCpu) -> bool {
    cpu.slice_end.load(Relaxed) <= CNTPCT_EL0.get()
}

/// The vCPU waits for an interrupt, or for `deadline`, ticks of the physical count: the
/// neighbour has the CPU meanwhile.
pub fn wait(cpu: &PerCpu, tenant: &Tenant, deadline: Option<u64>) {
    match Next::of_this() {
        Next::Pending => {}
        Next::High => insn::wfi(),
        Next::At(timer) => give(cpu, tenant, [deadline, timer].into_iter().flatten().min()),
    }
}

/// When the vCPU of this CPU would be interrupted.
enum Next {
    /// An interrupt is pending.
    Pending,
    /// Its virtual timer has expired. The interrupt is about to be pending, or nothing comes of it: the
    /// vCPU has it disabled, or active. Which, the redistributor would know; a timer that is
    /// switched off for the neighbour would take it back. So the neighbour has no turn.
    High,
    /// At this tick of the physical count by its virtual timer, if that is on.
    At(Option<u64>),
}

impl Next {
    /// Of the CPU that runs, after the exception that has brought it here: that has synchronized
    /// what the vCPU wrote to its timer (DDI 0487K.a, D1.3.2).
    #[inline(always)]
    fn of_this() -> Self {
        if ISR_EL1.get() & IRQ_PENDING != 0 {
            return Self::Pending;
        }
        match CNTV_CTL_EL0.get() & CONTROL {
            HIGH => Self::High,
            ENABLED => Self::At(Some(after(CNTV_CVAL_EL0.get(), CNTVOFF_EL2.get()))),
            _ => Self::At(None),
        }
    }
}

/// The vCPU says that it waits for an event, and would rather not: the neighbour has the CPU for a
/// slice.
pub fn yield_to(cpu: &PerCpu, tenant: &Tenant) {
    let slice = tenant.slice.load(Relaxed);
    if slice == 0 {
        return insn::yield_now();
    }
    let Next::At(timer) = Next::of_this() else {
        return insn::yield_now();
    };
    let end = own_timer::after(slice);
    give(cpu, tenant, Some(timer.map_or(end, |timer| timer.min(end))));
    irq::take(cpu);
}

/// A turn that any interrupt ends.
fn give(cpu: &PerCpu, tenant: &Tenant, until: Option<u64>) {
    cpu.slice_end.store(own_timer::NEVER, Relaxed);
    // Where there are no slices and no deadline, the timer is as it has to be.
    let timed = until.is_some() || tenant.slice.load(Relaxed) != 0;
    if timed {
        own_timer::rearm(until);
    }
    let ticks = world::visit(tenant, || true);
    tenant.add(Shared::Given, ticks);
    if timed {
        begin_slice(cpu, tenant);
    }
}

/// A turn that only EL2's timer ends.
fn take(cpu: &PerCpu, tenant: &Tenant) {
    let end = own_timer::after(tenant.slice.load(Relaxed));
    cpu.slice_end.store(end, Relaxed);
    own_timer::rearm(None);
    let mask = ICC_PMR_EL1.get();
    // Writes to it are self-synchronizing (IHI 0069H, ICC_PMR_EL1), and come before the exception return.
    ICC_PMR_EL1.set(vgic_cpu::mask(ONLY_TIMER));
    let ticks = world::visit(tenant, || {
        // It may also have been for EL2's own looks.
        irq::take(cpu);
        is_over(cpu)
    });
    ICC_PMR_EL1.set(mask);
    tenant.add(Shared::Taken, ticks);
    tenant.add(Shared::Slices, 1);
    begin_slice(cpu, tenant);
}

/// The vCPU has the CPU for a slice, if there are any.
fn begin_slice(cpu: &PerCpu, tenant: &Tenant) {
    let end = match tenant.slice.load(Relaxed) {
        0 => own_timer::NEVER,
        ticks => own_timer::after(ticks),
    };
    cpu.slice_end.store(end, Relaxed);
    own_timer::rearm(None);
}

/// Sets what the neighbour of `cpu`, which is the one that runs, does; `None` if there is no place for
/// it, or the vCPU's interrupts are its own.
pub fn set(cpu: &PerCpu, does: Neighbour) -> Option<()> {
    let Some(tenant) = cpu.tenant() else {
        return (does == Neighbour::None).then_some(());
    };
    if does != Neighbour::None {
        if cpu.vcpu.switch.is_direct() {
            return None;
        }
        program::begin(tenant, does)?;
    }
    tenant.set(does);
    traps::review_neighbour();
    review(cpu, tenant);
    Some(())
}

/// Sets the length of slices, ticks; `None` if it is too long, or EL2 has no timer.
pub fn set_slice(cpu: &PerCpu, ticks: u64) -> Option<()> {
    let Some(tenant) = cpu.tenant() else {
        return (ticks == 0).then_some(());
    };
    let most = machine().ticks(abi::neighbour::MAX_SLICE_MS * 1_000_000);
    if ticks > most || ticks != 0 && machine().platform.timer.hyp.is_none() {
        return None;
    }
    tenant.slice.store(ticks, Relaxed);
    review(cpu, tenant);
    Some(())
}

/// Sets whether a trapped WFE gives the CPU away.
pub fn set_yield(cpu: &PerCpu, on: bool) -> Option<()> {
    let Some(tenant) = cpu.tenant() else {
        return (!on).then_some(());
    };
    tenant.yield_on_wfe.store(on, Relaxed);
    Some(())
}

/// Begins a slice where there are some, after one of them was set.
fn review(cpu: &PerCpu, tenant: &Tenant) {
    let sliced = tenant.is_there() && tenant.slice.load(Relaxed) != 0;
    if let Some(hyp) = machine().platform.timer.hyp {
        let priority = if sliced { TIMER_PRIORITY } else { PRIORITY };
        // SAFETY: only EL2 of the CPU that it belongs to gets here.
        unsafe { cpu.redistributor().set_priority(hyp, priority) };
    }
    if tenant.is_there() {
        begin_slice(cpu, tenant);
        stagger(cpu, tenant);
    } else {
        cpu.slice_end.store(own_timer::NEVER, Relaxed);
        own_timer::rearm(None);
    }
}

/// Makes the first slice shorter, on each CPU by another part: on a host the slices of CPUs have
/// nothing to do with each other, and vCPUs that are set up together would be stopped together.
/// Multiples of the golden ratio are apart from each other, however many there are (D. E. Knuth,
/// The Art of Computer Programming, volume 3, 6.4, multiplicative hashing).
fn stagger(cpu: &PerCpu, tenant: &Tenant) {
    /// 2^32 divided by the golden ratio.
    const GOLDEN: u64 = 0x9e37_79b9;
    let slice = tenant.slice.load(Relaxed);
    if slice == 0 || !vm::exists() {
        return;
    }
    let number = vm().find(cpu.mpidr).map_or(0, |(number, _)| number as u64);
    let part = (number + 1).wrapping_mul(GOLDEN) & 0xffff_ffff;
    let first = ((u128::from(slice) * u128::from(part)) >> 32) as u64;
    cpu.slice_end.store(own_timer::after(first), Relaxed);
    own_timer::rearm(None);
}

/// The vCPU of `cpu`, which is the one that runs, is turned off: it has no neighbour when it is
/// turned on again.
pub fn leave(cpu: &PerCpu) {
    if let Some(tenant) = cpu.tenant() {
        tenant.slice.store(0, Relaxed);
        tenant.yield_on_wfe.store(false, Relaxed);
        tenant.set(Neighbour::None);
        review(cpu, tenant);
    }
}

/// Returns a count of the neighbour of `cpu`, which any CPU may ask.
pub fn count(cpu: &PerCpu, what: Shared) -> u64 {
    let Some(tenant) = cpu.tenant() else {
        return 0;
    };
    match what {
        Shared::Work => word(tenant, DONE).load(Relaxed),
        Shared::Damaged => word(tenant, DAMAGED).load(Relaxed),
        Shared::Given | Shared::Taken | Shared::Turns | Shared::Slices | Shared::Trapped => {
            tenant.count(what)
        }
    }
}
