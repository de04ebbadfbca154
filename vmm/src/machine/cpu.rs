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
    /// The vCPU's number.
    pub index: usize,
    /// The vCPU's file descriptor.
    pub fd: VcpuFd,
    /// The vCPU's exit counts, if KVM counts exits.
    pub exits: Option<Exits>,
}

/// Why a vCPU will not be entered again.
#[derive(Debug)]
pub enum Cause {
    /// The guest turned its machine off.
    Off,
    /// The guest reset its machine.
    Reset,
    /// This program stopped the vCPU.
    Stopped,
    /// Something failed. The text is the reason.
    Badly(String),
}

/// State of a vCPU after its last exit.
#[derive(Debug)]
pub struct Left {
    /// The vCPU's number.
    pub index: usize,
    /// Why the vCPU will not be entered again.
    pub cause: Cause,
    /// The vCPU's registers, formatted for a person.
    pub registers: String,
}

/// Returns the signal that makes a vCPU leave the guest.
pub fn exit_signal() -> i32 {
    SIGRTMIN()
}

/// Installs a handler that does nothing for [`exit_signal`].
pub fn install_handler() -> Result<(), errno::Error> {
    extern "C" fn nothing(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}
    register_signal_handler(exit_signal(), nothing)
}

impl Cpu {
    /// Runs the guest until it ends, or until `stop` is set and a signal arrives.
    pub fn run(&mut self, bus: &Bus, stop: &AtomicBool) -> Left {
        let cause = loop {
            if stop.load(Relaxed) {
                break Cause::Stopped;
            }
            if let Some(cause) = self.run_until_exit(bus) {
                break cause;
            }
        };
        Left {
            index: self.index,
            cause,
            registers: registers::format_registers(&self.fd),
        }
    }

    /// Runs the guest until its next exit. Returns the cause if the guest has ended.
    fn run_until_exit(&mut self, bus: &Bus) -> Option<Cause> {
        let served = match self.fd.run() {
            Ok(VcpuExit::MmioRead(address, data)) => match &mut self.exits {
                Some(exits) if Exits::contains(address) => {
                    exits.read(address, data);
                    Ok(())
                }
                _ => bus.read(address, data),
            },
            Ok(VcpuExit::MmioWrite(address, data)) => bus.write(address, data),
            Ok(VcpuExit::SystemEvent(event, _)) => return Some(event_cause(event)),
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
            // A signal arrived, or KVM asks for another call.
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

/// Returns the cause that corresponds to KVM's event for a PSCI call that ends the machine.
fn event_cause(event: u32) -> Cause {
    match event {
        KVM_SYSTEM_EVENT_SHUTDOWN => Cause::Off,
        KVM_SYSTEM_EVENT_RESET => Cause::Reset,
        KVM_SYSTEM_EVENT_CRASH => Cause::Badly("the guest says that it crashed".into()),
        other => Cause::Badly(format!("system event {other}, which is not known here")),
    }
}
