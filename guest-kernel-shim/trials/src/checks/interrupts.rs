// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the interrupt controller and the timer.

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Readable, Writeable};
use abi::{KnobValue, Neighbour};
use arch::regs::ICC_PMR_EL1;
use arch::{gic_cpu, insn};
use core::arch::asm;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};

use gic::{Redistributor, Spi};
use spin::mutex::SpinMutex;

use super::outcome::{Failure, ensure};
use guest_kernel_shim::interrupts::{self, journal};
use guest_kernel_shim::journal::Journal;
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::{clock, hypervisor, machine, smp, workers};

/// First SGI that this kernel does not use outside blocks of tasks.
const FIRST: u32 = 2;
const SGIS: u32 = 16;
/// An SPI that no device uses.
const SPI: u32 = 40;

/// Clears the journals, and enables every private interrupt that the checks use.
fn prepare_check() {
    percpu::online().for_each(|cpu| journal(cpu).clear());
    // A GICv2 has the private registers of all CPUs at one address, so each CPU enables its own.
    workers::run_on_all(|| interrupts::redistributor(PerCpu::this()).enable_all(0xffff));
}

/// Waits until a journal has `count` entries, but not for ever; returns whether it has exactly `count`.
fn has_count(journal: &Journal, count: usize) -> bool {
    clock::wait_for(|| journal.count() >= count) && journal.count() == count
}

/// Waits long enough for an unexpected interrupt to arrive.
fn wait_a_while() {
    clock::pause(clock::us_to_ticks(200));
}

fn other_cpu() -> &'static PerCpu {
    percpu::all()[1]
}

pub fn sgi_to_self() -> Result<(), Failure> {
    prepare_check();
    let me = PerCpu::this();
    for intid in FIRST..SGIS {
        gic_cpu::send_sgi(intid, me.mpidr);
        ensure(
            has_count(journal(me), (intid - FIRST + 1) as usize),
            "not received",
        )?;
        ensure(journal(me).last() == Some(intid), "another INTID came")?;
    }
    Ok(())
}

pub fn every_sgi_to_another() -> Result<(), Failure> {
    prepare_check();
    let received = journal(other_cpu());
    for intid in FIRST..SGIS {
        gic_cpu::send_sgi(intid, other_cpu().mpidr);
        ensure(
            has_count(received, (intid - FIRST + 1) as usize),
            "not received",
        )?;
        ensure(received.last() == Some(intid), "another INTID came")?;
    }
    ensure(journal(PerCpu::this()).count() == 0, "the sender got one")
}

pub fn broadcast_spares_the_sender() -> Result<(), Failure> {
    prepare_check();
    gic_cpu::send_sgi_to_others(9);
    gic_cpu::send_sgi_to_others(3);
    for cpu in percpu::online().skip(1) {
        ensure(has_count(journal(cpu), 2), "a CPU did not get both")?;
    }
    wait_a_while();
    ensure(journal(PerCpu::this()).count() == 0, "the sender got one")
}

/// Checks that more interrupts than the list registers hold can be pending at once.
pub fn more_than_there_are_list_registers() -> Result<(), Failure> {
    /// The step that the other CPU waits for, or has reached.
    static STEP: AtomicU32 = AtomicU32::new(0);
    const MASKED: u32 = 1;
    const SENT: u32 = 2;
    prepare_check();
    STEP.store(0, Release);
    workers::run_on_2nd(|| {
        insn::mask_irq();
        STEP.store(MASKED, Release);
        clock::wait_for(|| STEP.load(Acquire) == SENT);
        insn::unmask_irq();
    });
    clock::wait_for(|| STEP.load(Acquire) == MASKED);
    for intid in (FIRST..SGIS).rev() {
        gic_cpu::send_sgi(intid, other_cpu().mpidr);
        gic_cpu::send_sgi(intid, other_cpu().mpidr);
    }
    STEP.store(SENT, Release);
    workers::wait_for_second();
    ensure(
        has_count(journal(other_cpu()), (SGIS - FIRST) as usize),
        "some were lost",
    )?;
    wait_a_while();
    let all = (FIRST..SGIS).fold(0, |bits, intid| bits | 1 << intid);
    ensure(journal(other_cpu()).intid_bits() == all, "not each came")?;
    ensure(
        journal(other_cpu()).count() == (SGIS - FIRST) as usize,
        "some came twice",
    )
}

