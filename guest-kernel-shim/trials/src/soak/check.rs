// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the invariants after every operation, in separate operations, and when every CPU is at a
//! quiescent point.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use aarch64_cpu::registers::{DAIF, Readable};
use abi::{Counter, Traced, audit as mode};
use arch::regs::{ICC_CTLR_EL1, ICC_IGRPEN1_EL1, ICC_PMR_EL1, ICC_RPR_EL1};
use platform::MAX_CPUS;
use wait::request::REQUESTS;

use super::books::{self, PPI, SGIS};
use super::state::wait_for;
use super::violation::{Kind, stop_machine};
use guest_kernel_shim::interrupts::{self, redistributor};
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::{clock, hypervisor};
use sched::random::Random;

/// The SGIs that wake-ups need; they are never disabled.
pub const KERNEL: u32 = 1 << interrupts::RESCHED | 1 << interrupts::CALL;
/// The value of ICC_PMR_EL1 that lets every priority in use through, however many bits are implemented.
const OPEN: u64 = 0xf0;
/// The value of ICC_RPR_EL1 when no interrupt is being handled.
const IDLE: u64 = 0xff;
/// Priority of every interrupt at a quiescent point.
const PRIORITY: u8 = 0x80;

/// Returns the SGIs and PPIs that are enabled while the soak runs.
pub fn enabled_interrupts() -> u32 {
    let timer = &platform().timer;
    interrupts::usable_sgis() | 1 << timer.virt | 1 << timer.phys | 1 << PPI
}

/// State of a CPU at one check, for comparison at the next check.
struct Before {
    counters: [AtomicU64; Counter::COUNT],
    /// The stack pointer at the last quiescent point; 0 before the first point.
    stack: AtomicU64,
}

static BEFORE: [Before; MAX_CPUS] = [const {
    Before {
        counters: [const { AtomicU64::new(0) }; Counter::COUNT],
        stack: AtomicU64::new(0),
    }
}; MAX_CPUS];

/// Checks the masks, after every operation and outside of any handler.
pub fn check_masks(after: &str) {
    let (daif, mask) = (DAIF.get(), ICC_PMR_EL1.get());
    let (group, running) = (ICC_IGRPEN1_EL1.get(), ICC_RPR_EL1.get());
    // EOImode, bit 1: this kernel ends interrupts in one step.
    let split = ICC_CTLR_EL1.get() & 1 << 1;
    let open = daif & 1 << 7 == 0 && mask >= OPEN && group & 1 == 1;
    if !open || split != 0 || running != IDLE {
        stop_machine(
            Kind::Mask,
            format_args!(
                "after {after}: DAIF {daif:#x}, PMR {mask:#x}, IGRPEN1 {group}, EOImode {split}, RPR {running:#x}"
            ),
        );
    }
}

/// Checks that the identification of distributor and redistributor does not change, and that
/// pending and active registers can be read at any time.
pub fn check_identification(me: &PerCpu, random: &mut Random) {
    let redistributor = redistributor(me);
    match random.below(5) {
        0 => check_enables(me),
        1 => drop(redistributor.pending()),
        2 => drop(redistributor.active()),
        3 => {
            // SAFETY: the machine's description is true and its devices are mapped.
            let identity = unsafe { gic::identify(&platform().gic) };
            let version = identity.pidr2 >> 4 & 0xf;
            let versions = match platform().gic.version2 {
                Some(_) => 2..=2,
                None => 3..=4,
            };
            if !versions.contains(&version) {
                stop_machine(
                    Kind::Answer,
                    format_args!("GICD_PIDR2 {:#x}", identity.pidr2),
                );
            }
        }
        _ => {
            let spi = books::spi_of(me);
            let _ = (spi.is_pending(), spi.is_active());
        }
    }
}

fn check_enables(me: &PerCpu) {
    if platform().gic.version2.is_some() {
        // Which PPIs there are, and which SGIs can be disabled, is implementation defined (IHI 0048B, 4.3.5).
        return;
    }
    let found = redistributor(me).enabled();
    let wanted = enabled_interrupts();
    if found != wanted {
        stop_machine(
            Kind::Mask,
            format_args!("GICR_ISENABLER0 {found:#x}, should be {wanted:#x}"),
        );
    }
}

