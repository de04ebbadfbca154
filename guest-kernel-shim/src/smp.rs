// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts the other CPUs, through PSCI or by releasing CPUs that the loader let into the image.

use plan::{Atomics, SkipReason};
use platform::{Enable, Region};

use pages::PAGE;

use crate::boot::EL1_RELEASE;
use crate::machine::platform;
use crate::percpu::PerCpu;

use crate::{
    atomics, boot, clock, hypervisor, interrupts, memory, output, percpu, pmu, vectors, workers,
};

/// Starts every CPU except this one, and waits until each runs. A CPU that does not come up is reported
/// and left out.
pub fn start_others() {
    // The other CPUs read this data before their caches are on.
    memory::data_regions().into_iter().for_each(pages::clean);
    for cpu in percpu::all().iter().skip(1) {
        // A CPU that starts at EL2 uses its stack with its caches off. If this CPU's cache wrote a line of that stack
        // back later, it would overwrite the stack.
        pages::clean(Region {
            base: cpu.stack_top - PAGE,
            size: PAGE,
        });
        let status = start_cpu(cpu);
        if !cpu.is_online() && !atomics::all_cpus_have_lse() && atomics::OWN == Atomics::Lse {
            let (mpidr, why) = (cpu.mpidr, SkipReason::NoLse);
            output::print(format_args!("rouse: CPU {mpidr:#x}: {why}; left out"));
        } else if !cpu.is_online() {
            output::print(format_args!(
                "rouse: CPU {:#x}: not started (PSCI CPU_ON answers {status}); left out",
                cpu.mpidr
            ));
        }
    }
}

/// Starts `cpu` and waits until it runs; returns the status of PSCI.
pub fn start_cpu(cpu: &'static PerCpu) -> i64 {
    let status = turn_cpu_on(cpu);
    if status == 0 {
        clock::wait_for(|| cpu.is_online());
    }
    status
}

/// Starts `cpu` without waiting; returns the status of PSCI.
pub fn turn_cpu_on(cpu: &'static PerCpu) -> i64 {
    let context = core::ptr::from_ref(cpu) as u64;
    pages::clean(Region {
        base: context,
        size: size_of::<PerCpu>() as u64,
    });
    match platform().cpus[cpu.index].enable {
        Enable::Held => {
            EL1_RELEASE.let_go(cpu.mpidr, context);
            0
        }
        Enable::SpinTable(address) => {
            let held = boot::held_entry();
            // SAFETY: by the description, this doubleword of RAM is the CPU's release address; `start` has mapped it.
            unsafe { EL1_RELEASE.let_go_from_table(address, held, cpu.mpidr, context) };
            0
        }
        Enable::Psci => hypervisor::cpu_on(cpu.mpidr, boot::secondary_entry(), context),
    }
}

/// Runs on each other CPU, on its own stack, with MMU and caches on.
#[inline(always)]
pub fn run_other_cpu() -> ! {
    while !atomics::fits_cpu() {
        arch::insn::wfi();
    }
    prepare_cpu();
    workers::serve_jobs()
}

/// Sets up the state of each CPU, and enables interrupts.
pub fn prepare_cpu() {
    let cpu = PerCpu::this();
    // SAFETY: the description is true and its devices are mapped.
    unsafe { interrupts::enable_interrupts(cpu, platform()) };
    // The start code has not chosen the vectors, because it does not know the version of the GIC.
    vectors::set_tracing(false);
    pmu::start_counters();
    cpu.set_online();
    arch::insn::unmask_irq();
}