pub fn most_urgent_first() -> Result<(), Failure> {
    prepare_check();
    let me = PerCpu::this();
    let redistributor = interrupts::redistributor(me);
    for intid in FIRST..SGIS {
        // SAFETY: only this CPU sets its redistributor's priorities.
        unsafe { redistributor.set_priority(intid, (0xf0 - intid * 8) as u8) };
    }
    insn::mask_irq();
    (FIRST..SGIS).for_each(|intid| gic_cpu::send_sgi(intid, me.mpidr));
    clock::pause(clock::us_to_ticks(20));
    insn::unmask_irq();
    let all = has_count(journal(me), (SGIS - FIRST) as usize);
    for intid in 0..SGIS {
        // SAFETY: as above.
        unsafe { redistributor.set_priority(intid, 0x80) };
    }
    ensure(all, "some were lost")?;
    let descending = journal(me)
        .iter()
        .zip((FIRST..SGIS).rev())
        .all(|(a, b)| a == b);
    ensure(descending, "not in order of priority")
}

pub fn disabled_stays_pending() -> Result<(), Failure> {
    prepare_check();
    let me = PerCpu::this();
    let redistributor = interrupts::redistributor(me);
    redistributor.disable_all(1 << 5);
    let enabled = redistributor.enabled() & 1 << 5 != 0;
    gic_cpu::send_sgi(5, me.mpidr);
    // A GICv2 may enable SGIs permanently (IHI 0048B, 4.3.6), and its registers then show this.
    if enabled && machine::platform().gic.version2.is_some() {
        return ensure(
            has_count(journal(me), 1),
            "shown as enabled, and does not come",
        );
    }
    wait_a_while();
    ensure(journal(me).count() == 0, "a disabled one came")?;
    ensure(
        redistributor.pending() & 1 << 5 != 0,
        "not shown as pending",
    )?;
    redistributor.enable_all(1 << 5);
    ensure(has_count(journal(me), 1), "did not come when enabled")?;
    ensure(
        redistributor.pending() & 1 << 5 == 0,
        "still shown as pending",
    )
}

pub fn pending_can_be_withdrawn() -> Result<(), Failure> {
    prepare_check();
    let me = PerCpu::this();
    let redistributor = interrupts::redistributor(me);
    insn::mask_irq();
    redistributor.set_pending(1 << 6);
    let shown = redistributor.pending() & 1 << 6 != 0;
    redistributor.clear_pending(1 << 6);
    let hidden = redistributor.pending() & 1 << 6 == 0;
    insn::unmask_irq();
    wait_a_while();
    ensure(shown && hidden, "the pending registers do not show it")?;
    ensure(journal(me).count() == 0, "it came all the same")
}

pub fn spi_goes_where_it_is_routed() -> Result<(), Failure> {
    prepare_check();
    let gic = &machine::platform().gic;
    for cpu in percpu::online().take(2) {
        journal(cpu).clear();
        // SAFETY: the machine's description is true, and nothing else uses this SPI.
        let spi = unsafe { Spi::new(gic, SPI) };
        spi.set_group1();
        spi.route(cpu.mpidr);
        spi.enable();
        insn::dsb_ishst();
        spi.set_pending();
        ensure(has_count(journal(cpu), 1), "did not come")?;
        ensure(journal(cpu).last() == Some(SPI), "another INTID came")?;
    }
    Ok(())
}

