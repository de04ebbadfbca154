// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides when the neighbour has a turn, and for how long.
//!
//! | turn | begins | ends |
//! |---|---|---|
//! | given | the vCPU waits in a trapped WFI | with any interrupt |
//! | yielded | the vCPU executes a WFE that traps (`yield-on`) | with any interrupt, or after a slice |
//! | taken | the vCPU has run for a slice without waiting | after a slice |
//!
//! In a taken turn, the vCPU's interrupts wait, because the vCPU did not stop of its own accord:
//! only EL2's timer has a priority above the mask. Otherwise the senders of interrupts to a vCPU
//! would decide how much of its CPU the neighbour gets.

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{
    CNTPCT_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, CNTVOFF_EL2, ELR_EL2, Readable,
};
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
use crate::neighbour::place::memory_word;
use crate::neighbour::program::{DAMAGED, DONE};
use crate::neighbour::{program, world};

/// CNTx_CTL_EL0: ENABLE (0), IMASK (1), ISTATUS (2).
const ENABLED: u64 = 0b001;
const HIGH: u64 = 0b101;
const CONTROL: u64 = 0b111;
/// The bits that decide whether the timer ever interrupts.
const UNMASKED: u64 = 0b011;

/// Priority of EL2's timer if slices are set, above that of all other interrupts
/// (`interrupts::vgic_cpu::prepare_cpu`); then the mask that lets only the timer through (see `vgic_cpu::pmr_value`).
/// The values use only the five bits that every interface has (IHI 0069H, 4.8.1).
const TIMER_PRIORITY: u8 = 0x40;
const ONLY_TIMER: u8 = 0x60;

/// Handles an exit caused by an interrupt, on a CPU that has a neighbour, and then checks whether
/// the slice is over.
pub extern "C" fn interrupt() {
    let cpu = PerCpu::this();
    irq::handle_exit::<SharedCpu>(cpu);
    traps::leave_event();
    check_slice(cpu);
}

/// Like [`interrupt`], but traced, on a CPU that may have a neighbour.
pub extern "C" fn interrupt_traced() {
    let cpu = PerCpu::this();
    irq::handle_exit::<On>(cpu);
    check_slice(cpu);
}

/// Gives the neighbour its slice if the vCPU's slice is over.
fn check_slice(cpu: &PerCpu) {
    if let Some(tenant) = cpu.neighbour().filter(|_| is_slice_over(cpu)) {
        run_to_timer(cpu, tenant);
    }
}

/// Whether the vCPU has used up its slice.
fn is_slice_over(cpu: &PerCpu) -> bool {
    cpu.slice_end.load(Relaxed) <= CNTPCT_EL0.get()
}

/// Gives the neighbour the CPU while the vCPU waits for an interrupt, at most until `deadline`, in
/// ticks of the physical count.
pub fn run_while_waiting(cpu: &PerCpu, tenant: &Tenant, deadline: Option<u64>) {
    match Next::of_this_vcpu() {
        Next::Pending => {}
        Next::High => insn::wfi(),
        Next::At(timer) => run_to_irq(cpu, tenant, [deadline, timer].into_iter().flatten().min()),
    }
}

/// When the vCPU of this CPU will be interrupted.
enum Next {
    /// An interrupt is pending.
    Pending,
    /// The vCPU's virtual timer has expired. The timer's interrupt is either about to be pending or will not be,
    /// because the vCPU has disabled it or has it active. Only the redistributor knows which, and switching the timer
    /// off for the neighbour would withdraw the interrupt. So the neighbour has no turn.
    High,
    /// The tick of the physical count at which the vCPU's virtual timer will interrupt, if the timer is on.
    At(Option<u64>),
}

