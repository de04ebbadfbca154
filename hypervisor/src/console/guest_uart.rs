// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's UART: one for all of its CPUs. The UART sends characters in the order in which they are written.

use arch::lock::Lock;
use console::Pl011;

use crate::console::log;

static REGISTERS: Lock<Pl011> = Lock::new(Pl011::new());

/// Reads the register at `offset`, or writes `write` to it.
#[inline(never)] // Accesses to other devices need none of its registers.
pub fn access_register(offset: u64, write: Option<u64>) -> u64 {
    let mut registers = REGISTERS.lock();
    match write {
        None => registers.read(offset),
        Some(value) => {
            let sent = registers.write(offset, value);
            // Sending may wait for the real UART; the registers stay unlocked meanwhile.
            drop(registers);
            if let Some(byte) = sent {
                log::with_line(|line| line.send_guest(byte));
            }
            0
        }
    }
}
