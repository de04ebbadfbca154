// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes the paths that one CPU takes by itself.

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Writeable};
use arch::{gic_cpu, insn};
use core::arch::asm;
use cost::Path;

use super::{begin, cool, end, passes, settling};
use guest_kernel_shim::interrupts::{self, journal};
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{clock, machine};

/// A function identifier that is not assigned (DEN0028F, 6.1: a vendor-specific hypervisor service
/// with a number that is not assigned).
const NOBODY: u64 = 0x4b00_0000;
/// A call that the hypervisor serves (DEN0028F, 7.2).
const SMCCC_VERSION: u64 = 0x8000_0000;
/// GICD_IIDR (IHI 0069H, 12.9.17).
const IIDR: u64 = 0x8;

pub fn hypercall() {
    for _ in 0..passes() {
        cool();
        call::<{ Path::Hypercall as u8 }>(NOBODY);
    }
}

pub fn service() {
    for _ in 0..passes() {
        cool();
        call::<{ Path::Service as u8 }>(SMCCC_VERSION);
    }
}

/// Makes one pass of `PATH`, a call of `function`; not inlined, so that the same instructions make all
/// passes.
#[inline(never)]
fn call<const PATH: u8>(function: u64) {
    let function = core::hint::black_box(function);
    begin::<PATH>();
    // SAFETY: an unknown function and SMCCC_VERSION change no register but x0 to x17 (DEN0028F,
    // 2.6).
    unsafe { asm!("hvc #0", inout("x0") function => _, clobber_abi("C")) };
    end::<PATH>();
}

pub fn wfe() {
    for _ in 0..passes() {
        cool();
        // This makes the next WFE wait.
        insn::forget_events();
        begin::<{ Path::Wfe as u8 }>();
        insn::wfe();
        end::<{ Path::Wfe as u8 }>();
    }
}

pub fn timer() {
    let me = PerCpu::this();
    interrupts::redistributor(me).enable_all(1 << machine::platform().timer.virt);
    for _ in 0..passes() {
        journal(me).clear();
        cool();
        begin::<{ Path::Timer as u8 }>();
        CNTV_CVAL_EL0.set(clock::now() + clock::ticks(settling() * 2));
        CNTV_CTL_EL0.set(1);
        insn::isb();
        while journal(me).count() == 0 {
            insn::yield_now();
        }
        end::<{ Path::Timer as u8 }>();
    }
    CNTV_CTL_EL0.set(0);
}

/// Sends SGIs 2 to 6 at once, one more than there are list registers on most machines.
pub fn maintenance() {
    const SGIS: core::ops::Range<u32> = 2..7;
    let me = PerCpu::this();
    interrupts::redistributor(me).enable_all(0xffff);
    for _ in 0..passes() {
        journal(me).clear();
        insn::mask_irq();
        for intid in SGIS {
            gic_cpu::send_sgi(intid, me.mpidr);
        }
        cool();
        clock::pause(clock::ticks(settling()));
        begin::<{ Path::Maintenance as u8 }>();
        insn::unmask_irq();
        while journal(me).count() < SGIS.len() {
            insn::yield_now();
        }
        end::<{ Path::Maintenance as u8 }>();
    }
}

pub fn mmio() {
    let register = (machine::platform().gic.distributor.base + IIDR) as *const u32;
    for _ in 0..passes() {
        cool();
        begin::<{ Path::Mmio as u8 }>();
        // SAFETY: this is a register of the distributor, which the description names and `start` has mapped; reading it
        // changes nothing. The load is in assembly, without write-back, so that the syndrome describes it completely.
        unsafe { asm!("ldr {0:w}, [{1}]", out(reg) _, in(reg) register, options(nostack)) };
        end::<{ Path::Mmio as u8 }>();
    }
}
