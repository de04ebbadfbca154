// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the guest's traps on this CPU (HCR_EL2), the vectors that take them (VBAR_EL2), and the
//! values that let the fast paths act without the Rust handlers.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{HCR_EL2, ID_AA64MMFR1_EL1, Readable, VBAR_EL2, Writeable};
use abi::Trap;
use arch::insn;
use arch::regs::ICH_VTR_EL2;

use crate::cpu::controls::HCR_GUEST;
use crate::cpu::fast_state::NEVER;
use crate::cpu::halt::WaitMode;
use crate::cpu::percpu::PerCpu;

arch::symbol_addresses! {
    /// The vectors without tracing, in `exits::vectors`.
    plain = el2_vectors;
    /// The vectors that make EL2 check a timer again; see [`watches_timers`].
    watching = el2_vectors_watching;
    /// The vectors for a guest that has not turned such checks off; see [`set_recheck_timers`].
    foreign = el2_vectors_foreign;
    /// The vectors with tracing.
    traced = el2_vectors_traced;
    /// The vectors of a CPU that has a neighbour.
    shared = el2_vectors_shared;
}

/// A number of ticks that never elapses: no count reaches it, and adding it to a count does not
/// overflow.
const FOR_EVER: u64 = 1 << 63;
/// CPTR_EL2.TFP, which traps floating point.
pub const TRAP_FP: u64 = 1 << 10;
/// CPTR_EL2.TCPAC, which traps accesses to CPACR_EL1.
pub const TRAP_CPACR: u64 = 1 << 31;

/// AMO: EL2 takes SErrors. Their causes are not only in the guest: they may be stores of EL2 that
/// complete late, memory errors, or firmware's leftovers. Without AMO, a pending SError would end
/// each WFI of the guest, and nothing would report it.
const HCR_ERRORS: u64 = 1 << 5;
/// FMO, IMO and AMO: EL2 takes asynchronous exceptions, and the guest has the virtual interface.
///
/// An interrupt that is routed to EL1 is not taken at EL2, and does not end a WFI there (DDI
/// 0487K.a, D1.3.6, asynchronous exception routing, the entries "C", and D1.7.2, WFI wake-up
/// events). So EL2 routes interrupts to itself wherever it waits.
pub const HCR_INJECT: u64 = 1 << 3 | 1 << 4 | HCR_ERRORS;
const HCR_TWI: u64 = 1 << 13;
const HCR_TWE: u64 = 1 << 14;

/// HCR_EL2 while a neighbour runs with its stage 1 on: as for a guest whose interrupts EL2 takes and whose waits
/// trap, except that pointer authentication keys (APK, API) and SCXTNUM_ELx (EnSCXT) trap too.
pub const HCR_NEIGHBOUR: u64 = HCR_GUEST & !(3 << 40 | 1 << 53) | HCR_INJECT | HCR_TWI | HCR_TWE;
/// The bits of HCR_EL2 that stand in for the stage-1 registers of a neighbour whose stage 1 is off: DC (12) makes its
/// memory cacheable, and TID2 (17), TVM (26) and TRVM (30) trap its accesses to these registers.
pub const HCR_STAGE1_OFF: u64 = 1 << 12 | 1 << 17 | 1 << 26 | 1 << 30;
/// TWEDEn, with TWEDEL 0: on a PE with FEAT_TWED, a WFE waits 2^8 cycles before it traps, so that a
/// WFE that is about to end by itself causes no exit.
const HCR_TWED: u64 = 1 << 59;

/// Halts until an interrupt is pending, without taking it. An interrupt that the guest gets
/// directly would not end the wait ([`HCR_INJECT`]), so interrupts are routed to EL2 meanwhile. The
/// call must be followed by a context synchronization event.
#[inline(always)]
pub fn halt_for_interrupt() {
    let hcr = HCR_EL2.get();
    HCR_EL2.set(hcr | HCR_INJECT);
    insn::isb();
    insn::wfi();
    HCR_EL2.set(hcr);
}

/// Sets which waits trap, and routes interrupts as [`crate::cpu::vcpu::Vcpu::switch`]
/// says.
pub fn set_trap(trap: Trap) {
    write_hcr(trap);
    choose_vectors(is_tracing(), trap);
}

/// Resets the traps for a vCPU that starts: nothing traps, and it has no neighbour yet.
pub fn reset_traps() {
    write_hcr(Trap::NONE);
    set_vectors(is_tracing(), Trap::NONE);
}

/// Sets HCR_EL2 according to `trap` and to the current delivery of interrupts.
#[inline(always)]
fn write_hcr(trap: Trap) {
    let direct = PerCpu::this().vcpu.switch.is_direct();
    let mut hcr = HCR_GUEST;
    hcr |= if direct { HCR_ERRORS } else { HCR_INJECT };
    hcr |= if trap.wfi { HCR_TWI } else { 0 };
    if trap.wfe {
        hcr |= HCR_TWE;
        // ID_AA64MMFR1_EL1.TWED, bits 35:32.
        let delays = ID_AA64MMFR1_EL1.get() >> 32 & 0xf != 0;
        hcr |= if delays { HCR_TWED } else { 0 };
    }
    HCR_EL2.set(hcr);
}

