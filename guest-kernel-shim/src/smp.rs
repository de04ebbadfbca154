// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starting the other CPUs by PSCI.

use arch::insn;
use platform::{Platform, Region};
use spin::once::Once;

use crate::percpu::PerCpu;
use crate::{boot, clock, crew, hypervisor, output, percpu, start};

/// The description, for the CPUs that start.
static PLATFORM: Once<Platform<'static>> = Once::new();

/// Starts every CPU but this one and waits until each runs. One that does not
/// is reported and left out.
pub fn start_others(platform: &Platform<'static>) {
    PLATFORM.call_once(|| platform.clone());
    // What the others read before their caches are on.
    pages::clean(Region::from(arch::layout::data()));
    for cpu in percpu::all().iter().skip(1) {
        let context = core::ptr::from_ref::<PerCpu>(cpu) as u64;
        pages::clean(Region {
            base: context,
            size: size_of::<PerCpu>() as u64,
        });
        let status = hypervisor::cpu_on(cpu.mpidr, boot::secondary_entry(), context);
        if status != 0 || !arrived(cpu) {
            output::line(format_args!(
                "rouse: CPU {:#x}: not started (PSCI CPU_ON answers {status}); left out",
                cpu.mpidr
            ));
        }
    }
}

/// Waits up to a second for `cpu`.
fn arrived(cpu: &PerCpu) -> bool {
    let end = clock::now() + clock::frequency();
    while !cpu.is_online() {
        if clock::now() > end {
            return false;
        }
        insn::yield_now();
    }
    true
}

/// Runs on each other CPU, on its own stack, with MMU and caches on.
#[unsafe(no_mangle)]
extern "C" fn el1_start_secondary() -> ! {
    let platform = PLATFORM.get().expect("the first CPU noted the description");
    start::prepare(platform);
    crew::serve()
}
