// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stops the machine when an invariant does not hold, and prints each CPU's last actions.

use core::fmt;
use core::sync::atomic::Ordering::{AcqRel, Acquire};
use core::sync::atomic::{AtomicBool, AtomicU64};

use abi::{OperationLog, audit as mode};
use platform::MAX_CPUS;

use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{clock, hypervisor, output};

/// The invariant that does not hold, by its name on the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A wake-up or an interrupt did not arrive.
    Loss,
    /// A list register, or the hypervisor's state for it, was left in use.
    ListRegister,
    /// A CPU took an interrupt that nobody sent, or took an interrupt twice.
    Delivery,
    /// A mask, an enable or a priority has changed.
    Mask,
    /// A value that may only grow has decreased.
    Monotony,
    /// Something was left that should have been used up.
    Leak,
    /// The platform gave a forbidden answer.
    Answer,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loss => "lost",
            Self::ListRegister => "stuck list register",
            Self::Delivery => "double delivery",
            Self::Mask => "unbalanced mask",
            Self::Monotony => "going back",
            Self::Leak => "leak",
            Self::Answer => "wrong answer",
        })
    }
}

/// The last operations of each CPU.
pub static LOGS: [OperationLog; MAX_CPUS] = [const { OperationLog::new() }; MAX_CPUS];

/// The seed of the run, with which the run can be repeated.
pub static SEED: AtomicU64 = AtomicU64::new(0);

/// Records that `cpu` begins an operation.
pub fn log_operation(cpu: &PerCpu, name: &str, step: u64, data: u64) {
    LOGS[cpu.index].note(clock::now(), name, step, data);
}

/// Stops the machine because of `why`.
pub fn stop_machine(kind: Kind, why: fmt::Arguments<'_>) -> ! {
    static FAILED: AtomicBool = AtomicBool::new(false);
    let cpu = PerCpu::this();
    arch::insn::mask_all();
    if !FAILED.swap(true, AcqRel) {
        let seed = SEED.load(Acquire);
        output::print_unlocked(format_args!(
            "rouse: panic: EL1 on CPU {:#x}: soak, seed {seed}: {kind}: {why}",
            cpu.mpidr
        ));
        if kind == Kind::ListRegister && hypervisor::audit_el2(mode::RUNNING_TOLD) {
            hypervisor::audit_el2(mode::QUIET_TOLD);
        }
        hypervisor::dump_and_end(1);
    }
    loop {
        arch::insn::wfi();
    }
}
