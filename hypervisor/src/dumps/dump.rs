// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the state of every CPU when the hypervisor itself fails, and ends the machine.
//!
//! The CPU that failed prints first. The failed CPU then kicks every other CPU, which prints its own state and stops;
//! a CPU that does not answer in time is reported. A CPU whose guest owns the interrupts can't be kicked: see
//! [`show_others`].

use core::panic::PanicInfo;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU64};

use aarch64_cpu::registers::{
    CNTFRQ_EL0, CNTPCT_EL0, ELR_EL1, ELR_EL2, ESR_EL1, ESR_EL2, FAR_EL2, HCR_EL2, HPFAR_EL2,
    MPIDR_EL1, Readable, SCTLR_EL2, SP_EL1, SPSR_EL2, TPIDR_EL2,
};
use arch::frame::Frame;
use arch::insn;
use arch::regs::{ICC_IGRPEN1_EL1, ICH_ELRSR_EL2, ICH_VTR_EL2, ISR_EL1, ich_lr};

use crate::console::log::{self, print_unlocked};
use crate::cpu::pending_word;
use crate::cpu::percpu::PerCpu;
use crate::cpu::traps;
use crate::dumps::watch_points;
use crate::machine::ending::STATUS_LOST;
use crate::machine::{machine, memory, power, vm};

/// Exit status of a machine whose hypervisor failed.
const STATUS: u64 = 70;
/// Exit status of a machine that a deadline has ended.
const STATUS_LATE: u64 = 71;
/// Seconds after a deadline within which a CPU that is already reporting a failure must end the machine.
const PATIENCE: u64 = 10;
/// Number of the vector for EL2's own synchronous exceptions.
const EL2_SYNC: u64 = 4;
/// Number of the FIQ vector among the four vectors of a level.
const FIQ: u64 = 2;

/// Prints one line without waiting for the console's lock.
macro_rules! dump {
    ($($arg:tt)*) => {
        print_unlocked(format_args!("rouse: {}\n", format_args!($($arg)*)))
    };
}

/// Affinity + 1 of the CPU that failed first; 0 if none has failed.
static FAILED: AtomicU64 = AtomicU64::new(0);
/// Whether the CPU that failed first has failed again while reporting.
static AGAIN: AtomicBool = AtomicBool::new(false);
/// Whether the guest's memory has been unmapped.
static REVOKED: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    begin_report(format_args!("{info}"));
    finish_report()
}

/// Reports an exception that has no handler and stops the machine.
///
/// `vector` is the number of the vector, 0 to 15 in the order of the table.
pub extern "C" fn unexpected(frame: &Frame, vector: u64) -> ! {
    let name = VECTOR_NAMES[vector as usize & 15];
    let far = FAR_EL2.get();
    let name = match vector & 3 {
        FIQ => format_args!(
            "{name}: an interrupt of Group 0 or the secure world, and firmware has SCR_EL3.FIQ=0"
        ),
        _ => format_args!("{name}"),
    };
    let overflow = TPIDR_EL2.get() != 0 && PerCpu::this().is_guard(far);
    if overflow && vector == EL2_SYNC {
        begin_report(format_args!("stack overflow at {far:#x}"));
    } else {
        begin_report(format_args!(
            "unexpected exception, vector {vector} ({name})"
        ));
    }
    show_registers(frame);
    finish_report()
}

/// Stops the machine like [`fail`], and also prints the general registers in `frame`.
pub fn fail_with_frame(frame: &Frame, why: core::fmt::Arguments<'_>) -> ! {
    begin_report(why);
    show_registers(frame);
    finish_report()
}

/// Stops the machine, as a panic does, because something is wrong with it, and prints the state of
/// every CPU.
pub fn fail(why: core::fmt::Arguments<'_>) -> ! {
    begin_report(why);
    finish_report()
}

/// Ends the machine, and prints the state of every CPU, for a reason that the guest may have caused.
pub fn end_with_frame(frame: &Frame, why: core::fmt::Arguments<'_>) -> ! {
    take_console(why);
    dump!(
        "guest on CPU {:#x}: {why}",
        MPIDR_EL1.get() & platform::AFFINITY
    );
    show_registers(frame);
    finish_with_status(STATUS_LOST)
}

/// Prints the state of every CPU for the guest, which found an error in itself, and ends the machine with the guest's
/// `status`.
pub fn show_and_end(status: u64) -> ! {
    take_console(format_args!("asked to show the state of every CPU"));
    finish_with_status(status)
}

