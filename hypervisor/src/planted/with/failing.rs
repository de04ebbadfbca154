// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes EL2 fail: before the guest runs, or while it does.

use core::fmt;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTPCT_EL0, Readable};
use arch::insn;
use console::Port;
use plan::{CallFault, Fault, StartFault};
use platform::{Uart, UartKind};

use super::asked::asked_fault;
use super::broken_rules;
use crate::console::log;
use crate::machine::machine;
use crate::machine::vm::vm;
use crate::say;

/// Fails before the guest runs, if asked to.
pub fn before_guest() {
    let Some(Fault::Start(fault)) = asked_fault() else {
        return;
    };
    match fault {
        StartFault::Panic => panic!("as asked by rouse.fault={fault}"),
        StartFault::Abort => {
            // SAFETY: address 0x10 is not mapped, so the read faults, as was asked for, and reads
            // nothing.
            unsafe { (0x10 as *const u64).read_volatile() };
        }
        StartFault::Hang => loop {
            insn::yield_now();
        },
        StartFault::Overflow => {
            overflow_stack(0);
        }
        StartFault::WriteCode => {
            // SAFETY: code is not writable, so the write faults, and writes nothing.
            unsafe { (arch::layout::base() as *mut u64).write_volatile(0) };
        }
        StartFault::RunData => {
            let data = arch::layout::data().start as *const ();
            // SAFETY: variables can't be executed, so the call faults at its first instruction, as
            // was asked for.
            unsafe { core::mem::transmute::<*const (), extern "C" fn()>(data)() };
        }
        StartFault::BreaksRules => broken_rules::break_all(),
        StartFault::ConsoleStalls => stall_console(true),
        StartFault::ConsoleDies => stall_console(false),
    }
}

/// Fails while the guest runs, when the guest asks for a watch; every guest that tests such a failure asks for one.
#[inline(never)]
pub fn at_watch() {
    let Some(Fault::Call(fault)) = asked_fault() else {
        return;
    };
    match fault {
        CallFault::PanicRunning => panic!("as asked, while the guest runs"),
        CallFault::OverflowRunning => {
            overflow_stack(0);
        }
        CallFault::PanicNested => panic!("as asked, {Broken}"),
        CallFault::PanicHeld => log::with_line(|_| panic!("as asked, while the console is held")),
        CallFault::PanicEverywhere => panic_everywhere(),
        CallFault::SgiLost => {
            if let Some(other) = vm().cpus.get(1) {
                say!("fault: CPU {:#x} gets no SGI 0 any more", other.mpidr);
                other.redistributor().disable_all(1);
            }
        }
    }
}

/// Panics once all CPUs have called this.
fn panic_everywhere() {
    static HERE: AtomicU32 = AtomicU32::new(0);
    HERE.fetch_add(1, Relaxed);
    while (HERE.load(Relaxed) as usize) < vm().cpus.len() {
        insn::yield_now();
    }
    panic!("as asked, on every CPU");
}

/// A value that panics when it is printed.
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("in the message of a panic")
    }
}

/// Calls itself until there is no stack left.
#[expect(unconditional_recursion, reason = "it is asked for")]
fn overflow_stack(depth: u64) -> u64 {
    let page = core::hint::black_box([depth; 32]);
    overflow_stack(depth + 1) + page[depth as usize % 32]
}

/// Stalls the console: for as long as some lines take if `ends` is set, otherwise for ever.
fn stall_console(ends: bool) {
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
    // SAFETY: this memory behaves as the registers of a stalled UART.
    change_port(unsafe { Port::new(stalled) });
    if !ends {
        return;
    }
    for n in 0..LINES {
        say!("line {n} that is not read");
    }
    // SAFETY: `uart` is the machine's own UART, which the console used before.
    let lost = change_port(unsafe { Port::new(uart) });
    let ticks = CNTPCT_EL0.get() - start;
    say!("fault: the console stalled; {lost} bytes lost in {ticks} ticks");
}

/// Connects the console to `port`, and returns how many bytes the previous port lost.
fn change_port(port: Port) -> u64 {
    let mut lost = 0;
    log::with_line(|line| lost = line.connect(port).map_or(0, |old| old.lost()));
    lost
}
