// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looking at what is listed without changing it, for [`crate::interrupts::audit`].

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{ICH_HCR_EL2, Readable};
use vgic::Fault;

use super::{ListRegisters, UNDERFLOW, spis, timers};
use crate::cpu::percpu::PerCpu;
use crate::machine::vm::vm;

/// Whether the list registers agree with what is known of them; `quiet`: nothing
/// is owed to the guest. In direct mode none may be in use.
pub fn audit(cpu: &PerCpu, quiet: bool) -> Result<(), Fault> {
    let private = &cpu.vcpu.private;
    let direct = cpu.vcpu.direct.load(Relaxed);
    let underflow = ICH_HCR_EL2.get() & UNDERFLOW != 0;
    // SAFETY: this CPU's own; nothing in the closure comes here again.
    unsafe {
        cpu.vcpu.list.with(|list| {
            let distributor = vm().distributor.lock();
            list.audit(&ListRegisters, &distributor, spis(cpu), underflow)?;
            drop(distributor);
            match quiet || direct {
                true => list.audit_quiet(&ListRegisters, private, direct),
                false => Ok(()),
            }
        })
    }
}

/// Private interrupts that are active physically though the guest has not got
/// them: EL2 ends its own before it returns.
pub fn stray(cpu: &PerCpu) -> u32 {
    if cpu.vcpu.direct.load(Relaxed) {
        return 0;
    }
    // SAFETY: this CPU's own; `state` does not come here again.
    let listed = unsafe {
        cpu.vcpu.list.with(|list| {
            let state = |intid: u32| list.state(&ListRegisters, intid);
            (0..vgic::PRIVATE)
                .filter(|&intid| {
                    let state = state(intid);
                    timers() >> intid & 1 != 0 && (state.pending || state.active)
                })
                .fold(0, |bits, intid| bits | 1 << intid)
        })
    };
    cpu.redistributor().active() & !listed & !cpu.vcpu.private.pending()
}
