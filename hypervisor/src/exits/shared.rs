// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles the exit that is measured most on a CPU that has a neighbour: a WFI of the vCPU that gives the CPU away
//! until an interrupt comes, which is then listed. Every other exit goes to the handlers that all CPUs use.
//!
//! [`crate::exits::fast_paths`] makes the same two decisions in assembly, for a CPU without a neighbour: whether a WFI
//! only has to halt, and whether an interrupt only has to be listed. Both compare prepared values.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{ELR_EL2, Readable};
use arch::gic_cpu;
use arch::regs::ICH_ELRSR_EL2;

use crate::cpu::percpu::PerCpu;
use crate::exits::fast_paths::WAIT_BITS;
use crate::exits::synchronous::Next;
use crate::interrupts::{irq, vgic_cpu};
use crate::neighbour::turn;

/// Bits of ESR_EL2 that are all 0 for a trapped WFI, but not for any other exception: [`WAIT_BITS`], and ISS2, which
/// is RES0 for a WF* instruction (DDI 0487K.a, D23.2.39). A single instruction can test this mask.
pub const NO_WFI: u64 = WAIT_BITS | !0 << 32;

/// Handles a trapped WFI, if it only has to halt: gives the neighbour the CPU until an interrupt is pending, and lists
/// that interrupt. Otherwise returns [`Next::Full`] and changes nothing.
pub extern "C" fn wait() -> Next {
    let cpu = PerCpu::this();
    // Nothing is listed, and EL2 neither polls nor leaves the interrupts to the guest.
    let halts = ICH_ELRSR_EL2.get() == cpu.vcpu.fast_paths.halt_if.load(Relaxed);
    let Some(tenant) = cpu.tenant().filter(|_| halts) else {
        return Next::Full;
    };
    // The vCPU continues after its WFI.
    if !turn::give_untimed(tenant, || ELR_EL2.get() + 4) {
        return Next::Full;
    }
    let intid = gic_cpu::acknowledge();
    if vgic_cpu::list_expected(cpu, intid) {
        count_one(&cpu.vcpu.fast_paths.waited);
    } else {
        count_one(&cpu.vcpu.waits.halted);
        irq::waited(intid);
    }
    Next::Resume
}

/// Counts one more event. Only this CPU counts.
#[inline(always)]
fn count_one(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}
