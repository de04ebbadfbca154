// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles the trapped waits.
//!
//! For WFI and WFIT, the CPU idles here as it would in the guest: until there is an interrupt for the guest, or until
//! the deadline. WFE and WFET only hint that the guest is polling. If there is no other guest to run instead, the
//! handler returns, which the architecture allows at any time.

use aarch64_cpu::registers::{CNTVCT_EL0, CNTVOFF_EL2, Readable};
use abi::Counter;
use arch::insn;
use arch::regs::{IRQ_PENDING, ISR_EL1};
use core::sync::atomic::Ordering::Relaxed;
use trap::wfx::Kind;
use wait::target::after;

use crate::cpu::percpu::PerCpu;
use crate::cpu::trace::{Trace, Traced};
use crate::cpu::traps;
use crate::dumps::own_timer;
use crate::interrupts::{irq, vgic_cpu};
use crate::neighbour::turn;

/// Handles the exit; `deadline` is in ticks of the virtual count.
#[inline(always)]
pub fn handle_exit<T: Trace>(cpu: &PerCpu, kind: Kind, deadline: Option<u64>) {
    match kind {
        Kind::Wfi | Kind::Wfit => {
            cpu.vcpu.counters.add(Counter::Wfi);
            idle::<T>(cpu, deadline);
        }
        Kind::Wfe | Kind::Wfet => {
            cpu.vcpu.counters.add(Counter::Wfe);
            if let Some(tenant) = T::neighbour(cpu).filter(|it| it.yield_on_wfe.load(Relaxed)) {
                return turn::run_for_slice(cpu, tenant);
            }
            // Under a single-threaded emulator, the CPU that the guest waits for has to get a turn
            // to run.
            insn::yield_now();
        }
    }
}

/// Idles until the guest has an interrupt or the deadline has passed.
#[inline(always)]
pub fn idle<T: Trace>(cpu: &PerCpu, deadline: Option<u64>) {
    let vcpu = &cpu.vcpu;
    let direct = vcpu.switch.is_direct();
    if !direct && vgic_cpu::has_deliverable(cpu) {
        return idle_if_gone::<T>(cpu, deadline);
    }
    // SAFETY: the state is this CPU's own, and the closure does not call `with` again.
    let limit = unsafe { vcpu.halt.with(|halt| halt.poll_limit()) };
    if limit.is_some() || deadline.is_some() {
        return idle_until::<T>(cpu, limit.unwrap_or(0), deadline, direct);
    }
    vcpu.counters.add(Counter::Halt);
    T::note_event(cpu, Traced::Halt, 0);
    halt::<T>(cpu, None, direct);
    T::note_event(cpu, Traced::Awake, 0);
    if !direct {
        irq::take_most_urgent(cpu);
    }
}

/// Halts until there is an interrupt for the guest, which may get it `direct`ly, or gives the CPU
/// to the neighbour until then; `deadline` is in ticks of the physical count.
#[inline(always)]
fn halt<T: Trace>(cpu: &PerCpu, deadline: Option<u64>, direct: bool) {
    if let Some(tenant) = T::neighbour(cpu) {
        turn::run_while_waiting(cpu, tenant, deadline);
    } else if direct {
        traps::halt_for_interrupt();
    } else {
        insn::wfi();
    }
}

/// Like [`idle`], for a guest with a listed interrupt: idles only if that interrupt has been withdrawn.
#[cold]
#[inline(never)]
fn idle_if_gone<T: Trace>(cpu: &PerCpu, deadline: Option<u64>) {
    vgic_cpu::sample_timer_lines(cpu);
    if !vgic_cpu::has_deliverable(cpu) {
        idle::<T>(cpu, deadline);
    }
}

/// Like [`idle`], but polls first and has a deadline.
#[cold]
fn idle_until<T: Trace>(cpu: &PerCpu, limit: u64, deadline: Option<u64>, direct: bool) {
    let start = CNTVCT_EL0.get();
    if deadline.is_some_and(|deadline| start >= deadline) {
        return;
    }
    if limit != 0 {
        T::note_event(cpu, Traced::Poll, 0);
    }
    let hit = poll(after(start, limit), deadline);
    if limit != 0 {
        let counter = if hit {
            Counter::PollHit
        } else {
            Counter::PollMiss
        };
        cpu.vcpu.counters.add(counter);
    }
    if !hit {
        // The interrupt of EL2's own timer, which uses the physical count, ends the WFI.
        let offset = CNTVOFF_EL2.get();
        let deadline = deadline.map(|deadline| after(deadline, offset));
        own_timer::rearm(deadline);
        cpu.vcpu.counters.add(Counter::Halt);
        T::note_event(cpu, Traced::Halt, 0);
        halt::<T>(cpu, deadline, direct);
        T::note_event(cpu, Traced::Awake, 0);
        own_timer::rearm(None);
    }
    if hit {
        T::note_event(cpu, Traced::Awake, 0);
    }
    // SAFETY: the state is this CPU's own, and the closure does not call `with` again.
    unsafe {
        cpu.vcpu.halt.with(|halt| {
            if let Some(host) = &mut halt.adaptive {
                // The counter may be read before the wait is over (DDI 0487K.a, D12.2.1).
                insn::isb();
                host.waited(CNTVCT_EL0.get() - start);
            }
        });
    }
    if !direct {
        irq::take_most_urgent(cpu);
    }
}

/// Polls for a pending interrupt until `end`, and returns whether there was one.
fn poll(end: u64, deadline: Option<u64>) -> bool {
    let end = deadline.map_or(end, |deadline| end.min(deadline));
    loop {
        if ISR_EL1.get() & IRQ_PENDING != 0 {
            return true;
        }
        if CNTVCT_EL0.get() >= end {
            return false;
        }
        insn::yield_now();
    }
}
