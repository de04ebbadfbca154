// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends the machine for a guest: with an exit status, through PSCI, or when the guest turns its last CPU off. The
//! console's last line names the reason.

use abi::{End, Ended};

use crate::console::line::Line;
use crate::console::log;
use crate::cpu::percpu::PerCpu;
use crate::machine::power;
use crate::machine::vm::vm;
use crate::say;

/// Exit status of a machine whose guest can't continue, through no fault of the guest or of EL2.
pub const STATUS_LOST: u64 = 72;

/// Ends the machine for the guest, with its exit status.
pub fn exit_machine(status: u64) -> ! {
    flush_guest_line();
    say!("exit status {status}");
    power::turn_machine_off()
}

/// Ends the machine in the way that the guest has requested, or caused, on `cpu`. If the guest
/// requests a reset, the machine is reset, so that a server boots again.
pub fn end_machine(cpu: &PerCpu, how: End) -> ! {
    flush_guest_line();
    let ended = Ended {
        how,
        vcpu: vm().find(cpu.mpidr).map_or(0, |(number, _)| number),
        mpidr: cpu.mpidr,
    };
    say!("{ended}");
    match how {
        End::Reset => power::reset_machine(),
        End::Off | End::NoCpu | End::Stopped => power::turn_machine_off(),
    }
}

/// Ends the machine because its guest can't continue. The reason, `why`, is a fault of neither the guest nor the
/// hypervisor.
pub fn end_lost_guest(cpu: &PerCpu, why: core::fmt::Arguments<'_>) -> ! {
    flush_guest_line();
    say!("guest on CPU {:#x}: {why}", cpu.mpidr);
    say!("exit status {STATUS_LOST}");
    power::turn_machine_off()
}

/// Prints the guest's unfinished line, because no more text of the guest follows.
fn flush_guest_line() {
    log::with_line(Line::show_gathered);
}