impl Next {
    /// Finds out when the vCPU of the running CPU will be interrupted. The exception that brought
    /// the CPU here has synchronized the vCPU's writes to its timer (DDI 0487K.a, D1.3.2).
    #[inline(always)]
    fn of_this_vcpu() -> Self {
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

/// Gives the neighbour the CPU until any interrupt is pending, because the vCPU waits. If the vCPU's virtual timer or a
/// slice would end the turn earlier, returns false and changes nothing. After the turn, the vCPU continues at `pc`.
#[inline(always)]
pub fn give_untimed(tenant: &Tenant, pc: impl FnOnce() -> u64) -> bool {
    let interrupts = ISR_EL1.get() & IRQ_PENDING != 0 || CNTV_CTL_EL0.get() & UNMASKED == ENABLED;
    if interrupts || tenant.slice.load(Relaxed) != 0 {
        return false;
    }
    // Without slices or a deadline, EL2's timer is already set correctly.
    let ticks = world::run_turn(tenant, pc(), || true);
    tenant.add_count(Shared::Given, ticks);
    true
}

/// Gives the neighbour the CPU for a slice because the vCPU waits for an event.
pub fn run_for_slice(cpu: &PerCpu, tenant: &Tenant) {
    let slice = tenant.slice.load(Relaxed);
    if slice == 0 {
        return insn::yield_now();
    }
    let Next::At(timer) = Next::of_this_vcpu() else {
        return insn::yield_now();
    };
    let end = own_timer::count_after(slice);
    run_to_irq(cpu, tenant, Some(timer.map_or(end, |timer| timer.min(end))));
    irq::take_most_urgent(cpu);
}

/// Gives the neighbour a turn that any interrupt ends.
fn run_to_irq(cpu: &PerCpu, tenant: &Tenant, until: Option<u64>) {
    cpu.slice_end.store(own_timer::NEVER, Relaxed);
    // If there are neither slices nor a deadline, the timer is already set correctly.
    let timed = until.is_some() || tenant.slice.load(Relaxed) != 0;
    if timed {
        own_timer::rearm(until);
    }
    let ticks = world::run_turn(tenant, ELR_EL2.get(), || true);
    tenant.add_count(Shared::Given, ticks);
    if timed {
        begin_slice(cpu, tenant);
    }
}

/// Gives the neighbour a turn that only EL2's timer ends.
fn run_to_timer(cpu: &PerCpu, tenant: &Tenant) {
    let end = own_timer::count_after(tenant.slice.load(Relaxed));
    cpu.slice_end.store(end, Relaxed);
    own_timer::rearm(None);
    let mask = ICC_PMR_EL1.get();
    // Writes to ICC_PMR_EL1 are self-synchronizing (IHI 0069H, ICC_PMR_EL1), and precede the exception return.
    ICC_PMR_EL1.set(vgic_cpu::pmr_value(ONLY_TIMER));
    let ticks = world::run_turn(tenant, ELR_EL2.get(), || {
        // The timer may also have expired for EL2's own checks.
        irq::take_most_urgent(cpu);
        is_slice_over(cpu)
    });
    ICC_PMR_EL1.set(mask);
    tenant.add_count(Shared::Taken, ticks);
    tenant.add_count(Shared::Slices, 1);
    begin_slice(cpu, tenant);
}

/// Begins the vCPU's slice, if slices are set.
fn begin_slice(cpu: &PerCpu, tenant: &Tenant) {
    let end = match tenant.slice.load(Relaxed) {
        0 => own_timer::NEVER,
        ticks => own_timer::count_after(ticks),
    };
    cpu.slice_end.store(end, Relaxed);
    own_timer::rearm(None);
}

/// Sets the work of the neighbour on `cpu`, the running CPU. Returns `None` if no memory was set aside for a
/// neighbour, or if the vCPU owns its interrupts.
pub fn set_work(cpu: &PerCpu, does: Neighbour) -> Option<()> {
    let Some(tenant) = cpu.tenant() else {
        return (does == Neighbour::None).then_some(());
    };
    if does != Neighbour::None {
        if cpu.vcpu.switch.is_direct() {
            return None;
        }
        program::begin_program(tenant, does)?;
    }
    tenant.set_work(does);
    traps::review_vectors();
    review_slice(cpu, tenant);
    Some(())
}

/// Sets the length of slices in ticks; `None` if that is too long, or EL2 has no timer.
pub fn set_slice(cpu: &PerCpu, ticks: u64) -> Option<()> {
    let Some(tenant) = cpu.tenant() else {
        return (ticks == 0).then_some(());
    };
    let most = machine().ns_to_ticks(abi::neighbour::MAX_SLICE_MS * 1_000_000);
    if ticks > most || ticks != 0 && machine().platform.timer.hyp.is_none() {
        return None;
    }
    tenant.slice.store(ticks, Relaxed);
    review_slice(cpu, tenant);
    Some(())
}

/// Sets whether a trapped WFE gives the CPU to the neighbour.
pub fn set_yield_on_wfe(cpu: &PerCpu, on: bool) -> Option<()> {
    let Some(tenant) = cpu.tenant() else {
        return (!on).then_some(());
    };
    tenant.yield_on_wfe.store(on, Relaxed);
    Some(())
}

/// Begins a slice, if slices are set, after a setting has changed.
fn review_slice(cpu: &PerCpu, tenant: &Tenant) {
    let sliced = tenant.has_work() && tenant.slice.load(Relaxed) != 0;
    if let Some(hyp) = machine().platform.timer.hyp {
        let priority = if sliced { TIMER_PRIORITY } else { PRIORITY };
        // SAFETY: only the CPU that the redistributor belongs to runs this.
        unsafe { cpu.redistributor().set_priority(hyp, priority) };
    }
    if tenant.has_work() {
        begin_slice(cpu, tenant);
        stagger_slice(cpu, tenant);
    } else {
        cpu.slice_end.store(own_timer::NEVER, Relaxed);
        own_timer::rearm(None);
    }
}

/// Makes the first slice shorter by a different fraction on each CPU: on a real host, the slices of
/// different CPUs are independent, but here vCPUs that are set up together would also be stopped
/// together. The fractional parts of multiples of the golden ratio stay apart, however many multiples
/// there are (D. E. Knuth, The Art of Computer Programming, volume 3, 6.4, multiplicative hashing).
fn stagger_slice(cpu: &PerCpu, tenant: &Tenant) {
    /// 2^32 divided by the golden ratio.
    const GOLDEN: u64 = 0x9e37_79b9;
    let slice = tenant.slice.load(Relaxed);
    if slice == 0 || !vm::is_created() {
        return;
    }
    let number = vm().find(cpu.mpidr).map_or(0, |(number, _)| number as u64);
    let part = (number + 1).wrapping_mul(GOLDEN) & 0xffff_ffff;
    let first = ((u128::from(slice) * u128::from(part)) >> 32) as u64;
    cpu.slice_end.store(own_timer::count_after(first), Relaxed);
    own_timer::rearm(None);
}

/// Ends the neighbour when the vCPU of `cpu`, which is the running CPU, is turned off: the vCPU has
/// no neighbour when it is turned on again.
pub fn end_neighbour(cpu: &PerCpu) {
    if let Some(tenant) = cpu.tenant() {
        tenant.slice.store(0, Relaxed);
        tenant.yield_on_wfe.store(false, Relaxed);
        tenant.set_work(Neighbour::None);
        review_slice(cpu, tenant);
    }
}

/// Returns the count `what` of `cpu`'s neighbour. Any CPU may call this.
pub fn read_count(cpu: &PerCpu, what: Shared) -> u64 {
    let Some(tenant) = cpu.tenant() else {
        return 0;
    };
    match what {
        Shared::Work => memory_word(tenant, DONE).load(Relaxed),
        Shared::Damaged => memory_word(tenant, DAMAGED).load(Relaxed),
        Shared::Given | Shared::Taken | Shared::Turns | Shared::Slices | Shared::Trapped => {
            tenant.count(what)
        }
    }
}
