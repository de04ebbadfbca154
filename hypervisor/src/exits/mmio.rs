// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exit by stage-2 data abort: the devices that are emulated.

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{ELR_EL2, FAR_EL2, HPFAR_EL2, Readable, Writeable};
use abi::Counter;
use arch::frame::Frame;
use trap::abort::{self, Access};
use trap::esr::{Esr, IL};
use vgic::Redistributor;

use crate::console::guest_uart::GuestUart;
use crate::cpu::pending_word;
use crate::cpu::percpu::PerCpu;
use crate::exits::{inject, page, registers};
use crate::interrupts::{kick, vgic_cpu};
use crate::machine::vm::{DISTRIBUTOR, EXITS, REDISTRIBUTOR_SIZE, UART, vm};
use crate::say;

pub fn exit(cpu: &PerCpu, frame: &mut Frame, esr: Esr) {
    cpu.vcpu.counters.add(Counter::Mmio);
    let address = abort::address(HPFAR_EL2.get(), FAR_EL2.get());
    let described = abort::is_translation_fault(esr).then(|| Access::decode(esr));
    let done = described.flatten().and_then(|access| {
        let value = access
            .write
            .then(|| registers::value(frame, access.register));
        let value = value.map(|value| access.stored(value));
        let raw = emulate(cpu, frame, address, access.size, value)?;
        if let (false, Some(register)) = (access.write, frame.x.get_mut(access.register as usize)) {
            *register = access.loaded(raw);
        }
        Some(())
    });
    match done {
        // A guest's EL0 may be in AArch32, where instructions can be short (IL).
        Some(()) => ELR_EL2.set(ELR_EL2.get() + if esr.0 & IL != 0 { 4 } else { 2 }),
        None => refuse(cpu, address, esr),
    }
}

/// Refused accesses that are shown for each vCPU; a guest that goes on like that
/// should not have the console for itself.
const SHOWN: u64 = 8;

/// Tells the guest, and at first the console, that nothing is there.
fn refuse(cpu: &PerCpu, address: u64, esr: Esr) {
    let before = cpu.vcpu.refused.load(Relaxed);
    cpu.vcpu.refused.store(before + 1, Relaxed);
    if before < SHOWN {
        say!(
            "guest on CPU {:#x}: nothing at IPA {address:#x} (ESR {:#x}); it gets an external abort{}",
            cpu.mpidr,
            esr.0,
            if before + 1 == SHOWN {
                "; more of them are not shown"
            } else {
                ""
            }
        );
    }
    inject::abort(cpu, esr);
}

/// Does an access of `size` bytes at `address`; what a read gives, `None` where
/// no device is.
fn emulate(
    cpu: &PerCpu,
    frame: &Frame,
    address: u64,
    size: u32,
    write: Option<u64>,
) -> Option<u64> {
    let access = |base: u64| vgic::Access {
        offset: address - base,
        size,
        write,
    };
    if DISTRIBUTOR.contains(address) {
        return Some(distributor(cpu, access(DISTRIBUTOR.base)));
    }
    let redistributors = vm().redistributors;
    if redistributors.contains(address) {
        let number = ((address - redistributors.base) / REDISTRIBUTOR_SIZE) as usize;
        let base = redistributors.base + number as u64 * REDISTRIBUTOR_SIZE;
        Some(redistributor(cpu, number, access(base)))
    } else if UART.contains(address) {
        let offset = address - UART.base;
        // SAFETY: this CPU's own; `write` does not come here again.
        unsafe {
            cpu.vcpu.console.with(|console| match write {
                None => Some(GuestUart::read(offset)),
                Some(value) => {
                    console.write(offset, value);
                    Some(0)
                }
            })
        }
    } else if EXITS.contains(address) {
        Some(page::access(cpu, frame, access(EXITS.base)))
    } else {
        None
    }
}

/// GICx_ISPENDR to GICx_ICACTIVER: what is read there depends on what is in list
/// registers.
const STATES: core::ops::Range<u64> = 0x200..0x400;

fn distributor(cpu: &PerCpu, access: vgic::Access) -> u64 {
    if STATES.contains(&access.offset) {
        vgic_cpu::publish(cpu);
    }
    let (value, changed) = vm().distributor.lock().access(access);
    if changed {
        for cpu in vm().cpus {
            kick::send(cpu, pending_word::EVALUATE);
        }
    }
    value
}

fn redistributor(cpu: &PerCpu, number: usize, access: vgic::Access) -> u64 {
    let owner = vm().cpus[number];
    /// The second frame.
    const SGI_FRAME: u64 = 0x1_0000;
    let state = access.offset.checked_sub(SGI_FRAME);
    let reads = state.is_some_and(|offset| STATES.contains(&offset));
    if reads && core::ptr::eq(owner, cpu) {
        vgic_cpu::publish(cpu);
    }
    let frames = Redistributor {
        private: &owner.vcpu.private,
        affinity: owner.mpidr,
        number,
        last: number + 1 == vm().cpus.len(),
        lines: if reads { vgic_cpu::lines(owner) } else { 0 },
    };
    let (value, changed) = frames.access(access);
    if changed {
        kick::send(owner, pending_word::EVALUATE);
    }
    value
}