/// Checks that EL2's counters, its times and this guest's times only grow.
pub fn check_counters(me: &PerCpu) {
    if !hypervisor::exists() {
        return;
    }
    let before = &BEFORE[me.index];
    check_growing(&before.counters, hypervisor::read_counters(), "exits");
    let events = hypervisor::last_events(me.index);
    let mut later = clock::now();
    for (time, what) in events {
        if time > later && what != Traced::Nothing as u64 {
            stop_machine(
                Kind::Monotony,
                format_args!("an event of EL2 at {time} is older than one at {later}"),
            );
        }
        later = time;
    }
}

fn check_growing(before: &[AtomicU64], now: [u64; Counter::COUNT], of: &str) {
    for ((before, now), counter) in before.iter().zip(now).zip(Counter::ALL) {
        let before = before.swap(now, Relaxed);
        if now < before {
            stop_machine(
                Kind::Monotony,
                format_args!("{of}, {}: {now} after {before}", counter.name()),
            );
        }
    }
}

/// Checks that the list registers agree with EL2's own state.
pub fn check_audit() {
    if !hypervisor::audit_el2(mode::RUNNING) {
        stop_machine(Kind::ListRegister, format_args!("EL2's audit"));
    }
}

/// Checks this CPU's own state when no CPU sends any longer.
pub fn check_quiet(me: &PerCpu) {
    check_masks("all");
    books::wait_settled(me);
    check_enables(me);
    check_counters(me);
    check_nothing_left(me);
    me.request.take(REQUESTS);
    let left = me.request.word().load(Acquire);
    if left != 0 {
        stop_machine(Kind::Leak, format_args!("request word {left:#x}"));
    }
    let (stack, before) = (stack_pointer(), &BEFORE[me.index].stack);
    let before = before.swap(stack, Relaxed);
    if before != 0 && before != stack {
        stop_machine(
            Kind::Leak,
            format_args!("the stack was at {before:#x} and is at {stack:#x}"),
        );
    }
}

/// Checks that no interrupt is pending or active, in the registers or in EL2's state.
fn check_nothing_left(me: &PerCpu) {
    let redistributor = redistributor(me);
    // An interrupt that may have merged may still arrive.
    let clean = || {
        let state = redistributor.pending() | redistributor.active();
        state & enabled_interrupts() == 0 && hypervisor::audit_el2(mode::QUIET)
    };
    if !wait_for(clean) {
        let (pending, active) = (redistributor.pending(), redistributor.active());
        stop_machine(
            Kind::ListRegister,
            format_args!("pending {pending:#x}, active {active:#x} when all is quiet"),
        );
    }
}

/// Checks the common state, on one CPU, after each CPU has checked itself.
pub fn check_all_quiet() {
    books::wait_spis_settled();
    for cpu in percpu::all() {
        let spi = books::spi_of(cpu);
        let (pending, active) = (spi.is_pending(), spi.is_active());
        if pending || active {
            stop_machine(
                Kind::ListRegister,
                format_args!(
                    "INTID {} is left pending {pending}, active {active}",
                    books::SPI + cpu.index as u32
                ),
            );
        }
    }
    super::tokens::check_tokens();
}

/// Sets every priority to its initial value, and checks that it reads back.
pub fn reset_priorities(me: &PerCpu) {
    books::spi_of(me).set_priority(PRIORITY);
    for intid in 0..SGIS {
        // SAFETY: only this CPU sets its redistributor's priorities.
        unsafe { redistributor(me).set_priority(intid, PRIORITY) };
        let found = redistributor(me).priority(intid);
        if found != PRIORITY {
            stop_machine(
                Kind::Mask,
                format_args!("priority of INTID {intid}: {found:#x}"),
            );
        }
    }
}

/// Returns the stack pointer, which is the same for each call from the same place.
#[inline(never)]
fn stack_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: this only reads the stack pointer.
    unsafe {
        core::arch::asm!("mov {0}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
