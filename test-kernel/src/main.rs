// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel that knows nothing of Rouse; it tests the environment that guests other than Rouse's own get.
//!
//! The kernel prints its address and command line, tries the memory that its header claims, and ends as its arguments
//! request:
//!
//! | argument | |
//! |---|---|
//! | `end=off`, `reset`, `cpu-off`, `hang` | how it ends (default `off`); `cpu-off` turns every CPU off |
//! | `cpu=N` | on which CPU it ends, by the CPU's index in the device tree (default 0) |
//! | `forge` | it prints lines that look like Rouse's (`text.rs`) |
//! | `turns` | with `cpu=1`, two CPUs write the parts of lines in turn (`text.rs`) |
//! | `devices` | it accesses devices with register pairs and with write-back (`devices.rs`) |
//! | `exclusive` | it accesses a device with an exclusive load |
//! | `look` | each CPU checks its state at entry (`entry_state.rs`) |
//!
//! The kernel runs with MMU and caches off.

#![no_std]
#![no_main]

mod boot;
mod devices;
mod entry_state;
mod text;

use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use console::Port;
use platform::image::{HEADER, Image};
use platform::{Conduit, Platform, Room};

/// PSCI functions (DEN0022F.b, 5.1).
const CPU_OFF: u64 = 0x8400_0002;
const CPU_ON: u64 = 0xc400_0003;
const AFFINITY_INFO: u64 = 0xc400_0004;
const SYSTEM_OFF: u64 = 0x8400_0008;
const SYSTEM_RESET: u64 = 0x8400_0009;
/// The value that AFFINITY_INFO returns for a CPU that is off.
const OFF: u64 = 1;

/// Address of the device tree. With the MMU off, all CPUs see the same memory.
static TREE: AtomicU64 = AtomicU64::new(0);

/// Runs on the first CPU.
#[unsafe(no_mangle)]
extern "C" fn kernel_start(dtb: u64) -> ! {
    TREE.store(dtb, Relaxed);
    let mut room = Room::new();
    let platform = read_platform(&mut room);
    let mut out = open_uart(&platform);
    let _ = writeln!(out, "kernel: arguments [{}]", platform.bootargs);
    if let Some(ram) = platform.memory.first() {
        let _ = writeln!(out, "kernel: RAM {:#x}, {} MiB", ram.base, ram.size >> 20);
    }
    check_entry_state(&platform, 0);
    try_memory(&mut out);
    if has_argument(&platform, "forge") {
        text::print_forged_lines(&mut out);
    }
    if has_argument(&platform, "devices") {
        devices::access_devices(&mut out, &platform);
    }
    if has_argument(&platform, "exclusive") {
        devices::access_exclusively(&platform);
    }
    let on = number_argument(&platform, "cpu=");
    match platform.cpus.get(on) {
        Some(other) if on > 0 => {
            let entry = boot::secondary_entry();
            let status = call_psci(&platform, CPU_ON, other.mpidr, entry, on as u64);
            if status != 0 {
                let _ = writeln!(out, "kernel: CPU_ON answers {status:#x}");
            }
            if has_argument(&platform, "turns") {
                text::write_lines_in_turn(&mut out, 0);
            }
            if argument_value(&platform, "end=") == Some("cpu-off") {
                call_psci(&platform, CPU_OFF, 0, 0, 0);
            }
            hang()
        }
        _ => end_machine(on),
    }
}

/// Runs on the CPU that ends the machine, if that is not the first CPU.
#[unsafe(no_mangle)]
extern "C" fn kernel_start_secondary(number: u64) -> ! {
    let mut room = Room::new();
    let platform = read_platform(&mut room);
    check_entry_state(&platform, number as usize);
    if has_argument(&platform, "turns") {
        text::write_lines_in_turn(&mut open_uart(&platform), number);
    }
    end_machine(number as usize)
}

/// Ends the machine on this CPU, which is `number`, as the command line requests.
fn end_machine(number: usize) -> ! {
    let mut room = Room::new();
    let platform = read_platform(&mut room);
    let how = argument_value(&platform, "end=").unwrap_or("off");
    let mut out = open_uart(&platform);
    let _ = writeln!(out, "kernel: {how} on CPU {number}");
    match how {
        "off" => call_psci(&platform, SYSTEM_OFF, 0, 0, 0),
        "reset" => call_psci(&platform, SYSTEM_RESET, 0, 0, 0),
        "cpu-off" => {
            let first = platform.cpus[0].mpidr;
            while number > 0 && call_psci(&platform, AFFINITY_INFO, first, 0, 0) != OFF {}
            // This line has no newline: an unfinished line must not be lost.
            let _ = write!(out, "kernel: the last word");
            call_psci(&platform, CPU_OFF, 0, 0, 0)
        }
        _ => {
            let _ = write!(out, "kernel: the last word");
            0
        }
    };
    hang()
}

