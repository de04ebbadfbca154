// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles exits caused by stage-2 data aborts: emulates accesses to devices.

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{ELR_EL2, FAR_EL2, HPFAR_EL2, Readable, Writeable};
use abi::Counter;
use arch::frame::Frame;
use trap::abort::{self, Access};
use trap::esr::{Esr, IL};
use trap::transfer::Transfer;
use vgic::Redistributor;

use crate::console::guest_uart;
use crate::cpu::pending_word;
use crate::cpu::percpu::PerCpu;
use crate::exits::{inject, instruction, page, registers};
use crate::interrupts::{kick, version2, vgic_cpu};
use crate::machine::vm::{DISTRIBUTOR, EXITS, INTERFACE, REDISTRIBUTOR_SIZE, UART, vm};
use crate::say;

pub fn handle_exit<const VERSION2: bool>(cpu: &PerCpu, frame: &mut Frame, esr: Esr) {
    cpu.vcpu.counters.add(Counter::Mmio);
    let address = abort::address(HPFAR_EL2.get(), FAR_EL2.get());
    if VERSION2 && version2::opens_interface(cpu, address) {
        return;
    }
    let done = match Access::decode(esr) {
        Some(access) => {
            emulate_described::<VERSION2>(cpu, frame, address, access).ok_or(Refusal::Nothing)
        }
        None => decode_access::<VERSION2>(cpu, frame, address, esr),
    };
    match done {
        Ok(()) => skip_access(esr),
        Err(why) => report_refusal(cpu, why, address, esr),
    }
}

/// Emulates an access between the distributor of a GICv3 and a register in the fast frame. Returns `false`, before
/// it changes anything, if the abort is not such an access.
#[inline(always)]
pub fn access_distributor(cpu: &PerCpu, frame: &mut Frame, esr: Esr) -> bool {
    let address = abort::address(HPFAR_EL2.get(), FAR_EL2.get());
    let access = Access::decode(esr).filter(|access| registers::is_fast(access.register));
    let Some(access) = access.filter(|_| DISTRIBUTOR.contains(address)) else {
        return false;
    };
    cpu.vcpu.counters.add(Counter::Mmio);
    let emulate = |write| {
        let (offset, size) = (address - DISTRIBUTOR.base, access.size);
        let access = vgic::Access {
            offset,
            size,
            write,
        };
        emulate_distributor(cpu, access)
    };
    if access.write {
        let value = registers::general_register(frame, access.register);
        emulate(Some(access.stored(value)));
    } else {
        let value = access.loaded(emulate(None));
        if let Some(register) = frame.x.get_mut(access.register as usize) {
            *register = value;
        }
    }
    skip_access(esr);
    true
}

/// Makes the guest continue after the instruction that made the access. A guest's EL0 may be in AArch32,
/// where an instruction can have 16 bits (IL is 0).
#[inline(always)]
fn skip_access(esr: Esr) {
    ELR_EL2.set(ELR_EL2.get() + 2 + (esr.0 & IL) / (IL / 2));
}

/// Emulates an access that the syndrome describes; `None` if there is no device.
#[inline(always)]
fn emulate_described<const VERSION2: bool>(
    cpu: &PerCpu,
    frame: &mut Frame,
    address: u64,
    access: Access,
) -> Option<()> {
    let value = access
        .write
        .then(|| registers::general_register(frame, access.register));
    let value = value.map(|value| access.stored(value));
    let raw = emulate_access::<VERSION2>(cpu, frame, address, access.size, value)?;
    if let (false, Some(register)) = (access.write, frame.x.get_mut(access.register as usize)) {
        *register = access.loaded(raw);
    }
    Some(())
}

/// Emulates an access that only its instruction describes, not the syndrome.
#[cold]
#[inline(never)]
fn decode_access<const VERSION2: bool>(
    cpu: &PerCpu,
    frame: &mut Frame,
    address: u64,
    esr: Esr,
) -> Result<(), Refusal> {
    if !abort::is_translation_fault(esr) {
        return Err(Refusal::Fault);
    }
    if !has_device::<VERSION2>(address) {
        return Err(Refusal::Nothing);
    }
    if abort::is_table_walk(esr) {
        return Err(Refusal::Walk);
    }
    // No cache holds a device's data, so maintenance has nothing to do.
    if abort::is_maintenance(esr) {
        return Ok(());
    }
    let instruction = instruction::fetch_instruction();
    let undecoded = Refusal::Undecoded(instruction);
    let done = instruction.and_then(Transfer::decode).ok_or(undecoded)?;
    let base = registers::base_register(frame, done.base);
    if !done.fits(FAR_EL2.get(), abort::is_write(esr), base) {
        return Err(undecoded);
    }
    for (behind, access) in done.accesses() {
        emulate_described::<VERSION2>(cpu, frame, address + behind, access)
            .ok_or(Refusal::Nothing)?;
    }
    if done.write_back != 0 {
        registers::set_base_register(frame, done.base, base.wrapping_add_signed(done.write_back));
    }
    Ok(())
}

/// Why an access is not emulated.
#[derive(Clone, Copy)]
enum Refusal {
    Nothing,
    /// The abort is not a translation fault; only a translation fault reports a usable address.
    Fault,
    /// The guest's own table walk read from a device.
    Walk,
    /// The access's instruction, if it can be read, is not one that EL2 decodes.
    Undecoded(Option<u32>),
}

