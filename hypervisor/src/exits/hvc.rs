// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves calls of the guest through HVC or SMC: PSCI, the SMCCC discovery calls, and the
//! hypercalls of crate `abi`.

use aarch64_cpu::registers::{ESR_EL2, ID_AA64MMFR1_EL1, Readable};
use abi::{Call, ConsoleWords, Counter, Info, Knob, KnobValue, Shared, TimeLog, Words};
use arch::frame::Frame;
use arch::layout;
use arch::regs::ICH_VTR_EL2;
use trap::esr::{self, Esr};

use crate::console::log;
use crate::cpu::percpu::{PerCpu, Slot};
use crate::dumps::{deadline, dump, own_timer, serror, watchdog};
use crate::exits::{knobs, psci};
use crate::interrupts::{audit, vgic_cpu};
use crate::machine::vm::{self, vm};
use crate::machine::{caches, ending, machine};
use crate::neighbour::turn;
use crate::planted;

/// SMCCC_VERSION (DEN0028F, 7.2) and the version that EL2 returns: 1.2, which lets a call return up
/// to x17.
const SMCCC_VERSION: u32 = 0x8000_0000;
const SMCCC_1_2: u64 = 0x1_0002;
/// SMCCC_ARCH_FEATURES (DEN0028F, 7.3).
const SMCCC_ARCH_FEATURES: u32 = 0x8000_0001;
/// Function numbers of PSCI, 32-bit or 64-bit (DEN0022F.b, 5.1).
const PSCI: core::ops::Range<u32> = 0..0x20;

/// Serves the call whose function and arguments are in `frame`; `by` is the counter that counts
/// this exit. A call that reads the counters does not change them.
#[inline(always)]
pub fn serve_call(cpu: &PerCpu, frame: &mut Frame, by: Counter) {
    let function = frame.x[0] as u32;
    if u64::from(function) != Call::Counters.function() {
        cpu.vcpu.counters.add(by);
    }
    match function {
        // Served here, this call needs no saved registers and none of the stack of `serve_function`.
        SMCCC_VERSION => frame.x[0] = SMCCC_1_2,
        // A call of the Standard Secure Service, 32-bit or 64-bit, with a function number of PSCI.
        _ if matches!(function >> 24, 0x84 | 0xc4) && PSCI.contains(&(function & 0xffff)) => {
            psci::serve_call(cpu, frame);
        }
        _ => serve_function(cpu, frame, function),
    }
}

#[inline(never)]
fn serve_function(cpu: &PerCpu, frame: &mut Frame, function: u32) {
    match (Call::of(function), function) {
        (Some(call), _) => serve_own_call(cpu, frame, call),
        (None, abi::CALL_UID) => {
            for (register, word) in frame.x.iter_mut().zip(abi::UID) {
                *register = u64::from(word);
            }
        }
        (None, SMCCC_ARCH_FEATURES) => {
            let known = matches!(frame.x[1] as u32, SMCCC_VERSION | SMCCC_ARCH_FEATURES);
            frame.x[0] = if known { 0 } else { abi::NOT_SUPPORTED as u64 };
        }
        _ => frame.x[0] = abi::NOT_SUPPORTED as u64,
    }
}

/// Serves one of the hypervisor's own calls.
#[inline(always)]
fn serve_own_call(cpu: &PerCpu, frame: &mut Frame, call: Call) {
    let done = match call {
        Call::Set => {
            let knob = Knob::ALL.get(frame.x[1] as usize);
            let value = knob.and_then(|&knob| KnobValue::decode(knob, frame.x[2]));
            value.and_then(|value| knobs::set_knob(cpu, value))
        }
        Call::Watch => {
            planted::at_watch();
            watchdog::set_watch(frame.x[1], frame.x[2])
        }
        Call::Log => set_log(cpu, frame.x[1]),
        Call::Audit => audit::audit(cpu, frame, frame.x[1]).then_some(()),
        Call::Evict => caches::evict(frame.x[1]),
        Call::Floor => match planted::enter_floor(frame.x[1]) {
            Some(entered) => entered.ok(),
            None => return frame.x[0] = abi::NOT_SUPPORTED as u64,
        },
        Call::Counters => return return_counters(cpu, frame),
        Call::Shared => return return_neighbour_counts(cpu, frame),
        Call::Info => return return_info(frame),
        Call::Trace => return return_last_events(frame),
        Call::Console => return print_guest_text(frame),
        Call::Cell | Call::Timer => return serve_deadline_call(cpu, frame, call),
        Call::Dump => dump::show_and_end(frame.x[1]),
        Call::Exit => ending::exit_machine(frame.x[1]),
    };
    frame.x[0] = done.map_or(abi::INVALID, |()| abi::SUCCESS) as u64;
}

