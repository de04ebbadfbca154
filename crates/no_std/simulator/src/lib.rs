// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of a program to the simulator that executes it: gem5's pseudo-instructions for arm64
//! (include/gem5/asm/generic/m5ops.h), which any exception level may execute. On other machines, they are undefined
//! instructions, so the boot argument `rouse.checkpoint` has to announce the simulator.
//!
//! The pseudo-instructions access memory at once, while an in-order core may still have earlier stores in its buffer. A
//! barrier drains the buffer, and a load after the barrier waits until the buffer is empty.

#![no_std]
#![cfg(target_arch = "aarch64")]

#[cfg(target_os = "linux")]
extern crate alloc;

#[cfg(target_os = "linux")]
use alloc::{string::String, vec, vec::Vec};
use core::arch::asm;

/// The boot argument that announces a simulator, which makes checkpoints on request.
pub const ANNOUNCED: &str = "rouse.checkpoint";

/// The encoding of the pseudo-instruction with function 0.
const PSEUDO: u32 = 0xff00_0110;
/// The lowest bit of the function's number in the encoding.
const FUNCTION: u32 = 16;
const EXIT: u32 = PSEUDO | 0x21 << FUNCTION;
const CHECKPOINT: u32 = PSEUDO | 0x43 << FUNCTION;
const WRITE_FILE: u32 = PSEUDO | 0x4f << FUNCTION;
#[cfg(target_os = "linux")]
const READ_FILE: u32 = PSEUDO | 0x50 << FUNCTION;

/// Size of a part of the file that is read at once.
#[cfg(target_os = "linux")]
const PART: usize = 4096;

/// Ends the simulation that boots the machine. Any number of other simulations continue from here.
pub fn checkpoint() {
    // SAFETY: the simulator keeps all registers; x0 is the delay and x1 the period of repetition, in nanoseconds.
    unsafe {
        asm!(".inst {op}", op = const CHECKPOINT, inout("x0") 0_u64 => _, in("x1") 0_u64, options(nostack));
    }
}

/// Returns the text that was passed to the simulator at its start.
///
/// # Errors
/// Returns an error if the text is not UTF-8.
#[cfg(target_os = "linux")]
pub fn text() -> Result<String, String> {
    let mut text = Vec::new();
    loop {
        // The simulator only writes to mapped pages, so this program writes each byte first.
        let mut part = vec![1_u8; PART];
        let read: usize;
        // SAFETY: the simulator writes at most x1 bytes to x0, which are within `part`, from offset x2 of the file.
        unsafe {
            asm!("dsb sy", "ldrb {byte:w}, [x0]", ".inst {op}", byte = out(reg) _, op = const READ_FILE,
                inout("x0") part.as_mut_ptr() => read, in("x1") PART, in("x2") text.len(), options(nostack));
        }
        text.extend_from_slice(&part[..read.min(PART)]);
        if read < PART {
            break;
        }
    }
    String::from_utf8(text).map_err(|_| "the simulator's text is no UTF-8".into())
}

/// A file in the simulator's folder, whose contents the simulator shows (boards/gem5/machine.py: `RECORDS`). The file
/// replaces the simulated serial port, where each character would be an access to a device.
#[derive(Debug)]
pub struct Records {
    name: [u8; Self::NAME],
    written: usize,
}

impl Records {
    /// Size of the longest name, with its final zero.
    const NAME: usize = 16;

    /// Returns the file for the records of a program that measures.
    #[must_use]
    pub fn of_program() -> Self {
        Self::named(b"records")
    }

    /// Returns the file for the console of a guest, and for the lines of its host.
    #[must_use]
    pub fn of_host() -> Self {
        Self::named(b"host-records")
    }

    fn named(name: &[u8]) -> Self {
        let mut field = [0; Self::NAME];
        field[..name.len()].copy_from_slice(name);
        Self {
            name: field,
            written: 0,
        }
    }

    /// Appends `bytes`. Returns how many of them the simulator has taken.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        // The simulator only reads mapped pages. The stack is mapped.
        let name = core::hint::black_box(self.name);
        let written: usize;
        // SAFETY: the simulator reads x1 bytes from x0, which are `bytes`, and the name from x3, which ends with a
        // zero, and changes nothing else. x2 is the offset in the file.
        unsafe {
            asm!("dsb sy", "ldrb {byte:w}, [x3]", ".inst {op}", byte = out(reg) _, op = const WRITE_FILE,
                inout("x0") bytes.as_ptr() => written, in("x1") bytes.len(), in("x2") self.written, in("x3") name.as_ptr(),
                options(nostack));
        }
        self.written += written;
        written
    }
}

/// Ends the simulation.
pub fn end() {
    // SAFETY: as above; x0 is the delay, in nanoseconds.
    unsafe { asm!(".inst {op}", op = const EXIT, inout("x0") 0_u64 => _, options(nostack)) };
}
