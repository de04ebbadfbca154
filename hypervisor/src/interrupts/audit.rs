// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does what EL2 knows of a vCPU's interrupts agree with its registers? A guest
//! asks by hypercall, for its own vCPU, while it tries to bring the two apart;
//! nothing of this is on a measured path.
//!
//! `rouse.fault=soak-...` makes the contradictions that it has to find, one of
//! each kind, in the first vCPU.

use core::fmt;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU64};

use aarch64_cpu::registers::{
    CNTFRQ_EL0, CNTPCT_EL0, CNTVOFF_EL2, ICH_VMCR_EL2, Readable, Writeable,
};
use abi::{Counter, audit as mode};
use arch::frame::Frame;
use arch::insn;
use arch::regs::{ICH_ELRSR_EL2, set_ich_lr};
use plan::Fault;
use vgic::{ListRegister, Redistributor};

use crate::cpu::percpu::PerCpu;
use crate::interrupts::{irq, vgic_cpu};
use crate::machine::fault;
use crate::machine::vm::vm;
use crate::say;

/// Cause of a failed audit.
enum Finding {
    /// The list registers, the queue or the registers of the vGIC.
    Vgic(vgic::Fault),
    /// Physical interrupts are active that are not the guest's to end.
    Active(u32),
    /// Bits of the pending word for which no doorbell was rung.
    PendingWord(u32),
    /// Bytes of EL2's stack in use, of which an exit needs fewer.
    Stack(usize),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vgic(fault) => fault.fmt(f),
            Self::Active(bits) => write!(
                f,
                "physical interrupts {bits:#x} are active and not listed for the guest"
            ),
            Self::PendingWord(bits) => write!(f, "pending word {bits:#x} without a doorbell"),
            Self::Stack(bytes) => write!(f, "{bytes} bytes of EL2's stack are left in use"),
        }
    }
}

/// Compares, in the mode that was `asked` for by the exit of `frame`; whether everything agrees.
pub fn audit(cpu: &PerCpu, frame: &Frame, asked: u64) -> bool {
    let quiet = matches!(asked, mode::QUIET | mode::QUIET_TOLD);
    plant(cpu, quiet);
    match compare(cpu, frame, quiet) {
        Ok(()) => true,
        Err(finding) => {
            if matches!(asked, mode::QUIET_TOLD | mode::RUNNING_TOLD) {
                say!("audit of CPU {:#x}: {finding}", cpu.mpidr);
            }
            false
        }
    }
}

fn compare(cpu: &PerCpu, frame: &Frame, quiet: bool) -> Result<(), Finding> {
    // The frame is the first thing on the stack of an exit.
    let used = cpu.stack_top as usize - core::ptr::from_ref(frame) as usize;
    if used != size_of::<Frame>() {
        return Err(Finding::Stack(used));
    }
    if quiet {
        await_pending_word(cpu)?;
    }
    vgic_cpu::audit(cpu, quiet).map_err(Finding::Vgic)?;
    match vgic_cpu::stray(cpu) {
        0 => Ok(()),
        bits => Err(Finding::Active(bits)),
    }
}

/// Takes what is on its way to this CPU; bits of the pending word have to come with a
/// doorbell.
fn await_pending_word(cpu: &PerCpu) -> Result<(), Finding> {
    let word = cpu.vcpu.switch.word();
    let end = CNTPCT_EL0.get() + CNTFRQ_EL0.get() / 100;
    loop {
        if !cpu.vcpu.switch.is_direct() {
            irq::take_all(cpu);
        }
        match word.load(SeqCst) {
            0 => return Ok(()),
            bits if CNTPCT_EL0.get() > end => return Err(Finding::PendingWord(bits)),
            _ => insn::yield_now(),
        }
    }
}

/// SGIs, and the timers' interrupts of EL1 (PPIs 27 and 30; Arm BSA, DEN0094C, 3.7).
const SGIS: u32 = 0xffff;
const TIMERS: u32 = 1 << 27 | 1 << 30;

/// Has the second CPU get none of these any more: neither from hardware nor, of those that are
/// injected, from EL2.
fn lose(bits: u32) {
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
    // The value read, and whether it changed, do not matter.
    let _ = virtually.access(vgic::Access {
        offset: DISABLE,
        size: size_of::<u32>() as u32,
        write: Some(u64::from(bits)),
    });
}

