// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU, which is entered repeatedly until something ends it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use kvm_bindings::{KVM_SYSTEM_EVENT_CRASH, KVM_SYSTEM_EVENT_RESET, KVM_SYSTEM_EVENT_SHUTDOWN};
use kvm_ioctls::{VcpuExit, VcpuFd};
use vmm_sys_util::errno;
use vmm_sys_util::signal::{SIGRTMIN, register_signal_handler};

use super::bus::Bus;
use super::exits::Exits;
use super::registers;

/// A vCPU in KVM.
#[derive(Debug)]
pub struct Cpu {
    /// Its number.
    pub index: usize,
    /// Its file descriptor.
    pub fd: VcpuFd,
    /// Its exit counts, if KVM counts exits.
    pub exits: Option<Exits>,
}

/// Why a vCPU will not be entered again.
#[derive(Debug)]
pub enum Cause {
    /// The guest turned its machine off.
    Off,
    /// The guest reset its machine.
    Reset,
    /// The program stopped it.
    Stopped,
    /// Something failed, for this reason.
    Badly(String),
}

/// State of a vCPU after its last exit.
#[derive(Debug)]
pub struct Left {
    /// Its number.
    pub index: usize,
    /// Why it ended.
    pub cause: Cause,
    /// Its registers, formatted for a person.
    pub registers: String,
}

/// Returns the signal that makes a vCPU leave the guest.
pub fn signal() -> i32 {
    SIGRTMIN()
}

/// Installs a handler for that signal that does nothing.
pub fn prepare() -> Result<(), errno::Error> {
    extern "C" fn nothing(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}
    register_signal_handler(signal(), nothing)
}

impl Cpu {
    /// Runs the guest until it ends, or until `stop` is set and a signal arrives.
    pub fn run(&mut self, bus: &Bus, stop: &AtomicBool) -> Left {
        let cause = loop {
            if stop.load(Relaxed) {
                break Cause::Stopped;
            }
            if let Some(cause) = self.enter(bus) {
                break cause;
            }
        };
        Left {
            index: self.index,
            cause,
            registers: registers::shown(&self.fd),
        }
    }

    /// Runs the guest until its next exit. Returns the cause if the guest has ended.
    fn enter(&mut self, bus: &Bus) -> Option<Cause> {
        let served = match self.fd.run() {
            Ok(VcpuExit::MmioRead(address, data)) => match &mut self.exits {
                Some(exits) if Exits::has(address) => {
                    exits.read(address, data);
                    Ok(())
                }
                _ => bus.read(address, data),
            },
            Ok(VcpuExit::MmioWrite(address, data)) => bus.write(address, data),
            Ok(VcpuExit::SystemEvent(event, _)) => return Some(system(event)),
            Ok(VcpuExit::Intr) => Ok(()),
            Ok(VcpuExit::FailEntry(reason, cpu)) => {
                let why =
                    format!("KVM could not enter the guest on CPU {cpu} (reason {reason:#x})");
                return Some(Cause::Badly(why));
            }
            Ok(other) => {
                let why = format!("KVM left the guest for what it has not: {other:?}");
                return Some(Cause::Badly(why));
            }
            // A signal arrived, or KVM has to be called again.
            Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => Ok(()),
            Err(error) => {
                // KVM returns ENOSYS for an access outside all devices by an instruction
                // without a valid syndrome (Documentation/virt/kvm/api.rst, 5).
                let why = format!("KVM can't go on with the guest: {error}");
                return Some(Cause::Badly(why));
            }
        };
        served.err().map(|fault| Cause::Badly(fault.to_string()))
    }
}

/// Returns the cause for a PSCI call that ends the machine.
fn system(event: u32) -> Cause {
    match event {
        KVM_SYSTEM_EVENT_SHUTDOWN => Cause::Off,
        KVM_SYSTEM_EVENT_RESET => Cause::Reset,
        KVM_SYSTEM_EVENT_CRASH => Cause::Badly("the guest says that it crashed".into()),
        other => Cause::Badly(format!("system event {other}, which is not known here")),
    }
}
