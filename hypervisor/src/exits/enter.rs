// SPDX-License-Identifier: MIT OR Apache-2.0
//! Begins and ends a vCPU: a CPU whose vCPU is turned on enters the guest; a CPU whose vCPU is
//! turned off waits at EL2 until the vCPU is turned on again.

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{
    CNTP_CTL_EL0, CNTV_CTL_EL0, CPACR_EL1, ELR_EL2, SCTLR_EL1, SPSR_EL2, VTCR_EL2, Writeable,
};
use abi::End;
use arch::insn;
use arch::regs::{CNTKCTL_EL1, MDSCR_EL1, VTTBR_EL2};

use crate::cpu::percpu::PerCpu;
use crate::cpu::{controls, traps};
use crate::dumps::serror;
use crate::interrupts::{deliver, irq, vgic_cpu};
use crate::machine::{ending, machine};
use crate::neighbour::turn;

/// SCTLR_EL1 at the entry of a vCPU: the RES1 bits, MMU and caches off.
const SCTLR_EL1_RESET: u64 = 0x30d0_0800;
/// SPSR_EL2 at the entry of a vCPU: EL1 with SP_EL1, all interrupts masked.
const SPSR_RESET: u64 = 0x3c5;

unsafe extern "C" {
    /// Empties the EL2 stack, clears the general registers and enters the guest at ELR_EL2 in the state SPSR_EL2, with
    /// x0 = `context`.
    fn el2_enter_guest(context: u64, stack_top: u64) -> !;
    /// Empties the EL2 stack and waits until the vCPU is turned on.
    fn el2_park(stack_top: u64) -> !;
}

core::arch::global_asm!(
    r#"
    .section .text.enter, "ax"
el2_enter_guest:
    mov     sp, x1
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    mov     x\n, #0
    .endr
    eret

el2_park:
    mov     sp, x0
    bl      {wait}
    udf     #0
    "#,
    wait = sym wait_for_power,
);

/// Turns this CPU's vCPU off and waits until it is turned on again. If it was the last vCPU that
/// was on, ends the machine as `how` says.
pub fn turn_vcpu_off(cpu: &PerCpu, how: End) -> ! {
    deliver::reclaim_interface(cpu);
    turn::end_neighbour(cpu);
    if cpu.vcpu.count_as_off() {
        ending::end_machine(cpu, how);
    }
    cpu.vcpu.set_off();
    // SAFETY: nothing on this stack is needed again.
    unsafe { el2_park(cpu.stack_top) }
}

/// Waits with interrupts masked until the vCPU is turned on, then runs it.
pub extern "C" fn wait_for_power() -> ! {
    let cpu = PerCpu::this();
    loop {
        if cpu.vcpu.is_turned_on() {
            run_vcpu(cpu);
        }
        // A pending SError would end each WFI from here on. The SError is taken before the WFI, because the path from
        // the WFI to a vCPU that was turned on is measured.
        serror::take_pending(cpu);
        insn::wfi();
        irq::take_all(cpu);
    }
}

fn run_vcpu(cpu: &PerCpu) -> ! {
    reset_el1();
    let vcpu = &cpu.vcpu;
    ELR_EL2.set(vcpu.entry());
    SPSR_EL2.set(SPSR_RESET);
    vcpu.recheck_timers.store(true, Relaxed);
    vcpu.trace.copy_to_log(None);
    traps::reset_traps();
    vcpu.set_on();
    traps::review_wait_path(cpu);
    vgic_cpu::update_cpu(cpu);
    // No ISB is needed: the exception return into the guest is a context synchronization event (DDI
    // 0487K.a, D1.4.1).
    // SAFETY: ELR and SPSR lead to EL1, and nothing on this stack is needed again.
    unsafe { el2_enter_guest(vcpu.context(), cpu.stack_top) }
}

/// Sets the EL1 and EL2 registers to the values that PSCI promises a CPU that is turned on
/// (DEN0022F.b, 6.4).
fn reset_el1() {
    let (vttbr, vtcr) = machine().stage2;
    VTTBR_EL2.set(vttbr);
    VTCR_EL2.set(vtcr);
    controls::set_control_registers();
    CNTKCTL_EL1.set(0);
    CNTV_CTL_EL0.set(0);
    CNTP_CTL_EL0.set(0);
    MDSCR_EL1.set(0);
    SCTLR_EL1.set(SCTLR_EL1_RESET);
    CPACR_EL1.set(0);
    // After this ISB, the TLBI applies to the new VMID in VTTBR_EL2. The TLBI is certain to have
    // affected this PE's own TLB only after the DSB (DDI 0487K.a, D8.17.5).
    insn::isb();
    insn::tlbi_vmalle1();
    insn::dsb_nsh();
}