/// Ends the machine because of a deadline, and prints the state of every CPU. If another CPU is
/// already reporting a failure, that CPU ends the machine, if it still can.
pub fn end_at_deadline(cpu: &PerCpu, why: core::fmt::Arguments<'_>) -> ! {
    if FAILED.load(SeqCst) != 0 {
        await_end(cpu);
    }
    take_console(why);
    log::show_gathered();
    dump!("deadline: {why}");
    finish_with_status(STATUS_LATE)
}

/// Gives the CPU that reports a failure some time to end the machine, and ends the machine if that
/// CPU does not.
fn await_end(cpu: &PerCpu) -> ! {
    let end = CNTPCT_EL0.get() + PATIENCE * CNTFRQ_EL0.get();
    while CNTPCT_EL0.get() < end {
        if cpu.vcpu.switch.take() & pending_word::DUMP != 0 {
            show_self(cpu);
        }
        if power::has_ended() {
            halt_cpu();
        }
        insn::yield_now();
    }
    dump!("deadline: the CPU that reports a failure does not end the machine");
    power::turn_machine_off()
}

/// Takes the console, and prints which CPU failed and why.
fn begin_report(why: core::fmt::Arguments<'_>) {
    take_console(why);
    let cpu = MPIDR_EL1.get() & platform::AFFINITY;
    dump!("panic: EL2 on CPU {cpu:#x}: {why}");
}

/// Returns only on the CPU that fails first, which then owns the console. Another CPU waits for its
/// turn to report; a CPU that fails during its own report ends that report.
fn take_console(why: core::fmt::Arguments<'_>) {
    let cpu = MPIDR_EL1.get() & platform::AFFINITY;
    let exclusive = SCTLR_EL2.is_set(SCTLR_EL2::M);
    let first = if exclusive {
        let first = FAILED.compare_exchange(0, cpu + 1, SeqCst, SeqCst);
        first.err().unwrap_or(0)
    } else {
        // With the MMU off, only one CPU runs, and an exclusive access would need cacheable memory
        // (DDI 0487K.a, B2.12.1).
        let first = FAILED.load(Relaxed);
        FAILED.store(cpu + 1, Relaxed);
        first
    };
    match first {
        0 => log::reserve_for_failure(),
        first if first == cpu + 1 => {
            // A CPU that fails during its own report reports that failure, but none after it.
            if exclusive && !AGAIN.swap(true, SeqCst) {
                dump!("panic: EL2 on CPU {cpu:#x} again, while it reported: {why}");
                dump!("exit status {STATUS}");
                power::turn_machine_off();
            }
            power::turn_off_silently();
        }
        _ => wait_and_report(why),
    }
}

/// Reports this CPU's failure while another CPU reports one: waits until that CPU asks for this CPU's state.
fn wait_and_report(why: core::fmt::Arguments<'_>) -> ! {
    if TPIDR_EL2.get() == 0 {
        halt_cpu();
    }
    let me = PerCpu::this();
    await_turn(me);
    dump!("CPU {:#x} has failed as well: {why}", me.mpidr);
    show_and_halt(me)
}

/// Waits until the CPU that reports asks this CPU for its state.
fn await_turn(me: &PerCpu) {
    while me.vcpu.switch.word().load(SeqCst) & pending_word::DUMP == 0 {
        // The doorbell that comes with the bit ends the halt.
        traps::halt_for_interrupt();
    }
}

fn halt_cpu() -> ! {
    loop {
        // strict wait-can-end: this CPU stays halted.
        insn::wfi();
    }
}

/// Prints the state of this CPU, then of every other CPU, and ends the machine.
fn finish_report() -> ! {
    finish_with_status(STATUS)
}

fn finish_with_status(status: u64) -> ! {
    if TPIDR_EL2.get() != 0 && vm::is_created() {
        let me = PerCpu::this();
        show_state(me);
        show_others(me);
        show_operations();
    }
    dump!("exit status {status}");
    power::turn_machine_off()
}

/// Makes every other CPU print its state. A CPU whose guest owns the interrupts can't be asked
/// through an interrupt, so the guest's memory is unmapped: whatever the guest does next aborts to
/// EL2.
fn show_others(me: &PerCpu) {
    for cpu in vm::vm().cpus {
        if core::ptr::eq(*cpu, me) {
            continue;
        }
        cpu.vcpu.switch.word().fetch_or(pending_word::DUMP, SeqCst);
        if cpu.vcpu.switch.is_direct() && !REVOKED.swap(true, SeqCst) {
            memory::unmap_guest(machine().stage2.0);
        }
        // The doorbell ends a WFI at either level; its interrupt is disabled while a guest owns the interrupts.
        cpu.redistributor().enable_all(machine().doorbell_bit());
        // The bits have to be visible before the doorbell is.
        insn::dsb_ishst();
        cpu.doorbell.ring();
        let end = CNTPCT_EL0.get() + CNTFRQ_EL0.get() / 2;
        while !cpu.shown.load(SeqCst) {
            if CNTPCT_EL0.get() > end {
                dump!("CPU {:#x}: does not answer", cpu.mpidr);
                break;
            }
            insn::yield_now();
        }
    }
}

