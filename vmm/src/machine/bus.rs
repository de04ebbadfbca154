// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's physical address space except RAM and the GIC. Only the console is left.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvm_ioctls::VmFd;
use vm_superio::serial::{Error, NoEvents};
use vm_superio::{Serial, Trigger};
use vmm_sys_util::errno;
use wire::Source;

use super::console::{Console, Flood};
use crate::layout::{CONSOLE, CONSOLE_SIZE, CONSOLE_SPI};

/// The console's shared interrupt as KVM_IRQ_LINE numbers it (Documentation/virt/kvm/api.rst, 4.25).
const SPI: u32 = 1 << 24 | (32 + CONSOLE_SPI);

/// An access that the machine can't serve.
#[derive(Debug)]
pub enum Fault {
    /// There is no device at the address.
    Nothing(u64),
    /// The guest has written more than its console allows.
    Flood(Flood),
    /// The console can't write or can't raise its interrupt.
    Console(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(address) => {
                write!(f, "the guest accessed {address:#x}, where nothing is")
            }
            Self::Flood(flood) => write!(f, "{flood}"),
            Self::Console(why) => write!(f, "standard output can't be written ({why})"),
        }
    }
}

/// The devices that this program emulates.
pub struct Bus {
    serial: Mutex<Serial<ConsoleInterrupt, NoEvents, Console>>,
}

impl Bus {
    /// Creates a console that interrupts `vm` and writes at most `most` bytes for a guest of `source`.
    pub fn new(vm: Arc<VmFd>, most: u64, source: Source) -> Self {
        Self {
            serial: Mutex::new(Serial::new(
                ConsoleInterrupt(vm),
                Console::new(most, source),
            )),
        }
    }

    /// Serves a read by the guest.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), Fault> {
        let register = register_number(address)?;
        data.fill(0);
        if let Some(first) = data.first_mut() {
            *first = self.lock_serial().read(register);
        }
        Ok(())
    }

    /// Serves a write by the guest.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), Fault> {
        let register = register_number(address)?;
        let first = data.first().copied().unwrap_or_default();
        self.lock_serial()
            .write(register, first)
            .map_err(|error| match error {
                Error::IOError(error) => match error.downcast() {
                    Ok(flood) => Fault::Flood(flood),
                    Err(error) => Fault::Console(error.to_string()),
                },
                other => Fault::Console(other.to_string()),
            })
    }

    /// Returns the number of bytes that the guest has written to its console so far.
    pub fn bytes_written(&self) -> u64 {
        self.lock_serial().writer().bytes_written()
    }

    /// Ends an unfinished line of the console, and writes it.
    pub fn flush(&self) {
        // An error does not matter: the guest has ended, and a reader that has closed the pipe does not want the rest.
        let _ = self.lock_serial().writer_mut().end_line();
    }

    fn lock_serial(&self) -> MutexGuard<'_, Serial<ConsoleInterrupt, NoEvents, Console>> {
        self.serial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of the console's register at `address`.
fn register_number(address: u64) -> Result<u8, Fault> {
    match address.checked_sub(CONSOLE) {
        Some(offset) if offset < CONSOLE_SIZE => Ok(offset as u8),
        _ => Err(Fault::Nothing(address)),
    }
}

/// The console's edge-triggered interrupt.
struct ConsoleInterrupt(Arc<VmFd>);

impl Trigger for ConsoleInterrupt {
    type E = errno::Error;

    fn trigger(&self) -> Result<(), Self::E> {
        self.0.set_irq_line(SPI, true)?;
        self.0.set_irq_line(SPI, false)
    }
}

impl From<Flood> for io::Error {
    fn from(flood: Flood) -> Self {
        Self::other(flood)
    }
}
