// SPDX-License-Identifier: MIT OR Apache-2.0
//! Injects exceptions into the guest for actions that the guest is not allowed.

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
pub fn inject_undefined(cpu: &PerCpu) {
    enter_vector(cpu, inject::UNDEFINED_ESR);
}

/// Gives the guest the stage-2 abort `esr` as a synchronous external abort: for the guest, that address has neither
/// memory nor a device.
pub fn inject_abort(cpu: &PerCpu, esr: Esr) {
    dump::stop_if_revoked(cpu);
    let walk = abort::is_table_walk(esr).then(|| guest_walk_level().unwrap_or(0));
    FAR_EL1.set(FAR_EL2.get());
    let from_el0 = SPSR_EL2.get() & 0xf == 0;
    enter_vector(cpu, inject::external_abort_esr(esr, from_el0, walk));
}

/// Returns the level of the table that the guest's own walk could not read.
fn guest_walk_level() -> Option<u32> {
    let regime = walk::Regime {
        tcr: TCR_EL1.get(),
        ttbr: [TTBR0_EL1.get(), TTBR1_EL1.get()],
    };
    let ipa = abort::address(HPFAR_EL2.get(), 0);
    walk::level(&regime, FAR_EL2.get(), ipa, read_guest_ram)
}

/// Returns the doubleword of the guest's RAM at `ipa`.
fn read_guest_ram(ipa: u64) -> Option<u64> {
    let ram = vm().ram;
    let inside = ipa.is_multiple_of(8) && ram.contains(ipa) && ram.contains(ipa + 7);
    inside.then(|| {
        let place = (machine().guest.base + (ipa - RAM)) as *const core::sync::atomic::AtomicU64;
        // SAFETY: this is an aligned doubleword of the guest's RAM, which is mapped.
        unsafe { (*place).load(Relaxed) }
    })
}

/// Makes EL1 continue at its exception vector. If the instruction at that vector itself caused this exception, it
/// would do so for ever, and the guest would never reach its handler, so such a vCPU is stopped.
fn enter_vector(cpu: &PerCpu, syndrome: u64) {
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
        enter::turn_vcpu_off(cpu, End::Stopped);
    }
    ELR_EL1.set(pc);
    SPSR_EL1.set(spsr);
    ESR_EL1.set(syndrome);
    ELR_EL2.set(entry.pc);
    SPSR_EL2.set(entry.pstate);
}