/// Audits before a fault is made: enough for the guest to be amidst its work.
const BEFORE: u64 = 100;

/// Makes the fault that the boot arguments ask for, once, or as often as
/// it takes.
fn plant(cpu: &PerCpu, quiet: bool) {
    static AUDITS: AtomicU64 = AtomicU64::new(0);
    static PLANTED: AtomicBool = AtomicBool::new(false);
    // The guest leaves that one's interrupts at EL2.
    let first = core::ptr::eq(cpu, vm().cpus[0]);
    if AUDITS.fetch_add(1, Relaxed) < BEFORE || !first {
        return;
    }
    let Some(fault) = fault::asked() else {
        return;
    };
    // Amidst other work a full pending word would lose requests, which is another fault;
    // and as any kick empties it, it is filled whenever all is quiet.
    let word = fault == Fault::SoakPendingWord;
    // A CPU that was off enables its interrupts again.
    let again = word || matches!(fault, Fault::SoakSgisLost | Fault::SoakTimersLost);
    if quiet != word || PLANTED.swap(true, Relaxed) && !again {
        return;
    }
    match fault {
        // Active, and never ended.
        Fault::SoakStuckLr => {
            let free = ICH_ELRSR_EL2.get().trailing_zeros() as usize;
            let pending = ListRegister::pending(31, 0x80, None);
            set_ich_lr(free, pending.with_active().without_pending().0);
        }
        Fault::SoakListedTwice => {
            let listed = ListRegister::pending(9, 0xff, None).0;
            set_ich_lr(0, listed);
            set_ich_lr(1, listed);
        }
        Fault::SoakDoubleDelivery => vgic_cpu::inject(cpu, 9, None),
        // VPMR, bits 31:24.
        Fault::SoakUnbalancedMask => ICH_VMCR_EL2.set(ICH_VMCR_EL2.get() & !(0x80 << 24)),
        // Both that count interrupts: how many of them a fast path takes is no matter.
        Fault::SoakCounterBack => {
            cpu.vcpu.counters.forget(Counter::Irq);
            cpu.vcpu.fast_paths.interrupts.store(0, Relaxed);
        }
        Fault::SoakTimeBack => CNTVOFF_EL2.set(CNTFRQ_EL0.get() / 10),
        Fault::SoakPendingWord => drop(cpu.vcpu.switch.word().fetch_or(1 << 31, SeqCst)),
        Fault::SoakSgisLost => lose(SGIS),
        Fault::SoakTimersLost => lose(TIMERS),
        // Made elsewhere: at boot, while the guest runs, or by the guest.
        Fault::El2Panic
        | Fault::El2Abort
        | Fault::El2Hang
        | Fault::El2Overflow
        | Fault::El2WriteCode
        | Fault::El2RunData
        | Fault::El2BreaksRules
        | Fault::El2PanicRunning
        | Fault::El2OverflowRunning
        | Fault::El2PanicNested
        | Fault::El2PanicHeld
        | Fault::El2PanicEverywhere
        | Fault::SerrorLeft
        | Fault::SerrorsGoOn
        | Fault::SerrorRecoverable
        | Fault::SerrorUncontainable
        | Fault::SerrorUncategorized
        | Fault::SpcrDamaged
        | Fault::SpcrShort
        | Fault::SpcrNowhere
        | Fault::SpcrUnknown
        | Fault::SpcrMissing
        | Fault::TablesMoved
        | Fault::NoWatchdog
        | Fault::WatchdogRuns
        | Fault::WatchdogSecure
        | Fault::WatchdogInRam
        | Fault::SecondarySilent
        | Fault::CounterStands
        | Fault::CounterCoarse
        | Fault::ConsoleStalls
        | Fault::ConsoleDies
        | Fault::PowerOffFails
        | Fault::RamDirty
        | Fault::SgiLost
        | Fault::GuestPanic
        | Fault::GuestAbort
        | Fault::GuestHang
        | Fault::CoreClockMoves
        | Fault::CoresDiffer
        | Fault::CoreDrifts
        | Fault::LostWakeUp
        | Fault::SoakLostWakeUp
        | Fault::GuestHangMasked
        | Fault::CellHang
        | Fault::SoakLeak => {}
    }
    // The next look at the list registers finds it.
    insn::isb();
}
