// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that EL2's state of a vCPU's interrupts agrees with the registers. A guest requests this
//! through a hypercall, for its own vCPU, while it tries to make state and registers differ. None
//! of this is on a measured path.

use core::fmt;
use core::sync::atomic::Ordering::SeqCst;

use aarch64_cpu::registers::{CNTFRQ_EL0, CNTPCT_EL0, Readable};
use abi::audit as mode;
use arch::frame::Frame;
use arch::insn;

use crate::cpu::percpu::PerCpu;
use crate::interrupts::{irq, vgic_cpu};
use crate::{planted, say};

/// Cause of a failed audit.
enum Finding {
    /// The list registers, the queue and the registers of the vGIC disagree.
    Vgic(vgic::Fault),
    /// Physical interrupts are active that the guest can't end.
    Active(u32),
    /// Bits of the pending word for which no doorbell was rung.
    PendingWord(u32),
    /// More bytes of EL2's stack are in use than an exit needs.
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

/// Compares EL2's state with the registers in the mode that the exit of `frame` `asked` for, and
/// returns whether everything agrees.
pub fn audit(cpu: &PerCpu, frame: &Frame, asked: u64) -> bool {
    let quiet = matches!(asked, mode::QUIET | mode::QUIET_TOLD);
    if !quiet {
        planted::at_audit();
    }
    match compare_registers(cpu, frame, quiet) {
        Ok(()) => true,
        Err(finding) => {
            if matches!(asked, mode::QUIET_TOLD | mode::RUNNING_TOLD) {
                say!("audit of CPU {:#x}: {finding}", cpu.mpidr);
            }
            false
        }
    }
}

fn compare_registers(cpu: &PerCpu, frame: &Frame, quiet: bool) -> Result<(), Finding> {
    // The frame is the first thing on the stack of an exit.
    let used = cpu.stack_top as usize - core::ptr::from_ref(frame) as usize;
    if used != size_of::<Frame>() {
        return Err(Finding::Stack(used));
    }
    if quiet {
        await_pending_word(cpu)?;
    }
    vgic_cpu::audit_lists(cpu, quiet).map_err(Finding::Vgic)?;
    match vgic_cpu::stray_active(cpu) {
        0 => Ok(()),
        bits => Err(Finding::Active(bits)),
    }
}

/// Takes interrupts that are on their way to this CPU; a doorbell has to follow the bits of the pending
/// word.
fn await_pending_word(cpu: &PerCpu) -> Result<(), Finding> {
    let word = cpu.vcpu.switch.word();
    let end = CNTPCT_EL0.get() + CNTFRQ_EL0.get() / 100;
    loop {
        if !cpu.vcpu.switch.is_direct() {
            irq::take_all(cpu);
        }
        planted::at_look_at_word(cpu);
        match word.load(SeqCst) {
            0 => return Ok(()),
            bits if CNTPCT_EL0.get() > end => return Err(Finding::PendingWord(bits)),
            _ => insn::yield_now(),
        }
    }
}
