// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles SErrors. EL2 takes all of them (HCR_EL2.AMO), unless firmware takes them first
//! (SCR_EL3.EA). The syndrome decides what happens, see [`trap::serror`]: an SError after which execution can continue
//! is counted and printed; any other SError ends the guest or the machine.
//!
//! EL2 runs with SErrors masked. An SError that becomes pending meanwhile is taken at the next
//! return to the guest, which can't mask it. If there is no guest to return to, EL2 unmasks SErrors
//! itself.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};

use aarch64_cpu::registers::{ELR_EL2, ESR_EL2, Readable};
use abi::Counter;
use arch::frame::Frame;
use arch::regs::{DISR_EL1, ISR_EL1};
use arch::{id, insn};
use trap::esr::Esr;
use trap::serror::{self, Next, Taken, Verdict};

use crate::cpu::percpu::PerCpu;
use crate::dumps::dump;
use crate::machine::ending;
use crate::{planted, say};

/// Counts SErrors of one kind.
pub struct Tally(AtomicU64);

/// SErrors that were pending when a CPU arrived in the hypervisor.
pub static LEFT: Tally = Tally(AtomicU64::new(0));
/// SErrors that came after the arrival and were corrected.
pub static CORRECTED: Tally = Tally(AtomicU64::new(0));
/// SErrors that came after the arrival and let the CPU continue.
pub static RESTARTABLE: Tally = Tally(AtomicU64::new(0));

impl Tally {
    /// Returns the number of SErrors that were counted.
    pub fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// ISR_EL1.A: an SError is pending.
const PENDING: u64 = 1 << 8;
/// Value of [`PerCpu::serror`] while this CPU lets an SError interrupt EL2. This value can't be a
/// syndrome, which has a class.
const LETS_IN: u64 = 1;
/// Number of SErrors to print; later ones are only counted.
const SHOWN: u64 = 8;

/// Handles an SError that interrupted the guest.
pub extern "C" fn in_guest(frame: &Frame) {
    let cpu = PerCpu::this();
    cpu.vcpu.counters.add(Counter::Other);
    let esr = Esr(ESR_EL2.get());
    match count_or_judge(cpu, esr, Taken::InGuest) {
        Ok(()) => {}
        Err((Next::EndGuest, verdict)) => ending::end_lost_guest(
            cpu,
            format_args!(
                "SError, {verdict} (ESR {:#x}), at {:#x}: the guest can't go on, since what it would use next is wrong",
                esr.0,
                ELR_EL2.get()
            ),
        ),
        Err((Next::EndBoth, verdict)) => dump::end_with_frame(
            frame,
            format_args!(
                "SError, {verdict}, while the guest ran, of its own or of EL2 just before: ESR_EL2 {:#x}",
                esr.0
            ),
        ),
        Err((_, verdict)) => dump::fail_with_frame(
            frame,
            format_args!(
                "SError, {verdict}, while the guest ran: ESR_EL2 {:#x}",
                esr.0
            ),
        ),
    }
}

/// Handles an SError that interrupted EL2, which is expected only while EL2 [allows it](with_serrors).
pub extern "C" fn in_el2(frame: &Frame) {
    let cpu = PerCpu::this();
    let esr = ESR_EL2.get();
    if cpu.serror.swap(esr, AcqRel) != LETS_IN {
        dump::fail_with_frame(frame, format_args!("SError at EL2: ESR_EL2 {esr:#x}"));
    }
}

/// Takes the SErrors that firmware left pending on this CPU, so that running code is not blamed for them. MMU and
/// caches must be on.
pub fn take_leftover(cpu: &PerCpu) {
    if id::has_ras() {
        // DISR_EL1 is UNKNOWN after a reset, and the ESB writes it only if there is an SError to
        // defer.
        DISR_EL1.set(planted::disr_at_start().unwrap_or(0));
        insn::isb();
        insn::esb();
        insn::isb();
        if let Some(esr) = serror::deferred(DISR_EL1.get()) {
            DISR_EL1.set(0);
            handle_at_el2(cpu, esr, Taken::AtStart);
        }
    }
    // SErrors that can't be deferred are taken here.
    if ISR_EL1.get() & PENDING != 0 {
        with_serrors(cpu, Taken::AtStart, unmask_briefly);
    }
}

/// Takes the SError that is pending on this CPU, if there is one.
pub fn take_pending(cpu: &PerCpu) {
    if ISR_EL1.get() & PENDING != 0 {
        with_serrors(cpu, Taken::InEl2, unmask_briefly);
    }
}

/// Runs `by`, during which an SError may interrupt EL2, and judges that SError.
pub fn with_serrors(cpu: &PerCpu, taken: Taken, by: impl FnOnce()) {
    cpu.serror.store(LETS_IN, Relaxed);
    by();
    match cpu.serror.swap(0, AcqRel) {
        LETS_IN => {}
        esr => handle_at_el2(cpu, Esr(esr), taken),
    }
}

fn unmask_briefly() {
    insn::unmask_serror();
    insn::isb();
    insn::mask_serror();
}

fn handle_at_el2(cpu: &PerCpu, esr: Esr, taken: Taken) {
    if let Err((_, verdict)) = count_or_judge(cpu, esr, taken) {
        dump::fail(format_args!("SError, {verdict}: ESR_EL2 {:#x}", esr.0));
    }
}

/// Counts and prints an SError after which execution continues.
///
/// # Errors
/// Returns the necessary action and its reason if execution can't continue.
fn count_or_judge(cpu: &PerCpu, esr: Esr, taken: Taken) -> Result<(), (Next, Verdict)> {
    let verdict = serror::judge(esr, id::has_ras());
    let next = verdict.next(taken);
    if next != Next::GoOn {
        return Err((next, verdict));
    }
    let (tally, whose) = match (taken, verdict) {
        (Taken::AtStart, _) => (&LEFT, "firmware left it pending"),
        (_, Verdict::Corrected) => (&CORRECTED, "nothing is lost"),
        _ => (&RESTARTABLE, "nothing has used what is wrong"),
    };
    let before = tally.0.fetch_add(1, Relaxed);
    if before < SHOWN {
        say!(
            "SError on CPU {:#x}, {verdict} (ESR {:#x}): {whose}; it is counted{}",
            cpu.mpidr,
            esr.0,
            if before + 1 == SHOWN {
                ", and more of them are not shown"
            } else {
                ""
            }
        );
    }
    Ok(())
}
