// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the properties of a vCPU that its guest can change while it runs.

use abi::{Deliver, KnobValue};
use arch::insn;
use arch::regs::CNTHCTL_EL2;
use wait::governor::{Host, Tunables};
use wait::stream;

use crate::cpu::halt::Halt;
use crate::cpu::percpu::PerCpu;
use crate::cpu::traps;
use crate::dumps::own_timer;
use crate::interrupts::deliver;
use crate::machine::machine;
use crate::neighbour::turn;

/// Sets a knob; returns `None` if the value is not allowed at this moment.
pub fn set_knob(cpu: &PerCpu, value: KnobValue) -> Option<()> {
    match value {
        KnobValue::Trap(trap) => {
            traps::set_trap(trap);
            Some(())
        }
        KnobValue::Deliver(owner) => {
            let done = match owner {
                Deliver::Inject => deliver::take_interface(cpu),
                // A neighbour's turn ends with an interrupt that EL2 takes.
                Deliver::Direct if cpu.neighbour().is_some() => None,
                Deliver::Direct => deliver::give_interface(cpu),
            };
            // The owner of EL2's timer interrupt has changed.
            own_timer::review_next_check(cpu);
            done
        }
        KnobValue::HostPoll(ticks) => change_halt(cpu, |halt| halt.poll = ticks),
        KnobValue::HostPollAdaptive(on) => {
            let tunables = Tunables::HOST.scaled(|time| machine().ns_to_ticks(time));
            let host = on.then(|| Host::new(tunables));
            change_halt(cpu, |halt| halt.adaptive = host)
        }
        KnobValue::GuestPolls(on) => change_halt(cpu, |halt| halt.guest_polls = on),
        KnobValue::Trace(on) => {
            traps::set_tracing(on);
            Some(())
        }
        KnobValue::RecheckTimers(on) => {
            traps::set_recheck_timers(on);
            Some(())
        }
        KnobValue::Neighbour(does) => turn::set_work(cpu, does),
        KnobValue::Slice(ticks) => turn::set_slice(cpu, ticks),
        KnobValue::YieldOnWfe(on) => turn::set_yield_on_wfe(cpu, on),
        KnobValue::EventStream(fields) => {
            // Only the fields of the event stream may be set: the other fields control EL1's accesses.
            (fields & !stream::FIELDS == 0).then(|| {
                CNTHCTL_EL2.set(CNTHCTL_EL2.get() & !stream::FIELDS | fields);
                insn::isb();
            })
        }
    }
}

/// Changes how EL2 waits for this CPU's vCPU.
fn change_halt(cpu: &PerCpu, change: impl FnOnce(&mut Halt)) -> Option<()> {
    // SAFETY: the state is this CPU's own, and no `change` calls this function.
    unsafe { cpu.vcpu.halt.with(change) };
    traps::review_wait_path(cpu);
    Some(())
}