/// Reports an exception, which no code here expects.
#[unsafe(no_mangle)]
extern "C" fn kernel_failed(syndrome: u64, address: u64) -> ! {
    let mut room = Room::new();
    let platform = read_platform(&mut room);
    let mut out = open_uart(&platform);
    let base = arch::layout::base();
    let _ = writeln!(
        out,
        "kernel: exception, ESR_EL1 {syndrome:#x} at image + {:#x}",
        address.wrapping_sub(base)
    );
    call_psci(&platform, SYSTEM_OFF, 0, 0, 0);
    hang()
}

/// Checks the state of this CPU, which is `number`, if the command line requests it.
fn check_entry_state(platform: &Platform<'_>, number: usize) {
    if has_argument(platform, "look") {
        entry_state::check_cpu(&mut open_uart(platform), platform, number);
    }
}

/// Writes to the last doubleword that the header claims, and reads it back.
fn try_memory(out: &mut Port) {
    let base = arch::layout::base();
    // SAFETY: the image begins with its header, which nothing writes to.
    let header = unsafe { core::slice::from_raw_parts(base as *const u8, HEADER) };
    let Ok(image) = Image::parse(header) else {
        let _ = writeln!(out, "kernel: no header");
        return;
    };
    let _ = writeln!(out, "kernel: image at {base:#x}, claims {:#x}", image.size);
    if image.size > arch::layout::data().end - base {
        let last = ((base + image.size - 8) & !7) as *mut u64;
        // SAFETY: the doubleword is after all parts of the image, and by the boot protocol the image owns it.
        let read = unsafe {
            last.write_volatile(0x600d);
            last.read_volatile()
        };
        let _ = writeln!(out, "kernel: its last doubleword reads {read:#x}");
    }
}

/// Returns the machine, as the device tree describes it.
fn read_platform(room: &mut Room) -> Platform<'_> {
    let address = TREE.load(Relaxed) as *const u8;
    // SAFETY: the boot protocol says that x0 was the device tree's address; the second word of the
    // tree's header is the tree's size, big-endian.
    let blob = unsafe {
        let size = u32::from_be(address.cast::<u32>().add(1).read());
        core::slice::from_raw_parts(address, size as usize)
    };
    match Platform::from_fdt(blob, room) {
        Ok(platform) => platform,
        // There is no console on which to print the error.
        Err(_) => hang(),
    }
}

fn open_uart(platform: &Platform<'_>) -> Port {
    match platform.uart {
        // SAFETY: the device tree names the UART, and the MMU is off.
        Some(uart) => unsafe { Port::new(uart) },
        None => hang(),
    }
}

/// Whether `word` is an argument of the command line.
fn has_argument(platform: &Platform<'_>, word: &str) -> bool {
    let mut words = platform.bootargs.split_ascii_whitespace();
    words.any(|other| other == word)
}

/// Returns the value of the argument that starts with `key`.
fn argument_value<'a>(platform: &Platform<'a>, key: &str) -> Option<&'a str> {
    let mut words = platform.bootargs.split_ascii_whitespace();
    words.find_map(|word| word.strip_prefix(key))
}

fn number_argument(platform: &Platform<'_>, key: &str) -> usize {
    let value = argument_value(platform, key).and_then(|value| value.parse().ok());
    value.unwrap_or(0)
}

/// Calls PSCI.
fn call_psci(platform: &Platform<'_>, function: u64, a: u64, b: u64, c: u64) -> u64 {
    let status: u64;
    // SAFETY: PSCI follows the SMC calling convention, which may clobber x0 to x17 and nothing else
    // that this code uses (DEN0028F, 2.6).
    unsafe {
        match platform.psci {
            Some(Conduit::Smc) => core::arch::asm!("smc #0",
                inlateout("x0") function => status, in("x1") a, in("x2") b, in("x3") c,
                clobber_abi("C")),
            Some(Conduit::Hvc) => core::arch::asm!("hvc #0",
                inlateout("x0") function => status, in("x1") a, in("x2") b, in("x3") c,
                clobber_abi("C")),
            None => hang(),
        }
    }
    status
}

fn hang() -> ! {
    loop {
        arch::insn::wfi();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    hang()
}