impl Refusal {
    fn print(self, cpu: &PerCpu, address: u64, esr: Esr, more: &str) {
        let (mpidr, esr, pc) = (cpu.mpidr, esr.0, ELR_EL2.get());
        let end = format_args!("it gets an external abort{more}");
        match self {
            Self::Nothing => {
                say!("guest on CPU {mpidr:#x}: nothing at IPA {address:#x} (ESR {esr:#x}); {end}");
            }
            Self::Fault => say!(
                "guest on CPU {mpidr:#x}: an access to VA {:#x} that may not be (ESR {esr:#x}); {end}",
                FAR_EL2.get()
            ),
            Self::Walk => say!(
                "guest on CPU {mpidr:#x}: its translation table is in the device at IPA {address:#x} (ESR {esr:#x}); {end}"
            ),
            Self::Undecoded(Some(instruction)) => say!(
                "guest on CPU {mpidr:#x}: an access to the device at IPA {address:#x} that can't be decoded: instruction \
                 {instruction:#010x} at {pc:#x} (ESR {esr:#x}); {end}"
            ),
            Self::Undecoded(None) => say!(
                "guest on CPU {mpidr:#x}: an access to the device at IPA {address:#x} that can't be decoded: its \
                 instruction at {pc:#x} can't be read (ESR {esr:#x}); {end}"
            ),
        }
    }
}

/// Number of refused accesses to print for each vCPU; a guest that makes more of them must not flood the
/// console.
const SHOWN: u64 = 8;

/// Reports that an access is not emulated: to the guest, and the first few times also on the console.
fn report_refusal(cpu: &PerCpu, why: Refusal, address: u64, esr: Esr) {
    let before = cpu.vcpu.refused.load(Relaxed);
    cpu.vcpu.refused.store(before + 1, Relaxed);
    if before < SHOWN {
        let last = before + 1 == SHOWN;
        let more = if last {
            "; more of them are not shown"
        } else {
            ""
        };
        why.print(cpu, address, esr, more);
    }
    inject::inject_abort(cpu, esr);
}

/// Whether there is a device at `address`.
fn has_device<const VERSION2: bool>(address: u64) -> bool {
    let devices = [DISTRIBUTOR, vm().redistributors, UART, EXITS];
    devices.iter().any(|device| device.contains(address)) || VERSION2 && INTERFACE.contains(address)
}

/// Emulates an access to the device at `address`; returns the value of a read, or `None` if there is no device. The
/// function is inlined into its two callers, so that the cold caller does not slow down the hot one.
#[inline(always)]
fn emulate_access<const VERSION2: bool>(
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
    if VERSION2 && !UART.contains(address) && !EXITS.contains(address) {
        return version2::emulate_access(cpu, address, size, write);
    }
    if DISTRIBUTOR.contains(address) {
        return Some(emulate_distributor(cpu, access(DISTRIBUTOR.base)));
    }
    let redistributors = vm().redistributors;
    if redistributors.contains(address) {
        let number = ((address - redistributors.base) / REDISTRIBUTOR_SIZE) as usize;
        let base = redistributors.base + number as u64 * REDISTRIBUTOR_SIZE;
        Some(access_redistributor(cpu, number, access(base)))
    } else if UART.contains(address) {
        Some(guest_uart::access_register(address - UART.base, write))
    } else if EXITS.contains(address) {
        Some(page::serve_access(cpu, frame, access(EXITS.base)))
    } else {
        None
    }
}

/// Whether `offset` is in GICx_ISPENDR to GICx_ICACTIVER (0x200 to 0x3ff): their values depend on the
/// contents of list registers.
const fn is_state(offset: u64) -> bool {
    offset & !0x1ff == 0x200
}
/// GICR_ISENABLER0, in the second frame.
const ISENABLER0: u64 = 0x100;

#[inline(always)]
fn emulate_distributor(cpu: &PerCpu, access: vgic::Access) -> u64 {
    if is_state(access.offset) {
        vgic_cpu::publish_states(cpu);
    }
    let (value, changed) = vm().distributor.lock().access(access);
    if changed {
        update_all_vcpus();
    }
    value
}

/// Makes every vCPU evaluate the registers of the distributor again.
#[inline(never)]
fn update_all_vcpus() {
    for cpu in vm().cpus {
        kick::send_requests(cpu, pending_word::EVALUATE);
    }
}

fn access_redistributor(cpu: &PerCpu, number: usize, access: vgic::Access) -> u64 {
    let owner = vm().cpus[number];
    /// The second frame.
    const SGI_FRAME: u64 = 0x1_0000;
    let state = access.offset.checked_sub(SGI_FRAME);
    let reads = state.is_some_and(is_state);
    if reads && core::ptr::eq(owner, cpu) {
        vgic_cpu::publish_states(cpu);
    }
    let frames = Redistributor {
        private: &owner.vcpu.private,
        affinity: owner.mpidr,
        number,
        last: number + 1 == vm().cpus.len(),
        lines: if reads { vgic_cpu::high_ppis(owner) } else { 0 },
    };
    let (value, changed) = match (state, access.write) {
        (Some(ISENABLER0), Some(bits)) => vgic_cpu::enable_sgis(bits as u32, |bits| {
            let write = Some(bits.into());
            frames.access(vgic::Access { write, ..access })
        }),
        _ => frames.access(access),
    };
    if changed {
        kick::send_requests(owner, pending_word::EVALUATE);
    }
    value
}