/// Does not return if the guest's memory was unmapped to stop the CPUs that run the guest: each CPU
/// then shows its state in turn.
pub fn stop_if_revoked(cpu: &PerCpu) {
    if REVOKED.load(Relaxed) {
        await_turn(cpu);
        log::show_gathered();
        show_and_halt(cpu);
    }
}

/// Prints each vCPU's last operations, if the guest keeps a log of them.
fn show_operations() {
    for (cpu, log) in watch_points::vcpu_logs() {
        dump!("vCPU {:#x} did last:", cpu.mpidr);
        for noted in log.iter() {
            let mut name = noted.name.split(|byte| *byte == 0);
            let name = name.next().unwrap_or_default();
            dump!(
                "  {:>16} {} step {} {:#x}",
                noted.time,
                name.escape_ascii(),
                noted.step,
                noted.data
            );
        }
    }
}

/// Answers [`show_others`]: prints this CPU's state and stops it.
pub fn show_and_halt(cpu: &PerCpu) -> ! {
    show_self(cpu);
    // While an interrupt is pending, such as that of EL2's timer, WFI would return again and again,
    // and an emulator with one thread would run this CPU instead of the one that reports.
    ICC_IGRPEN1_EL1.set(0);
    insn::isb();
    halt_cpu()
}

/// Prints this CPU's state for [`show_others`].
fn show_self(cpu: &PerCpu) {
    show_state(cpu);
    cpu.shown.store(true, SeqCst);
}

/// Prints the state of this CPU and its vCPU.
fn show_state(cpu: &PerCpu) {
    // The ISB makes earlier writes to the list registers visible to the reads below.
    insn::isb();
    dump!("CPU {:#x}:", cpu.mpidr);
    dump!(
        "  ELR_EL2 {:#018x}  SPSR_EL2 {:#010x}  ESR_EL2 {:#010x}  HCR_EL2 {:#x}",
        ELR_EL2.get(),
        SPSR_EL2.get(),
        ESR_EL2.get(),
        HCR_EL2.get()
    );
    dump!(
        "  FAR_EL2 {:#018x}  HPFAR_EL2 {:#x}  ISR_EL1 {:#x}",
        FAR_EL2.get(),
        HPFAR_EL2.get(),
        ISR_EL1.get()
    );
    dump!(
        "  ELR_EL1 {:#018x}  ESR_EL1 {:#010x}  SP_EL1 {:#018x}",
        ELR_EL1.get(),
        ESR_EL1.get(),
        SP_EL1.get()
    );
    let vcpu = &cpu.vcpu;
    dump!(
        "  direct {}  pending word {:#x}  {}",
        vcpu.switch.is_direct(),
        vcpu.switch.word().load(Relaxed),
        vcpu.private
    );
    if let Some(redistributor) = cpu.redistributor.get() {
        dump!(
            "  physical: pending {:#x}  active {:#x}  enabled {:#x}",
            redistributor.pending(),
            redistributor.active(),
            redistributor.enabled()
        );
    }
    for n in 0..(ICH_VTR_EL2.get() & 0x1f) as usize + 1 {
        if ICH_ELRSR_EL2.get() >> n & 1 == 0 {
            dump!("  LR{n} {:#018x}", ich_lr(n));
        }
    }
    for event in vcpu.trace.iter() {
        dump!("  {event}");
    }
}

const VECTOR_NAMES: [&str; 16] = [
    "SP_EL0 sync",
    "SP_EL0 IRQ",
    "SP_EL0 FIQ",
    "SP_EL0 SError",
    "EL2 sync",
    "EL2 IRQ",
    "EL2 FIQ",
    "EL2 SError",
    "lower sync",
    "lower IRQ",
    "lower FIQ",
    "lower SError",
    "lower 32-bit sync",
    "lower 32-bit IRQ",
    "lower 32-bit FIQ",
    "lower 32-bit SError",
];

/// Prints the general registers of the interrupted context.
fn show_registers(frame: &Frame) {
    for (row, registers) in frame.x.chunks(4).enumerate() {
        print_unlocked(format_args!("rouse:  "));
        for (column, value) in registers.iter().enumerate() {
            print_unlocked(format_args!(" x{:<2} {value:016x}", row * 4 + column));
        }
        print_unlocked(format_args!("\n"));
    }
}
