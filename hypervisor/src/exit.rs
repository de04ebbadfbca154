// SPDX-License-Identifier: MIT OR Apache-2.0
//! The synchronous exits: which handler is whose.
//!
//! [`fast`] runs first, with x19 to x29 still in their registers; it handles
//! what is measured and answers [`Next::Full`] for the rest, before it has
//! changed anything.

use aarch64_cpu::registers::{
    ELR_EL1, ELR_EL2, ESR_EL1, ESR_EL2, FAR_EL1, FAR_EL2, Readable, SCTLR_EL1, SPSR_EL1, SPSR_EL2,
    VBAR_EL1, Writeable,
};
use abi::Counter;
use trap::esr::Esr;
use trap::sysreg::{ICC_ASGI1R_EL1, ICC_SGI0R_EL1, ICC_SGI1R_EL1, SystemRegister};
use trap::wfx::Wfx;
use trap::{esr, inject};

use crate::percpu::PerCpu;
use crate::trace::{Off, Trace, Traced};
use crate::vectors::{Frame, Next};
use crate::{hvc, mmio, sgi, wfx};

/// Registers that the fast frame holds: x0 to x18.
const FAST: u32 = 19;

/// The exit with x0 to x18 in `frame`.
pub extern "C" fn fast<T: Trace>(frame: &mut Frame) -> Next {
    let cpu = PerCpu::this();
    let esr = Esr(ESR_EL2.get());
    T::note(cpu, Traced::Synchronous, esr.0);
    match esr.class() {
        esr::SYSREG => {
            let access = SystemRegister::decode(esr.iss());
            if access.encoding != ICC_SGI1R_EL1 || access.read {
                return Next::Full;
            }
            let Some(value) = fast_value(frame, access.rt) else {
                return Next::Full;
            };
            sgi::send::<T>(cpu, value);
            skip();
        }
        esr::WFX => {
            let wait = Wfx::decode(esr.iss());
            let deadline = match wait.deadline_register {
                None => None,
                Some(register) => match fast_value(frame, register) {
                    None => return Next::Full,
                    deadline => deadline,
                },
            };
            wfx::exit::<T>(cpu, wait.kind, deadline);
            skip();
        }
        esr::HVC64 => {
            hvc::call(cpu, frame, Counter::Hvc);
        }
        _ => return Next::Full,
    }
    Next::Resume
}

/// The exit with the whole context in `frame`.
pub extern "C" fn full(frame: &mut Frame) {
    let cpu = PerCpu::this();
    let esr = Esr(ESR_EL2.get());
    match esr.class() {
        esr::SMC64 => {
            // First, because a call may not come back here; unlike after HVC,
            // ELR is the address of the trapped SMC itself.
            skip();
            hvc::call(cpu, frame, Counter::Smc);
        }
        esr::SYSREG => system_register(cpu, frame, SystemRegister::decode(esr.iss())),
        esr::WFX => {
            let wait = Wfx::decode(esr.iss());
            let deadline = wait
                .deadline_register
                .map(|register| value(frame, register));
            wfx::exit::<Off>(cpu, wait.kind, deadline);
            skip();
        }
        esr::DATA_ABORT_LOWER => mmio::exit(cpu, frame, esr),
        esr::INST_ABORT_LOWER => {
            cpu.vcpu.counters.add(Counter::Other);
            inject_abort(esr);
        }
        _ => {
            cpu.vcpu.counters.add(Counter::Other);
            inject_undefined();
        }
    }
}

fn system_register(cpu: &PerCpu, frame: &mut Frame, access: SystemRegister) {
    match access.encoding {
        ICC_SGI1R_EL1 if !access.read => sgi::send::<Off>(cpu, value(frame, access.rt)),
        // Group 0 and secure Group 1 SGIs: this guest has neither, and a write
        // that selects nobody is ignored (IHI 0069H, 12.2.19 and 12.2.1).
        ICC_SGI0R_EL1 | ICC_ASGI1R_EL1 if !access.read => {
            cpu.vcpu.counters.add(Counter::Sysreg);
        }
        _ => {
            cpu.vcpu.counters.add(Counter::Sysreg);
            inject_undefined();
            return;
        }
    }
    skip();
}

/// Steps over the trapped instruction.
#[inline(always)]
pub fn skip() {
    ELR_EL2.set(ELR_EL2.get() + 4);
}

/// The value of general register `register`, 31 being zero, if the fast frame has it.
#[inline(always)]
fn fast_value(frame: &Frame, register: u32) -> Option<u64> {
    match register {
        0..FAST => Some(frame.x[register as usize]),
        31 => Some(0),
        _ => None,
    }
}

/// The value of general register `register`, 31 being zero.
pub fn value(frame: &Frame, register: u32) -> u64 {
    frame.x.get(register as usize).copied().unwrap_or(0)
}

/// Gives the guest an Undefined Instruction exception for what it just executed.
pub fn inject_undefined() {
    inject(inject::UNDEFINED_ESR);
}

/// Gives the guest the stage-2 abort `esr` as a synchronous external abort: for
/// it nothing is at that address.
pub fn inject_abort(esr: Esr) {
    FAR_EL1.set(FAR_EL2.get());
    let from_el0 = SPSR_EL2.get() & 0xf == 0;
    inject(inject::external_abort_esr(esr, from_el0));
}

fn inject(syndrome: u64) {
    let spsr = SPSR_EL2.get();
    let entry = inject::exception_entry(spsr, VBAR_EL1.get(), SCTLR_EL1.get());
    ELR_EL1.set(ELR_EL2.get());
    SPSR_EL1.set(spsr);
    ESR_EL1.set(syndrome);
    ELR_EL2.set(entry.pc);
    SPSR_EL2.set(entry.pstate);
}
