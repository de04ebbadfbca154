// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes the owner of a CPU's interface: EL2, which injects interrupts, or the guest.
//!
//! A switch carries over all the guest's settings and outstanding interrupts, so the guest sees one
//! interrupt controller throughout. A switch moves the interface's registers (ICH_VMCR_EL2 on one
//! side, ICC_* on the other), the redistributor's enables and priorities, and the pending interrupts.
//!
//! There is no switch while the guest has an interrupt active, because running
//! priorities can't be moved.

use arch::regs::{
    ICC_BPR1_EL1, ICC_CTLR_EL1, ICC_IGRPEN1_EL1, ICC_PMR_EL1, ICC_RPR_EL1, ICH_VMCR_EL2,
};
use arch::{gic_cpu, insn};

use crate::cpu::percpu::PerCpu;
use crate::interrupts::{kick, vgic_cpu};
use crate::machine::machine;

/// ICC_CTLR_EL1.EOImode.
const EOI_MODE: u64 = 1 << 1;
/// The value of ICC_RPR_EL1 when no interrupt is active.
const IDLE_PRIORITY: u64 = 0xff;

/// The registers of a CPU interface that software sets.
struct Settings {
    priority_mask: u64,
    binary_point: u64,
    split_eoi: bool,
    group1: bool,
}

impl Settings {
    /// Reads the guest's settings of the virtual interface (ICH_VMCR_EL2: VPMR
    /// 31:24, VBPR1 20:18, VEOIM 9, VENG1 1; IHI 0069H, 12.4.8).
    fn read_virtual() -> Self {
        let vmcr = ICH_VMCR_EL2.get();
        Self {
            priority_mask: vmcr >> 24 & 0xff,
            binary_point: vmcr >> 18 & 7,
            split_eoi: vmcr & 1 << 9 != 0,
            group1: vmcr & 1 << 1 != 0,
        }
    }

    /// Writes the settings to the guest's virtual interface.
    fn write_virtual(&self) {
        let fields = 0xff << 24 | 7 << 18 | 1 << 9 | 1 << 1;
        let vmcr = ICH_VMCR_EL2.get() & !fields
            | self.priority_mask << 24
            | self.binary_point << 18
            | u64::from(self.split_eoi) << 9
            | u64::from(self.group1) << 1;
        ICH_VMCR_EL2.set(vmcr);
    }

    /// Reads the settings of the physical interface.
    fn read_physical() -> Self {
        Self {
            priority_mask: ICC_PMR_EL1.get(),
            binary_point: ICC_BPR1_EL1.get(),
            split_eoi: ICC_CTLR_EL1.get() & EOI_MODE != 0,
            group1: ICC_IGRPEN1_EL1.get() & 1 != 0,
        }
    }

    /// Writes the settings to the physical interface.
    fn write_physical(&self) {
        let control = ICC_CTLR_EL1.get() & !EOI_MODE;
        ICC_PMR_EL1.set(self.priority_mask);
        ICC_BPR1_EL1.set(self.binary_point);
        ICC_CTLR_EL1.set(control | if self.split_eoi { EOI_MODE } else { 0 });
        ICC_IGRPEN1_EL1.set(u64::from(self.group1));
        insn::isb();
    }
}

/// Gives the CPU interface to the guest; `None` while the guest has an interrupt active.
pub fn give_interface(cpu: &PerCpu) -> Option<()> {
    if cpu.vcpu.switch.is_direct() {
        return Some(());
    }
    // With a GICv2, the guest sends SGIs through GICD_SGIR, whose targets and doorbell EL2 controls.
    if machine().platform.gic.version2.is_some() || vgic_cpu::has_active_priorities() {
        return None;
    }
    let Some(left) = vgic_cpu::go_direct(cpu) else {
        kick::serve_requests(cpu);
        return None;
    };
    kick::serve_rare_requests(cpu, left);
    vgic_cpu::release_spis(cpu);
    Settings::read_virtual().write_physical();
    Some(())
}

/// Takes the CPU interface back from a vCPU that is turned off, perhaps in the middle of a handler.
/// Running priorities are lost, as in a real interface that loses power. Active interrupts stay
/// active, as in a real redistributor.
pub fn reclaim_interface(cpu: &PerCpu) {
    if cpu.vcpu.switch.is_direct() {
        // The call also clears the active priorities of Group 0, which only a guest can have used; otherwise, EL2
        // would not get its own interrupts.
        gic_cpu::forget_active(vgic_cpu::has_group0());
        vgic_cpu::end_direct(cpu);
        vgic_cpu::update_cpu(cpu);
    }
    vgic_cpu::clear_guest();
}

/// Takes the CPU interface back; `None` while the guest has an interrupt active. The running
/// priority alone does not show this if the guest ends interrupts in two steps.
pub fn take_interface(cpu: &PerCpu) -> Option<()> {
    if !cpu.vcpu.switch.is_direct() {
        return Some(());
    }
    if ICC_RPR_EL1.get() != IDLE_PRIORITY {
        return None;
    }
    // The settings are read before EL2 writes its own.
    let settings = Settings::read_physical();
    vgic_cpu::leave_direct(cpu)?;
    settings.write_virtual();
    // Interrupts that could not be delivered directly may be delivered now.
    vgic_cpu::update_cpu(cpu);
    Some(())
}
