// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles the sending of an SGI: a guest's write of ICC_SGI1R_EL1, which traps because interrupts
//! are routed to EL2.
//!
//! vCPUs are pinned and have the affinity of their CPU, so the value that the guest wrote names the right physical
//! CPUs, whatever its target list and IRM are. The handler therefore writes the same value to the physical register.
//! The target takes the physical SGI ([`crate::interrupts::irq`]) and lists the virtual one; if the target is in direct
//! mode, hardware delivers the SGI. The interrupt controller itself merges SGIs that are sent twice, exactly as it
//! would for a guest without a hypervisor.

use abi::Counter;
use arch::regs::{ICC_CTLR_EL1, ICC_SGI1R_EL1};
use trap::sgi::Sgi;

use crate::cpu::fast_state::SGI_FIELDS;
use crate::cpu::pending_word::FIRST_SGI;
use crate::cpu::percpu::PerCpu;
use crate::cpu::trace::{Trace, Traced};
use crate::interrupts::kick;
use crate::machine::vm::vm;

/// ICC_SGI1R_EL1.RS, the range selector, and ICC_CTLR_EL1.RSS: there is more than one range.
const RANGE: u64 = 0xf << 44;
const RSS: u64 = 1 << 18;

/// Sends the SGI that the guest requested by writing `value`.
#[inline(always)]
pub fn send_sgi<T: Trace>(cpu: &PerCpu, value: u64) {
    cpu.vcpu.counters.add(Counter::Sgi);
    let intid = (value >> 24 & 15) as u32;
    if intid < FIRST_SGI {
        ICC_SGI1R_EL1.set(value & SGI_FIELDS);
        T::note_event(cpu, Traced::Sent, value);
        return;
    }
    send_by_kick(cpu, value);
}

#[cold]
fn send_by_kick(cpu: &PerCpu, value: u64) {
    // Without RSS the range selector has no meaning (IHI 0069H, 12.2). Hardware ignores the
    // selector then, so EL2 clears it.
    let ranges = ICC_CTLR_EL1.get() & RSS != 0;
    let sgi = Sgi::decode(if ranges { value } else { value & !RANGE });
    match sgi.named() {
        // Only the named CPUs are looked up, so the cost does not depend on the number of vCPUs.
        Some(named) => {
            let targets = named.filter_map(|mpidr| vm().find(mpidr));
            targets.for_each(|(_, target)| kick::send_requests(target, 1 << sgi.intid));
        }
        None => {
            let others = vm()
                .cpus
                .iter()
                .filter(|other| !core::ptr::eq(**other, cpu));
            others.for_each(|other| kick::send_requests(other, 1 << sgi.intid));
        }
    }
}
