// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making the faults of EL2 that were asked for; [`crate::machine::fault`] knows which.

use core::fmt;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTPCT_EL0, Readable};
use arch::insn;
use plan::Fault;
use platform::{Uart, UartKind};

use crate::console::log;
use crate::cpu::percpu::PerCpu;
use crate::dumps::{broken_rules, planted_serrors};
use crate::machine::fault::is;
use crate::machine::machine;
use crate::machine::vm::vm;
use crate::say;

/// Faults of EL2 before the guest runs.
pub fn before_guest() {
    if is(Fault::El2Panic) {
        panic!("as asked by rouse.fault=el2-panic");
    } else if is(Fault::El2Abort) {
        // SAFETY: address 0x10 is not mapped: the read faults, which is what was
        // asked for, and reads nothing.
        unsafe { (0x10 as *const u64).read_volatile() };
    } else if is(Fault::El2Hang) {
        loop {
            insn::yield_now();
        }
    } else if is(Fault::El2Overflow) {
        overflow(0);
    } else if is(Fault::El2WriteCode) {
        // SAFETY: code is not writable: the write faults, and writes nothing.
        unsafe { (arch::layout::base() as *mut u64).write_volatile(0) };
    } else if is(Fault::El2RunData) {
        let data = arch::layout::data().start as *const ();
        // SAFETY: variables can't be run: the call faults at its first
        // instruction, which is what was asked for.
        unsafe { core::mem::transmute::<*const (), extern "C" fn()>(data)() };
    } else if is(Fault::El2BreaksRules) {
        broken_rules::break_all();
    } else if is(Fault::ConsoleStalls) {
        stall(true);
    } else if is(Fault::ConsoleDies) {
        stall(false);
    }
}

/// Faults of EL2 while the guest runs.
pub fn while_running() {
    if is(Fault::El2PanicRunning) {
        panic!("as asked, while the guest runs");
    } else if is(Fault::El2OverflowRunning) {
        overflow(0);
    } else if is(Fault::El2PanicNested) {
        panic!("as asked, {Broken}");
    } else if is(Fault::El2PanicHeld) {
        log::while_held(|| panic!("as asked, while the console is held"));
    } else if is(Fault::El2PanicEverywhere) {
        everywhere();
    } else if is(Fault::SgiLost)
        && let Some(other) = vm().cpus.get(1)
    {
        say!("fault: CPU {:#x} gets no SGI 0 any more", other.mpidr);
        other.redistributor().disable_all(1);
    }
}

/// Faults of EL2 while the guest measures, where it says that pass `pass` of cell `cell` - 1
/// begins: once, with the first.
pub fn at_cell(cpu: &PerCpu, cell: u64, pass: u64) {
    if (cell, pass) == (1, 0) {
        planted_serrors::plant(cpu);
    }
}

/// Panics, when as many CPUs as there are have come here.
fn everywhere() {
    static HERE: AtomicU32 = AtomicU32::new(0);
    HERE.fetch_add(1, Relaxed);
    while (HERE.load(Relaxed) as usize) < vm().cpus.len() {
        insn::yield_now();
    }
    panic!("as asked, on every CPU");
}

/// Panics when it is shown.
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("in the message of a panic")
    }
}

/// Calls itself until there is no stack left.
#[expect(unconditional_recursion, reason = "it is asked for")]
fn overflow(depth: u64) -> u64 {
    let page = core::hint::black_box([depth; 32]);
    overflow(depth + 1) + page[depth as usize % 32]
}

/// Has the console take nothing, for some lines if it `ends`, or any more.
fn stall(ends: bool) {
    /// Registers of a PL011 whose transmit FIFO is full for ever (DDI 0183G, 3.3.3).
    static FULL: [AtomicU32; 1024] = {
        let mut registers = [const { AtomicU32::new(0) }; 1024];
        registers[0x18 / 4] = AtomicU32::new(1 << 5);
        registers
    };
    const LINES: u32 = 100;
    let Some(uart) = machine().platform.uart else {
        return;
    };
    let stalled = Uart {
        kind: UartKind::Pl011,
        base: FULL.as_ptr() as u64,
    };
    let start = CNTPCT_EL0.get();
    // SAFETY: memory that behaves as the registers of a stalled UART.
    unsafe { log::change(stalled) };
    if !ends {
        return;
    }
    for n in 0..LINES {
        say!("line {n} that is not read");
    }
    // SAFETY: the machine's own, as before.
    let lost = unsafe { log::change(uart) };
    let ticks = CNTPCT_EL0.get() - start;
    say!("fault: the console stalled; {lost} bytes lost in {ticks} ticks");
}
