// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs EL3: gives the non-secure side its access, and serves PSCI (DEN0022F.b, 5.1).

use core::arch::asm;

use aarch64_cpu::registers::{CurrentEL, Readable};

use crate::cpus;
use crate::devices;
use crate::leftovers::Words;
use crate::{entry, say};

/// Function identifiers and return values of PSCI.
const VERSION: u64 = 0x8400_0000;
const CPU_OFF: u64 = 0x8400_0002;
const CPU_ON: u64 = 0xc400_0003;
const AFFINITY_INFO: u64 = 0xc400_0004;
const SYSTEM_OFF: u64 = 0x8400_0008;
const SYSTEM_RESET: u64 = 0x8400_0009;
const NOT_SUPPORTED: i64 = -1;
const INVALID: i64 = -2;

/// SCR_EL3 while the non-secure side runs: NS, two RES1 bits, HCE, RW, APK, API, FGTEn, ECVEn,
/// HXEn, TCR2En, SCTLR2En, PIEn.
const SCR: u64 = 1 | 3 << 4 | 1 << 8 | 1 << 10 | 3 << 16 | 3 << 27 | 1 << 38 | 7 << 43;

/// SCR_EL3.FIQ: Group 0 belongs to EL3, as on servers.
const FIQ: u64 = 1 << 2;

/// The GPIO that ends the machine: a PL061 on the secure side of QEMU's `virt`. Pin 0 turns the
/// machine off, pin 1 resets it.
const GPIO: u64 = 0x090b_0000;
const GPIO_DIRECTION: u64 = GPIO + 0x400;

/// Whether this code runs at EL3.
pub fn is_el3() -> bool {
    CurrentEL.read(CurrentEL::EL) == 3
}

/// Sets up the private state of each CPU, for access by the non-secure side.
pub fn set_up_cpu(frame: u64, words: Words) {
    let scr = if words.group0_open { SCR } else { SCR | FIQ };
    // SAFETY: no code here depends on what these registers control. Two of them are ICC_SRE_EL3 and ICC_IGRPEN1_EL3.
    unsafe {
        asm!("msr scr_el3, {scr}", "msr cptr_el3, xzr", "msr mdcr_el3, xzr",
            "msr vbar_el3, {vectors}", "isb",
            "msr S3_6_C12_C12_5, {sre}", "isb", "msr S3_6_C12_C12_7, {both}",
            // ICC_PMR_EL1: the non-secure side could not raise a value below 0x80 (IHI 0069H, 4.8.6).
            "msr S3_0_C4_C6_0, {every}", "isb",
            scr = in(reg) scr, vectors = in(reg) entry::vectors(),
            sre = in(reg) 0xfu64, both = in(reg) 3u64,
            every = in(reg) 0xffu64,
            options(nostack, preserves_flags));
    }
    devices::set_up_redistributor(frame);
}

/// Serves a call from EL2.
pub extern "C" fn call(function: u64, a: u64, b: u64, c: u64, syndrome: u64) -> i64 {
    if syndrome >> 26 != 0x17 {
        say!("EL2 trapped to EL3: ESR_EL3 {syndrome:#x}");
        end_machine(0);
    }
    match function {
        VERSION => 1 << 16,
        CPU_ON => cpus::turn_on(a, b, c),
        CPU_OFF => cpus::turn_off(),
        AFFINITY_INFO => cpus::is_off(a).map_or(INVALID, i64::from),
        SYSTEM_OFF => end_machine(0),
        SYSTEM_RESET => end_machine(1),
        _ => NOT_SUPPORTED,
    }
}

/// Ends the machine through `pin`.
pub fn end_machine(pin: u32) -> ! {
    // SAFETY: QEMU's `virt` with EL3 has this device.
    unsafe {
        (GPIO_DIRECTION as *mut u32).write_volatile(3);
        ((GPIO + (4 << pin)) as *mut u32).write_volatile(1 << pin);
    }
    loop {
        arch::insn::wfi();
    }
}

/// Reports an exception that no code here expects.
pub extern "C" fn lost(syndrome: u64, address: u64) -> ! {
    say!("an exception at EL3: ESR_EL3 {syndrome:#x} ELR_EL3 {address:#x}");
    end_machine(0)
}