/// Checks that a CPU that turns itself off while an interrupt is active takes other interrupts when it is on again. The
/// first interrupt stays active until software ends it through a register.
pub fn off_while_active() -> Result<(), Failure> {
    prepare_check();
    let other = other_cpu();
    other.set_offline();
    workers::run_on_2nd(|| {
        let me = PerCpu::this();
        insn::mask_irq();
        gic_cpu::send_sgi(5, me.mpidr);
        while gic_cpu::acknowledge() != 5 {
            insn::yield_now();
        }
        hypervisor::cpu_off();
    });
    let off = clock::wait_for(|| hypervisor::affinity_info(other.mpidr) == 1);
    ensure(off, "not off after 5 s")?;
    ensure(smp::start_cpu(other) == 0, "CPU_ON failed")?;
    prepare_check();
    gic_cpu::send_sgi(6, other.mpidr);
    ensure(has_count(journal(other), 1), "takes no interrupt any more")?;
    // A GICv2 shows a CPU only its own SGIs, so the other CPU checks SGI 5 and ends it.
    static WAS_ACTIVE: AtomicBool = AtomicBool::new(false);
    workers::run_on_2nd(|| {
        let redistributor = interrupts::redistributor(PerCpu::this());
        WAS_ACTIVE.store(redistributor.active() & 1 << 5 != 0, Release);
        redistributor.clear_active(1 << 5);
    });
    workers::wait_for_second();
    ensure(WAS_ACTIVE.load(Acquire), "not active any more")?;
    gic_cpu::send_sgi(5, other.mpidr);
    ensure(has_count(journal(other), 2), "can't be ended by register")
}

/// Sets the virtual timer to expire in `ticks`.
fn arm_timer(ticks: u64) {
    CNTV_CVAL_EL0.set(clock::now() + ticks);
    CNTV_CTL_EL0.set(1);
    insn::isb();
}

pub fn timer_again_and_again() -> Result<(), Failure> {
    prepare_check();
    let me = PerCpu::this();
    let intid = machine::platform().timer.virt;
    interrupts::redistributor(me).enable_all(1 << intid);
    for round in 1..=5 {
        let start = clock::now();
        arm_timer(clock::us_to_ticks(50));
        // The handler masks the timer, so one expiry causes one interrupt.
        ensure(has_count(journal(me), round), "did not come")?;
        ensure(clock::now() - start >= clock::us_to_ticks(50), "came early")?;
    }
    wait_a_while();
    interrupts::redistributor(me).disable_all(1 << intid);
    ensure(journal(me).count() == 5, "came more often than it expired")
}

/// Checks that a timer interrupt withdrawn by software, in any way, becomes pending again as long
/// as the timer's level is high.
pub fn timer_taken_back() -> Result<(), Failure> {
    let me = PerCpu::this();
    let intid = machine::platform().timer.virt;
    let redistributor = interrupts::redistributor(me);
    let ways: [fn(&Redistributor, u32); 3] = [
        |redistributor, bit| redistributor.disable_all(bit),
        |redistributor, bit| redistributor.clear_pending(bit),
        |redistributor, bit| redistributor.clear_active(bit),
    ];
    for take_back in ways {
        prepare_check();
        redistributor.enable_all(1 << intid);
        insn::mask_irq();
        arm_timer(0);
        wait_a_while();
        take_back(redistributor, 1 << intid);
        redistributor.enable_all(1 << intid);
        insn::unmask_irq();
        let came = has_count(journal(me), 1);
        redistributor.disable_all(1 << intid);
        ensure(came, "did not come again")?;
    }
    Ok(())
}

