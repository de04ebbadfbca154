// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions that EL2 gives the guest for forbidden actions.

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{
    ELR_EL1, ELR_EL2, ESR_EL1, FAR_EL1, FAR_EL2, HPFAR_EL2, Readable, SCTLR_EL1, SPSR_EL1,
    SPSR_EL2, TCR_EL1, TTBR0_EL1, TTBR1_EL1, VBAR_EL1, Writeable,
};
use abi::End;
use trap::esr::Esr;
use trap::{abort, inject, walk};

use crate::cpu::percpu::PerCpu;
use crate::dumps::dump;
use crate::exits::enter;
use crate::machine::machine;
use crate::machine::vm::{RAM, vm};
use crate::say;

/// Gives the guest an Undefined Instruction exception for the instruction that it just executed.
pub fn undefined(cpu: &PerCpu) {
    give(cpu, inject::UNDEFINED_ESR);
}

/// Gives the guest the stage-2 abort `esr` as a synchronous external abort: for the guest, there is
/// nothing at that address.
pub fn abort(cpu: &PerCpu, esr: Esr) {
    dump::stop_if_revoked(cpu);
    let walk = abort::is_table_walk(esr).then(|| level().unwrap_or(0));
    FAR_EL1.set(FAR_EL2.get());
    let from_el0 = SPSR_EL2.get() & 0xf == 0;
    give(cpu, inject::external_abort_esr(esr, from_el0, walk));
}

/// The level of the guest's own table that its walk could not read.
fn level() -> Option<u32> {
    let regime = walk::Regime {
        tcr: TCR_EL1.get(),
        ttbr: [TTBR0_EL1.get(), TTBR1_EL1.get()],
    };
    let ipa = abort::address(HPFAR_EL2.get(), 0);
    walk::level(&regime, FAR_EL2.get(), ipa, read)
}

/// The doubleword of the guest's RAM at `ipa`.
fn read(ipa: u64) -> Option<u64> {
    let ram = vm().ram;
    let inside = ipa.is_multiple_of(8) && ram.contains(ipa) && ram.contains(ipa + 7);
    inside.then(|| {
        let place = (machine().guest.base + (ipa - RAM)) as *const core::sync::atomic::AtomicU64;
        // SAFETY: an aligned doubleword of the guest's RAM, which is mapped.
        unsafe { (*place).load(Relaxed) }
    })
}

/// Lets EL1 continue at its vector. A vector that itself faults would do so for ever and never
/// reach its handler, so such a vCPU is stopped.
fn give(cpu: &PerCpu, syndrome: u64) {
    let (pc, spsr) = (ELR_EL2.get(), SPSR_EL2.get());
    let entry = inject::exception_entry(spsr, VBAR_EL1.get(), SCTLR_EL1.get());
    if entry.pc == pc {
        say!(
            "guest on CPU {:#x}: its exception vector at {pc:#x} faults itself (ESR {syndrome:#x}, \
             before that ESR {:#x} at {:#x}); its vCPU is stopped",
            cpu.mpidr,
            ESR_EL1.get(),
            ELR_EL1.get()
        );
        enter::turn_off(cpu, End::Stopped);
    }
    ELR_EL1.set(pc);
    SPSR_EL1.set(spsr);
    ESR_EL1.set(syndrome);
    ELR_EL2.set(entry.pc);
    SPSR_EL2.set(entry.pstate);
}
