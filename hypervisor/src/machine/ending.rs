// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a guest ends the machine: with an exit status, through PSCI, or by turning its last CPU off.
//! The console's last line reports which.

use abi::{End, Ended};

use crate::console::line::Line;
use crate::console::log;
use crate::cpu::percpu::PerCpu;
use crate::machine::power;
use crate::machine::vm::vm;
use crate::say;

/// Exit status of a machine whose guest can't go on.
pub const STATUS_LOST: u64 = 72;

/// Ends the machine for the guest, with its exit status.
pub fn exit(status: u64) -> ! {
    flush();
    say!("exit status {status}");
    power::stop()
}

/// Ends the machine as the guest has requested, or caused, on `cpu`. The machine is reset if the
/// guest requests that, so that a server boots again.
pub fn end(cpu: &PerCpu, how: End) -> ! {
    flush();
    let ended = Ended {
        how,
        vcpu: vm().find(cpu.mpidr).map_or(0, |(number, _)| number),
        mpidr: cpu.mpidr,
    };
    say!("{ended}");
    match how {
        End::Reset => power::reset(),
        End::Off | End::NoCpu | End::Stopped => power::stop(),
    }
}

/// Ends the machine because its guest can't go on, for a reason that is neither its own nor the
/// hypervisor's, `why`.
pub fn lost_guest(cpu: &PerCpu, why: core::fmt::Arguments<'_>) -> ! {
    flush();
    say!("guest on CPU {:#x}: {why}", cpu.mpidr);
    say!("exit status {STATUS_LOST}");
    power::stop()
}

/// Prints the guest's unfinished line, because nothing follows.
fn flush() {
    log::with(Line::show_gathered);
}