/// Serves the guest's calls that concern the deadlines and the watchdog.
#[cold]
#[inline(never)]
fn serve_deadline_call(cpu: &PerCpu, frame: &mut Frame, call: Call) {
    if call == Call::Cell {
        planted::at_cell(frame.x[1], frame.x[2]);
        let words = Words(core::array::from_fn(|n| frame.x[3 + n]));
        deadline::begin_cell(frame.x[1], frame.x[2], words);
    } else {
        deadline::note_timer_handed_on();
        own_timer::handle_expiry(cpu);
    }
    frame.x[0] = abi::SUCCESS as u64;
}

/// Prints the guest's text.
#[cold]
#[inline(never)]
fn print_guest_text(frame: &mut Frame) {
    let words: ConsoleWords = Words(core::array::from_fn(|n| frame.x[1 + n]));
    log::with_line(|line| line.print_call_text(words.bytes()));
    frame.x[0] = abi::SUCCESS as u64;
}

/// Logs events at guest physical `address`, or nowhere if `address` is 0; `None` if no log can be there.
fn set_log(cpu: &PerCpu, address: u64) -> Option<()> {
    let log = match address {
        0 => None,
        address => {
            let place = vm::ram_pointer::<TimeLog>(address)?;
            // SAFETY: `in_ram` checked the address, and every field is an atomic.
            Some(unsafe { &*place })
        }
    };
    cpu.vcpu.trace.copy_to_log(log);
    Some(())
}

fn return_counters(cpu: &PerCpu, frame: &mut Frame) {
    frame.x[0] = abi::SUCCESS as u64;
    for (register, &counter) in frame.x[1..].iter_mut().zip(Counter::ALL) {
        *register = cpu.vcpu.count(counter);
    }
}

/// Returns the counts of the neighbour. The call changes neither these counts nor the counters of exits.
fn return_neighbour_counts(cpu: &PerCpu, frame: &mut Frame) {
    let by = match Esr(ESR_EL2.get()).class() {
        esr::SMC64 => Counter::Smc,
        _ => Counter::Hvc,
    };
    cpu.vcpu.counters.uncount(by);
    frame.x[0] = abi::SUCCESS as u64;
    for (register, &count) in frame.x[1..].iter_mut().zip(Shared::ALL) {
        *register = turn::read_count(cpu, count);
    }
}

/// Returns the last events of vCPU x1.
fn return_last_events(frame: &mut Frame) {
    let Some(cpu) = vm().cpus.get(frame.x[1] as usize) else {
        frame.x[0] = abi::INVALID as u64;
        return;
    };
    frame.x[0] = abi::SUCCESS as u64;
    let events = cpu.vcpu.trace.latest();
    for (pair, event) in frame.x[1..].chunks_exact_mut(2).zip(events) {
        pair.copy_from_slice(&[event.time, event.what]);
    }
}

fn return_info(frame: &mut Frame) {
    // SAFETY: the description is true, and the distributor has been mapped since boot.
    let distributor = unsafe { gic::identify(&machine().platform.gic) };
    frame.x[0] = abi::SUCCESS as u64;
    for (register, &info) in frame.x[1..].iter_mut().zip(Info::ALL) {
        *register = match info {
            Info::Version => abi::VERSION,
            Info::Vtr => ICH_VTR_EL2.get(),
            Info::Typer2 => u64::from(distributor.typer2),
            Info::Pidr2 => u64::from(distributor.pidr2),
            Info::Mmfr1 => ID_AA64MMFR1_EL1.get(),
            Info::Base => layout::base(),
            Info::PerVcpu => size_of::<Slot>() as u64,
            Info::Deadline => u64::from(deadline::is_set()),
            Info::SecureSgis => vgic_cpu::secure_sgis().into(),
            Info::SerrorsLeft => serror::LEFT.count(),
            Info::SerrorsCorrected => serror::CORRECTED.count(),
            Info::SerrorsRestartable => serror::RESTARTABLE.count(),
        };
    }
}
