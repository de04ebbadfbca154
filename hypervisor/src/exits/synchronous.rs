// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles the synchronous exits: calls the handler of each.
//!
//! [`fast`] runs first, while x19 to x29 are still in their registers. [`fast`] handles the measured exits. For every
//! other exit, it returns [`Next::Full`], before it changes anything. SMCs and accesses to the distributor need no more
//! registers either: the vectors without time stamps call [`serve_smc`] and [`access_distributor`] directly.

use aarch64_cpu::registers::{ESR_EL2, Readable};
use abi::Counter;
use arch::frame::Frame;
use trap::esr;
use trap::esr::Esr;
use trap::sysreg::{ICC_SGI1R_EL1, SystemRegister};
use trap::wfx::Wfx;

use crate::cpu::percpu::PerCpu;
use crate::cpu::trace::{Off, Shared, Trace, Traced};
use crate::exits::registers::{fast_register, general_register, skip_instruction};
use crate::exits::{hvc, inject, mmio, sgi, sysreg, wfx};

/// The next step of the stub in assembly, after a handler.
#[repr(u64)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Return to the guest.
    Resume = 0,
    /// Complete the frame and call the handler that needs the full context.
    Full = 1,
}

/// Handles an exit with x0 to x18 in `frame`.
pub extern "C" fn fast<T: Trace>(frame: &mut Frame) -> Next {
    let cpu = PerCpu::this();
    let esr = Esr(ESR_EL2.get());
    T::note_event(cpu, Traced::Synchronous, esr.0);
    match esr.class() {
        esr::SYSREG => {
            let access = SystemRegister::decode(esr.iss());
            if access.encoding != ICC_SGI1R_EL1 || access.read {
                return Next::Full;
            }
            let Some(value) = fast_register(frame, access.rt) else {
                return Next::Full;
            };
            sgi::send_sgi::<T>(cpu, value);
            skip_instruction();
        }
        esr::WFX => {
            let wait = Wfx::decode(esr.iss());
            let deadline = match wait.deadline_register {
                None => None,
                Some(register) => match fast_register(frame, register) {
                    None => return Next::Full,
                    deadline => deadline,
                },
            };
            wfx::handle_exit::<T>(cpu, wait.kind, deadline);
            skip_instruction();
        }
        esr::HVC64 => {
            hvc::serve_call(cpu, frame, Counter::Hvc);
        }
        _ => return Next::Full,
    }
    Next::Resume
}

/// Handles an SMC with x0 to x18 in `frame`; a call uses no other registers (DEN0028F, 2.6).
pub extern "C" fn serve_smc(frame: &mut Frame) {
    // The SMC is stepped over first, because a call may not return here. ELR_EL2 is the
    // address of the trapped SMC itself, unlike after an HVC.
    skip_instruction();
    hvc::serve_call(PerCpu::this(), frame, Counter::Smc);
}

/// Handles a data abort with x0 to x18 in `frame`, on a machine with a GICv3: an access to the distributor.
pub extern "C" fn access_distributor(frame: &mut Frame) -> Next {
    match mmio::access_distributor(PerCpu::this(), frame, Esr(ESR_EL2.get())) {
        true => Next::Resume,
        false => Next::Full,
    }
}

/// Like [`full`], on a machine with a GICv2.
pub extern "C" fn full_version2(frame: &mut Frame) {
    let esr = Esr(ESR_EL2.get());
    match esr.class() {
        esr::DATA_ABORT_LOWER => mmio::handle_exit::<true>(PerCpu::this(), frame, esr),
        _ => full(frame),
    }
}

/// Handles an exit with the whole context in `frame`.
pub extern "C" fn full(frame: &mut Frame) {
    let cpu = PerCpu::this();
    let esr = Esr(ESR_EL2.get());
    match esr.class() {
        esr::SMC64 => serve_smc(frame),
        esr::SYSREG => {
            let access = SystemRegister::decode(esr.iss());
            if access.encoding == ICC_SGI1R_EL1 && !access.read {
                sgi::send_sgi::<Off>(cpu, general_register(frame, access.rt));
                skip_instruction();
            } else {
                sysreg::handle_exit(cpu, frame, access);
            }
        }
        esr::WFX => {
            let wait = Wfx::decode(esr.iss());
            let deadline = wait
                .deadline_register
                .map(|register| general_register(frame, register));
            wfx::handle_exit::<Shared>(cpu, wait.kind, deadline);
            skip_instruction();
        }
        esr::DATA_ABORT_LOWER => mmio::handle_exit::<false>(cpu, frame, esr),
        esr::INST_ABORT_LOWER => {
            cpu.vcpu.counters.add(Counter::Other);
            inject::inject_abort(cpu, esr);
        }
        _ => {
            cpu.vcpu.counters.add(Counter::Other);
            inject::inject_undefined(cpu);
        }
    }
}
