// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses devices with instructions that write their base back or transfer two registers, and prints the
//! resulting registers of the device and of the CPU, which must be the same on any machine.

use core::arch::asm;
use core::fmt::Write;

use console::Port;
use platform::Platform;

/// Offset of GICR_IPRIORITYR0 in a redistributor.
const PRIORITIES: u64 = 0x1_0400;
/// UARTIBRD, UARTFBRD, UARTLCR_H, UARTCR, UARTIFLS, UARTIMSC (DDI 0183G, 3.2).
const KEPT: [(u64, u32); 6] = [
    (0x24, 0x345),
    (0x28, 0x2a),
    (0x2c, 0x70),
    (0x30, 0x301),
    (0x34, 0x24),
    (0x38, 0x30),
];

/// Makes the accesses.
pub fn access_devices(out: &mut Port, platform: &Platform<'_>) {
    let redistributor = platform.gic.redistributors.first();
    let (Some(redistributor), Some(uart)) = (redistributor, platform.uart) else {
        return;
    };
    transfer_priorities(out, redistributor.base + PRIORITIES);
    transfer_pairs(out, uart.base);
    print_uart_registers(out, uart.base);
}

/// Transfers single registers: pre- and post-indexed, up and down, with any base, including the
/// stack pointer.
fn transfer_priorities(out: &mut Port, first: u64) {
    let (mut stored, mut loaded) = (first, first);
    let (word, before, byte, by_sp): (u32, u32, u32, u32);
    // SAFETY: these are the priorities of SGIs, and no SGI is enabled. The stack pointer is
    // restored before anything uses it.
    unsafe {
        asm!(
            "str {a:w}, [{stored}], #4",
            "str {b:w}, [{stored}, #4]!",
            "strb {c:w}, [{stored}], #-8",
            "str wzr, [{stored}, #4]!",
            "dsb sy",
            "ldr {word:w}, [{loaded}], #8",
            "ldr {before:w}, [{loaded}, #-4]!",
            "ldrsb {byte:w}, [{loaded}, #4]!",
            "mov {saved}, sp",
            "sub {loaded}, {loaded}, #8",
            "mov sp, {loaded}",
            "ldr {by_sp:w}, [sp], #16",
            "mov {loaded}, sp",
            "mov sp, {saved}",
            a = in(reg) 0x8040_c0a0_u32,
            b = in(reg) 0x1020_3040_u32,
            c = in(reg) 0x88_u32,
            stored = inout(reg) stored,
            loaded = inout(reg) loaded,
            word = out(reg) word,
            before = out(reg) before,
            byte = out(reg) byte,
            by_sp = out(reg) by_sp,
            saved = out(reg) _,
        );
    }
    let _ = writeln!(
        out,
        "kernel: priorities {word:#x} {before:#x} {byte:#x} {by_sp:#x}, bases +{:#x} +{:#x}",
        stored - first,
        loaded - first
    );
}

/// Transfers pairs of registers, in UARTILPR to UARTLCR_H.
fn transfer_pairs(out: &mut Port, uart: u64) {
    let (mut stored, mut loaded) = (uart + 0x20, uart + 0x30);
    let (a, b): (u32, u32);
    let (c, d): (u64, u64);
    // SAFETY: these registers hold speed and format of the UART; `print_uart_registers` sets them again.
    unsafe {
        asm!(
            "stp {w:w}, {x:w}, [{stored}], #8",
            "stp {y:w}, {z:w}, [{stored}]",
            "dsb sy",
            "ldp {a:w}, {b:w}, [{loaded}, #-16]!",
            "ldpsw {c}, {d}, [{loaded}, #8]",
            w = in(reg) 0x12_u32,
            x = in(reg) 0x89ab_u32,
            y = in(reg) 0x15_u32,
            z = in(reg) 0x60_u32,
            stored = inout(reg) stored,
            loaded = inout(reg) loaded,
            a = out(reg) a,
            b = out(reg) b,
            c = out(reg) c,
            d = out(reg) d,
        );
    }
    let _ = writeln!(
        out,
        "kernel: pairs {a:#x} {b:#x} {c:#x} {d:#x}, bases +{:#x} +{:#x}",
        stored - uart,
        loaded - uart
    );
}

/// Sets the UART's registers again and prints them as they read back, and whether a character was sent.
fn print_uart_registers(out: &mut Port, uart: u64) {
    let register = |offset| (uart + offset) as *mut u32;
    for (offset, value) in KEPT {
        // SAFETY: only this kernel uses the UART, which it polls, and nothing takes the UART's interrupts.
        unsafe { register(offset).write_volatile(value) };
    }
    let _ = write!(out, "kernel: UART");
    for (offset, _) in KEPT {
        // SAFETY: reading the register has no effect.
        let read = unsafe { register(offset).read_volatile() };
        let _ = write!(out, " {read:#x}");
    }
    // SAFETY: reading the register has no effect.
    let raised = unsafe { register(0x3c).read_volatile() } & 0x20;
    let _ = writeln!(out, ", sent {raised:#x}");
}

/// Makes an exclusive access, which no hypervisor decodes, to a device.
pub fn access_exclusively(platform: &Platform<'_>) {
    if let Some(uart) = platform.uart {
        // SAFETY: reading the flags of the UART has no effect.
        unsafe { asm!("ldxr {0:w}, [{1}]", out(reg) _, in(reg) uart.base + 0x18) };
    }
}
