// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guest can change of its vCPU while it runs.

use abi::Knob;
use arch::insn;
use arch::regs::CNTHCTL_EL2;
use wait::governor::{Host, Tunables};
use wait::stream;

use crate::cpu::halt::Halt;
use crate::cpu::percpu::PerCpu;
use crate::cpu::traps;
use crate::interrupts::deliver;
use crate::machine::machine;

/// Sets `knob`; `None` if the value makes no sense.
pub fn set(cpu: &PerCpu, knob: Knob, value: u64) -> Option<()> {
    match knob {
        Knob::Trap => (value < 4).then(|| traps::set_trap(value)),
        Knob::Deliver => match value {
            deliver::INJECT => deliver::inject(cpu),
            deliver::DIRECT => deliver::direct(cpu),
            _ => None,
        },
        Knob::HostPoll => tune(cpu, |halt| halt.poll = value),
        Knob::HostPollAdaptive => {
            let tunables = Tunables::HOST.scaled(|time| machine().ticks(time));
            let host = (value == 1).then(|| Host::new(tunables));
            tune(cpu, |halt| halt.adaptive = host)
        }
        Knob::GuestPolls => tune(cpu, |halt| halt.guest_polls = value == 1),
        Knob::Trace => (value < 2).then(|| traps::set_tracing(value == 1)),
        Knob::EventStream => {
            // Only the fields of the stream: the others are what EL1 may use.
            (value & !stream::FIELDS == 0).then(|| {
                CNTHCTL_EL2.set(CNTHCTL_EL2.get() & !stream::FIELDS | value);
                insn::isb();
            })
        }
    }
}

/// Changes how EL2 waits for this CPU's vCPU.
fn tune(cpu: &PerCpu, change: impl FnOnce(&mut Halt)) -> Option<()> {
    // SAFETY: this CPU's own, and no `change` comes here again.
    unsafe { cpu.vcpu.halt.with(change) };
    traps::review_wait(cpu);
    Some(())
}
