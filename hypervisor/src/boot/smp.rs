// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts each other CPU by the method that the description names for that CPU.

use aarch64_cpu::registers::{CNTFRQ_EL0, CNTPCT_EL0, MPIDR_EL1, Readable};
use arch::insn;
use platform::{AFFINITY, Enable, Region};

use crate::boot::entry::{self, EL2_RELEASE};
use crate::cpu::percpu::PerCpu;
use crate::machine::Machine;
use crate::machine::power::call_psci;
use crate::{planted, say, stage};

/// The PSCI function CPU_ON (DEN0022F.b, 5.1.4).
const CPU_ON: u64 = 0xc400_0003;

/// Starts every CPU but this one and waits until each has arrived. A CPU that does not arrive is
/// reported and left out.
pub fn start_others(machine: &Machine) {
    let me = MPIDR_EL1.get() & AFFINITY;
    for (cpu, state) in machine.platform.cpus.iter().zip(machine.cpus) {
        if cpu.mpidr != me {
            start_cpu(machine, cpu.enable, state);
        }
    }
    let online = machine.cpus.iter().filter(|cpu| cpu.is_online()).count();
    stage!("smp", "{online} of {} CPUs", machine.cpus.len());
}

fn start_cpu(machine: &Machine, enable: Enable, state: &'static PerCpu) {
    pages::clean(Region {
        base: core::ptr::from_ref(state) as u64,
        size: size_of::<PerCpu>() as u64,
    });
    let per_cpu = core::ptr::from_ref(state) as u64;
    match (enable, machine.platform.psci) {
        (Enable::Psci, Some(conduit)) => {
            let entry = planted::secondary_entry().unwrap_or_else(entry::secondary_entry);
            let status = call_psci(conduit, CPU_ON, state.mpidr, entry, per_cpu);
            if status != 0 {
                say!(
                    "CPU {:#x}: PSCI CPU_ON answers {status}; left out",
                    state.mpidr
                );
                return;
            }
        }
        (Enable::Psci, None) => {
            say!(
                "CPU {:#x}: wants PSCI and there is none; left out",
                state.mpidr
            );
            return;
        }
        (Enable::SpinTable(address), _) => {
            let held = entry::held_cpu_entry();
            // SAFETY: the description says that this doubleword of RAM is the CPU's release
            // address, which the CPU that starts it may write.
            unsafe { EL2_RELEASE.let_go_from_table(address, held, state.mpidr, per_cpu) };
        }
        (Enable::Held, _) => EL2_RELEASE.let_go(state.mpidr, per_cpu),
    }
    if !wait_for_cpu(state) {
        say!(
            "CPU {:#x}: started and did not arrive within 1 s; left out",
            state.mpidr
        );
    }
}

/// Waits up to a second, by the physical counter, for the CPU of `state`; returns whether it arrived.
fn wait_for_cpu(state: &PerCpu) -> bool {
    let end = CNTPCT_EL0.get() + CNTFRQ_EL0.get();
    while !state.is_online() {
        if CNTPCT_EL0.get() > end {
            return false;
        }
        insn::yield_now();
    }
    true
}
