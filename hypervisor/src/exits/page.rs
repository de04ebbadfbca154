// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulates the page of [`abi::exits`]: counters and knobs for programs of the guest.

use abi::audit::RUNNING_TOLD;
use abi::exits::{AGREES, CONTRADICTS, Register, at};
use abi::{Counter, Knob, KnobValue};
use arch::frame::Frame;
use vgic::Access;

use crate::cpu::percpu::PerCpu;
use crate::cpu::traps;
use crate::exits::knobs;
use crate::interrupts::audit;
use crate::machine::vm::vm;
use crate::neighbour::turn;

/// Serves an access, and returns the value of a read. This code is not inlined into the path to the
/// other devices, because that path is measured.
#[cold]
#[inline(never)]
pub fn serve_access(cpu: &PerCpu, frame: &Frame, access: Access) -> u64 {
    cpu.vcpu.counters.uncount(Counter::Mmio);
    let register = (access.size == size_of::<u64>() as u32).then(|| at(access.offset));
    match (register.flatten(), access.write) {
        (Some(Register::Counter(counter)), None) => sum_counter(counter),
        (Some(Register::Shared(count)), None) => {
            let each = vm().cpus.iter().map(|cpu| turn::read_count(cpu, count));
            each.sum()
        }
        (Some(Register::Knob(knob)), None) => knob_value(cpu, knob),
        (Some(Register::Knob(knob)), Some(word)) => {
            // A knob that can't be set keeps its value, and the guest can see this when it reads the knob back.
            let _ = KnobValue::decode(knob, word).and_then(|value| knobs::set_knob(cpu, value));
            0
        }
        (Some(Register::Audit), None) => match audit::audit(cpu, frame, RUNNING_TOLD) {
            true => AGREES,
            false => CONTRADICTS,
        },
        (Some(Register::Counter(_) | Register::Shared(_) | Register::Audit), Some(_))
        | (None, _) => 0,
    }
}

/// Sums a counter over all vCPUs, while the other vCPUs continue to run.
fn sum_counter(counter: Counter) -> u64 {
    let each = vm().cpus.iter().map(|cpu| cpu.vcpu.count(counter));
    each.sum()
}

/// Returns the value of a knob that can be read back, and 0 for any other knob.
fn knob_value(cpu: &PerCpu, knob: Knob) -> u64 {
    let value = match knob {
        Knob::Trap => KnobValue::Trap(traps::current_trap()),
        Knob::Deliver => KnobValue::Deliver(match cpu.vcpu.switch.is_direct() {
            true => abi::Deliver::Direct,
            false => abi::Deliver::Inject,
        }),
        Knob::HostPoll
        | Knob::HostPollAdaptive
        | Knob::GuestPolls
        | Knob::EventStream
        | Knob::Trace
        | Knob::RecheckTimers
        | Knob::Neighbour
        | Knob::Slice
        | Knob::YieldOnWfe => return 0,
    };
    value.encode().1
}
