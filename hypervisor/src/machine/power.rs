// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls the firmware, and makes it end the machine.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32};

use platform::Conduit;

use crate::console::log;
use crate::planted;

/// The PSCI function SYSTEM_OFF (DEN0022F.b, 5.1.9).
const SYSTEM_OFF: u64 = 0x8400_0008;
/// The PSCI function SYSTEM_RESET (DEN0022F.b, 5.1.10).
const SYSTEM_RESET: u64 = 0x8400_0009;

/// How the firmware is called, once this is known: 1 is SMC, 2 is HVC. No lock protects the
/// variable, because a lock would need exclusive accesses.
static CONDUIT: AtomicU32 = AtomicU32::new(0);

/// Whether a CPU has written the machine's last line and begun to turn it off.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Records how the firmware is called, for [`turn_machine_off`].
pub fn note_conduit(conduit: Option<Conduit>) {
    let number = match conduit {
        None => 0,
        Some(Conduit::Smc) => 1,
        Some(Conduit::Hvc) => 2,
    };
    CONDUIT.store(number, Relaxed);
}

fn conduit() -> Option<Conduit> {
    match CONDUIT.load(Relaxed) {
        1 => Some(Conduit::Smc),
        2 => Some(Conduit::Hvc),
        _ => None,
    }
}

/// Whether a CPU has begun to turn the machine off or to reset it.
pub fn has_ended() -> bool {
    ENDED.load(Relaxed)
}

/// Ends the machine with PSCI SYSTEM_OFF, or with [`console::END`] where there is no PSCI.
///
/// The call must not return (DEN0022F.b, 5.1.9). If it does, its status is printed as the machine's
/// last line, and this CPU halts. A reset instead would make firmware start the same image again,
/// and the run would never end.
pub fn turn_machine_off() -> ! {
    end_by_psci(SYSTEM_OFF)
}

/// Turns the machine off without printing, and without waiting for the console to send everything:
/// the console itself may be broken.
pub fn turn_off_silently() -> ! {
    if let Some(conduit) = conduit() {
        call_firmware(conduit, SYSTEM_OFF);
    }
    loop {
        // strict wait-can-end: this CPU stays halted.
        arch::insn::wfi();
    }
}

/// Resets the machine with PSCI SYSTEM_RESET, and halts if that returns.
pub fn reset_machine() -> ! {
    end_by_psci(SYSTEM_RESET)
}

fn end_by_psci(function: u64) -> ! {
    if let Some(firmware) = log::firmware() {
        (firmware.power_off)();
    }
    log::drain();
    ENDED.store(true, Relaxed);
    if let Some(conduit) = conduit() {
        let status = call_firmware(conduit, function);
        log::print_unlocked(format_args!(
            "rouse: PSCI function {function:#x} answers {status}: the machine is still on; turn it off\n"
        ));
    }
    log::print_unlocked(format_args!("{}", console::END));
    loop {
        // strict wait-can-end: this CPU stays halted.
        arch::insn::wfi();
    }
}

/// Makes firmware turn the machine off or reset it; if firmware returns instead, returns its status.
fn call_firmware(conduit: Conduit, function: u64) -> i64 {
    planted::power_off_answer().unwrap_or_else(|| call_psci(conduit, function, 0, 0, 0))
}

/// Calls the firmware's PSCI; returns its status, 0 for success.
pub fn call_psci(conduit: Conduit, function: u64, a: u64, b: u64, c: u64) -> i64 {
    let status: u64;
    // SAFETY: PSCI follows the SMC calling convention, which may clobber x0 to x17 and nothing else
    // that this code uses (DEN0028F, 2.6).
    unsafe {
        match conduit {
            Conduit::Smc => core::arch::asm!("smc #0",
                inlateout("x0") function => status, in("x1") a, in("x2") b, in("x3") c,
                clobber_abi("C")),
            Conduit::Hvc => core::arch::asm!("hvc #0",
                inlateout("x0") function => status, in("x1") a, in("x2") b, in("x3") c,
                clobber_abi("C")),
        }
    }
    // Functions of the 32-bit convention return 32 bits.
    i64::from(status as i32)
}

/// Prints why the machine, or its guest, can't be used, and ends the machine. A refusal is for
/// unusable input; a panic is for faults of the hypervisor.
#[macro_export]
macro_rules! refuse {
    ($($arg:tt)*) => {{
        $crate::say!("refused: {}", format_args!($($arg)*));
        $crate::machine::power::turn_machine_off()
    }};
}