/// Checks that WFIT and WFET end at their deadline, or at once if the deadline has passed.
pub fn timed_waits_keep_their_deadline() -> Result<(), Failure> {
    const TRIES: u32 = 64;
    let limit = clock::us_to_ticks(200);
    let time = |wait: fn(u64), deadline: u64| {
        let start = clock::now();
        wait(start.wrapping_add(deadline));
        clock::now() - start
    };
    // A leftover event may end one WFET early.
    time(insn::wfet, 0);
    ensure(time(insn::wfit, limit) >= limit, "WFIT came back early")?;
    // Where CPUs are threads, the host may stop a thread for longer than the limit, but not at every try.
    let returns_at_once = |wait| (0..TRIES).any(|_| time(wait, 0) < limit);
    ensure(
        returns_at_once(insn::wfit),
        "WFIT waited though its deadline had passed",
    )?;
    ensure(
        returns_at_once(insn::wfet),
        "WFET waited though its deadline had passed",
    )?;
    // SAFETY: the instructions only wait; XZR is a deadline that has always passed.
    unsafe {
        asm!(
            ".arch_extension wfxt",
            "wfit xzr",
            "wfet xzr",
            options(nomem, nostack)
        )
    };
    Ok(())
}

/// Checks an exit between the last check of memory and the WFE, caused by an interrupt whose priority is
/// masked, as in a handler: the exception return has to set the event register (DDI 0487K.a, D1.7.1).
/// Otherwise, a WFE that waits for a lock would miss the unlocking store: the return has cleared the monitor.
pub fn exit_leaves_an_event() -> Result<(), Failure> {
    check_event_left(|| {})
}

/// Checks the event after an exit on a CPU whose neighbour gets no slices and waits for the guest's WFI.
pub fn exit_beside_a_neighbour() -> Result<(), Failure> {
    let result = check_event_left(|| {
        hypervisor::set_knob(KnobValue::Slice(0));
        hypervisor::set_knob(KnobValue::Neighbour(Neighbour::Work));
    });
    workers::run_on_2nd(|| hypervisor::set_knob(KnobValue::Neighbour(Neighbour::None)));
    workers::wait_for_second();
    result
}

fn check_event_left(prepare: fn()) -> Result<(), Failure> {
    static PREPARE: SpinMutex<fn()> = SpinMutex::new(|| {});
    /// The step that this CPU waits for, or has reached.
    static STEP: AtomicU32 = AtomicU32::new(0);
    const READY: u32 = 1;
    const SENT: u32 = 2;
    const OVER: u32 = 3;
    prepare_check();
    STEP.store(0, Release);
    *PREPARE.lock() = prepare;
    workers::run_on_2nd(|| {
        PREPARE.lock()();
        let open = ICC_PMR_EL1.get();
        ICC_PMR_EL1.set(0);
        insn::isb();
        insn::mask_irq();
        insn::forget_events();
        STEP.store(READY, Release);
        clock::wait_for(|| STEP.load(Acquire) == SENT);
        insn::wfe();
        STEP.store(OVER, Release);
        ICC_PMR_EL1.set(open);
        insn::isb();
        insn::unmask_irq();
    });
    clock::wait_for(|| STEP.load(Acquire) == READY);
    gic_cpu::send_sgi(FIRST, other_cpu().mpidr);
    // The exit comes before the other CPU continues.
    wait_a_while();
    STEP.store(SENT, Release);
    let over = clock::wait_for(|| STEP.load(Acquire) == OVER);
    // The SEV ends a WFE that is still waiting.
    insn::sev();
    workers::wait_for_second();
    ensure(over, "WFE waited after an exit")?;
    ensure(has_count(journal(other_cpu()), 1), "the interrupt was lost")
}

pub fn masked_interrupt_ends_wfi() -> Result<(), Failure> {
    prepare_check();
    let me = PerCpu::this();
    let intid = machine::platform().timer.virt;
    interrupts::redistributor(me).enable_all(1 << intid);
    insn::mask_irq();
    arm_timer(clock::us_to_ticks(100));
    // ISTATUS: the timer has expired.
    while CNTV_CTL_EL0.get() & 4 == 0 {
        insn::wfi();
    }
    let untouched = journal(me).count() == 0;
    insn::unmask_irq();
    let came = has_count(journal(me), 1);
    interrupts::redistributor(me).disable_all(1 << intid);
    ensure(untouched, "taken though masked")?;
    ensure(came, "did not come when unmasked")
}