/// Returns which waits trap.
pub fn current_trap() -> Trap {
    let hcr = HCR_EL2.get();
    Trap {
        wfi: hcr & HCR_TWI != 0,
        wfe: hcr & HCR_TWE != 0,
    }
}

/// Routes interrupts according to their current delivery; `interrupts::deliver` sets up the
/// interrupt controller.
pub fn review_routing() {
    review_wait_path(PerCpu::this());
    set_trap(current_trap());
}

/// Turns tracing on or off for this CPU.
pub fn set_tracing(on: bool) {
    choose_vectors(on, current_trap());
    insn::isb();
}

/// Sets whether EL2 checks a timer again when the guest acknowledges that timer's interrupt, if the interrupt came
/// while IRQs were masked, even where WFI does not trap. The check makes such an interrupt follow the timer's
/// level. EL2 can't tell an interrupt that ends an untrapped WFI with IRQs masked from one that comes just before
/// or after the WFI, so each wake-up by a timer costs one more exit. A guest that never turns a timer off before it
/// acknowledges the interrupt can do without this.
///
/// While this is on, each interrupt taken at EL2 also leaves an event, by one SEVL. On real cores, this changes
/// nothing, as the exception return leaves an event (DDI 0487K.a, D1.7.1); QEMU's exception return leaves no event
/// (`eret_sets_event` in docs/fidelity.md). In QEMU, a lock's WFE after LDXR would wait for ever: the return cleared
/// the exclusive monitor, so the unlocking store causes no event. A list register in use hides the new interrupt, and
/// Linux starts its event stream only after all CPUs are up, so nothing else ends that wait. A guest that turns this
/// off bounds its waits. The vectors for time stamps leave no event: only such a guest asks for time stamps.
pub fn set_recheck_timers(on: bool) {
    PerCpu::this().vcpu.recheck_timers.store(on, Relaxed);
    choose_vectors(is_tracing(), current_trap());
}

/// Whether EL2 checks a timer again when the guest acknowledges that timer's interrupt, if the interrupt came
/// while IRQs were masked. Where WFI traps, such an interrupt did not end a wait.
pub fn watches_timers() -> bool {
    needs_recheck(current_trap())
}

fn needs_recheck(trap: Trap) -> bool {
    trap.wfi || rechecks_timers()
}

/// Leaves the event that an exception return leaves on a real core; see [`set_recheck_timers`].
pub fn leave_event() {
    if rechecks_timers() {
        insn::sevl();
    }
}

fn rechecks_timers() -> bool {
    PerCpu::this().vcpu.recheck_timers.load(Relaxed)
}

/// Whether tracing is on.
pub fn is_tracing() -> bool {
    VBAR_EL2.get() == traced()
}

/// Changes the vectors after this CPU got or lost a neighbour.
pub fn review_vectors() {
    choose_vectors(is_tracing(), current_trap());
    insn::isb();
}

/// Chooses the vectors for `tracing` and for the waits that `trap` makes trap.
fn choose_vectors(tracing: bool, trap: Trap) {
    match PerCpu::this().neighbour() {
        Some(_) if !tracing => VBAR_EL2.set(shared()),
        _ => set_vectors(tracing, trap),
    }
}

/// Sets the vectors of a CPU that has no neighbour, or is traced.
#[inline(always)]
fn set_vectors(tracing: bool, trap: Trap) {
    VBAR_EL2.set(if tracing {
        traced()
    } else if rechecks_timers() {
        foreign()
    } else if trap.wfi {
        watching()
    } else {
        plain()
    });
}

/// Makes `cpu`, which is the running CPU, wait through a fast path if one suits. The function must be called after any
/// change to the way in which the CPU waits.
pub fn review_wait_path(cpu: &PerCpu) {
    let vcpu = &cpu.vcpu;
    // SAFETY: the state is this CPU's own, and the closure does not call `with` again.
    let mode = unsafe { vcpu.halt.with(|halt| halt.wait_mode()) };
    let direct = vcpu.switch.is_direct();
    let none_listed = (2 << (ICH_VTR_EL2.get() & 0x1f)) - 1;
    let set = |word: &AtomicU64, allowed| {
        word.store(if allowed { none_listed } else { NEVER }, Relaxed);
    };
    let waits = &vcpu.waits;
    set(&vcpu.fast_paths.halt_if, mode == WaitMode::Halt && !direct);
    set(&waits.direct_if, mode != WaitMode::Adapt && direct);
    let ticks = match mode {
        WaitMode::Poll(ticks) => Some(ticks),
        _ => None,
    };
    // The fast path adds the ticks to the count.
    waits.poll.store(ticks.unwrap_or(0).min(FOR_EVER), Relaxed);
    set(&waits.poll_if, ticks.is_some());
}
