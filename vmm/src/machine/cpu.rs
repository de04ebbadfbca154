// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU: entered again and again, until something ends it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use kvm_bindings::{KVM_SYSTEM_EVENT_CRASH, KVM_SYSTEM_EVENT_RESET, KVM_SYSTEM_EVENT_SHUTDOWN};
use kvm_ioctls::{VcpuExit, VcpuFd};
use vmm_sys_util::errno;
use vmm_sys_util::signal::{SIGRTMIN, register_signal_handler};

use super::bus::Bus;
use super::exits::Exits;
use super::registers;

/// A vCPU that KVM has.
#[derive(Debug)]
pub struct Cpu {
    /// Its number.
    pub index: usize,
    /// It.
    pub fd: VcpuFd,
    /// Its numbers of exits, where KVM counts them.
    pub exits: Option<Exits>,
}

/// Why a vCPU is not entered any more.
#[derive(Debug)]
pub enum Cause {
    /// The guest turned its machine off.
    Off,
    /// The guest reset it.
    Reset,
    /// It was asked to stop.
    Stopped,
    /// For this reason.
    Badly(String),
}

/// How a vCPU was left.
#[derive(Debug)]
pub struct Left {
    /// Its number.
    pub index: usize,
    /// Why.
    pub cause: Cause,
    /// Its registers, for people.
    pub registers: String,
}

/// The signal that makes a vCPU leave the guest.
pub fn signal() -> i32 {
    SIGRTMIN()
}

/// Lets that signal come; it does nothing else.
pub fn prepare() -> Result<(), errno::Error> {
    extern "C" fn nothing(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}
    register_signal_handler(signal(), nothing)
}

impl Cpu {
    /// Runs the guest until something ends it, or until `stop` and a signal.
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

    /// Runs the guest until its next exit. Returns the cause of the end, if it ended.
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
            // A signal came, or KVM asks to be called again.
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

/// Returns the cause of the end for a call of PSCI that ends the machine.
fn system(event: u32) -> Cause {
    match event {
        KVM_SYSTEM_EVENT_SHUTDOWN => Cause::Off,
        KVM_SYSTEM_EVENT_RESET => Cause::Reset,
        KVM_SYSTEM_EVENT_CRASH => Cause::Badly("the guest says that it crashed".into()),
        other => Cause::Badly(format!("system event {other}, which is not known here")),
    }
}
