// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes contradictions in the first vCPU, one of each kind, for an audit ([`crate::interrupts::audit`]) to find.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU64};

use aarch64_cpu::registers::{CNTFRQ_EL0, CNTVOFF_EL2, Readable, Writeable};
use abi::Counter;
use arch::insn;
use arch::regs::{ICH_ELRSR_EL2, ICH_HCR_EL2, ICH_VMCR_EL2, set_ich_lr};
use plan::{AuditFault, Fault};
use vgic::{ListRegister, Redistributor};

use super::asked::asked_fault;
use crate::cpu::percpu::PerCpu;
use crate::interrupts::vgic_cpu;
use crate::machine::vm::vm;

/// SGIs, and the timers' interrupts of EL1 (PPIs 27 and 30; Arm BSA, DEN0094C, 3.7).
const SGIS: u32 = 0xffff;
const TIMERS: u32 = 1 << 27 | 1 << 30;

/// Makes the second CPU lose the interrupts in `bits`, whether hardware delivers them or EL2
/// injects them.
fn lose_interrupts(bits: u32) {
    /// GICR_ICENABLER0, after the first frame (IHI 0069H, 12.11).
    const DISABLE: u64 = 0x1_0180;
    let Some((number, other)) = vm().cpus.iter().enumerate().nth(1) else {
        return;
    };
    other.redistributor().disable_all(bits);
    let virtually = Redistributor {
        private: &other.vcpu.private,
        affinity: other.mpidr,
        number,
        last: number + 1 == vm().cpus.len(),
        lines: 0,
    };
    // The value that is read, and whether it has changed, do not matter.
    let _ = virtually.access(vgic::Access {
        offset: DISABLE,
        size: size_of::<u32>() as u32,
        write: Some(u64::from(bits)),
    });
}

/// Number of audits before a fault is caused, so that the guest is in the middle of its work.
const BEFORE: u64 = 100;

/// Causes the contradiction that is asked for, once or as often as necessary, except for the one in the pending word.
#[inline(never)]
pub fn at_audit() {
    static AUDITS: AtomicU64 = AtomicU64::new(0);
    static PLANTED: AtomicBool = AtomicBool::new(false);
    let Some(Fault::Audit(fault)) = asked_fault() else {
        return;
    };
    let cpu = PerCpu::this();
    // EL2 keeps delivering the first vCPU's interrupts, because the guest does not change that.
    let first = core::ptr::eq(cpu, vm().cpus[0]);
    if AUDITS.fetch_add(1, Relaxed) < BEFORE || !first {
        return;
    }
    // A CPU that was off enables its interrupts again, so the fault is caused again.
    let again = matches!(fault, AuditFault::SgisLost | AuditFault::TimersLost);
    if PLANTED.swap(true, Relaxed) && !again {
        return;
    }
    match fault {
        // The interrupt is active, and nothing ever ends it.
        AuditFault::StuckLr => {
            let free = ICH_ELRSR_EL2.get().trailing_zeros() as usize;
            let pending = ListRegister::pending(31, 0x80, None);
            set_ich_lr(free, pending.with_active().without_pending().0);
        }
        AuditFault::ListedTwice => {
            let listed = ListRegister::pending(9, 0xff, None).0;
            set_ich_lr(0, listed);
            set_ich_lr(1, listed);
        }
        // TC (10) and TALL1 (12): the guest's accesses still work, but each of them traps.
        AuditFault::TrapsLeft => ICH_HCR_EL2.set(ICH_HCR_EL2.get() | 1 << 10 | 1 << 12),
        AuditFault::DoubleDelivery => vgic_cpu::inject_interrupt(cpu, 9, None),
        // VPMR, bits 31:24.
        AuditFault::UnbalancedMask => ICH_VMCR_EL2.set(ICH_VMCR_EL2.get() & !(0x80 << 24)),
        // The two counters of interrupts decrease, so that it does not matter how many interrupts a fast path takes.
        AuditFault::CounterBack => {
            let counters = &cpu.vcpu.counters;
            (0..counters.get(Counter::Irq)).for_each(|_| counters.uncount(Counter::Irq));
            cpu.vcpu.fast_paths.interrupts.store(0, Relaxed);
        }
        AuditFault::TimeBack => CNTVOFF_EL2.set(CNTFRQ_EL0.get() / 10),
        AuditFault::PendingWord => {}
        AuditFault::SgisLost => lose_interrupts(SGIS),
        AuditFault::TimersLost => lose_interrupts(TIMERS),
    }
    // The ISB makes the change visible to the next read of the list registers.
    insn::isb();
}

/// Fills the pending word of `cpu` without a doorbell, if that is asked for. A kick empties the word, so this is called
/// before each look at the word. At other times, a full word would lose requests, which is another fault.
#[inline(never)]
pub fn at_look_at_word(cpu: &PerCpu) {
    if asked_fault() == Some(Fault::Audit(AuditFault::PendingWord)) {
        cpu.vcpu.switch.word().fetch_or(1 << 31, SeqCst);
    }
}
