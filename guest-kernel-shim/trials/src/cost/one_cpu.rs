// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the paths that involve only one CPU.

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Writeable};
use arch::{gic_cpu, insn};
use core::arch::asm;
use cost::Path;

use super::{empty_caches, mark_begin, mark_end, pass_count, settling_us};
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

pub fn cost_hypercall() {
    for _ in 0..pass_count() {
        empty_caches();
        pass_call::<{ Path::Hypercall as u8 }>(NOBODY);
    }
}

pub fn cost_service() {
    for _ in 0..pass_count() {
        empty_caches();
        pass_call::<{ Path::Service as u8 }>(SMCCC_VERSION);
    }
}

/// Makes one pass of `PATH`, a call of `function`; not inlined, so that the same instructions make all
/// passes.
#[inline(never)]
fn pass_call<const PATH: u8>(function: u64) {
    let function = core::hint::black_box(function);
    mark_begin::<PATH>();
    // SAFETY: an unknown function and SMCCC_VERSION change no register but x0 to x17 (DEN0028F,
    // 2.6).
    unsafe { asm!("hvc #0", inout("x0") function => _, clobber_abi("C")) };
    mark_end::<PATH>();
}

pub fn cost_wfe() {
    for _ in 0..pass_count() {
        empty_caches();
        // An empty event register makes the next WFE wait.
        insn::forget_events();
        mark_begin::<{ Path::Wfe as u8 }>();
        insn::wfe();
        mark_end::<{ Path::Wfe as u8 }>();
    }
}

pub fn cost_timer() {
    let me = PerCpu::this();
    interrupts::redistributor(me).enable_all(1 << machine::platform().timer.virt);
    for _ in 0..pass_count() {
        journal(me).clear();
        empty_caches();
        mark_begin::<{ Path::Timer as u8 }>();
        CNTV_CVAL_EL0.set(clock::now() + clock::us_to_ticks(settling_us() * 2));
        CNTV_CTL_EL0.set(1);
        insn::isb();
        while journal(me).count() == 0 {
            insn::yield_now();
        }
        mark_end::<{ Path::Timer as u8 }>();
    }
    CNTV_CTL_EL0.set(0);
}

/// Sends SGIs 2 to 6 at once: one SGI more than most machines have list registers.
pub fn cost_maintenance() {
    const SGIS: core::ops::Range<u32> = 2..7;
    let me = PerCpu::this();
    interrupts::redistributor(me).enable_all(0xffff);
    for _ in 0..pass_count() {
        journal(me).clear();
        insn::mask_irq();
        for intid in SGIS {
            gic_cpu::send_sgi(intid, me.mpidr);
        }
        empty_caches();
        clock::pause(clock::us_to_ticks(settling_us()));
        mark_begin::<{ Path::Maintenance as u8 }>();
        insn::unmask_irq();
        while journal(me).count() < SGIS.len() {
            insn::yield_now();
        }
        mark_end::<{ Path::Maintenance as u8 }>();
    }
}

/// Returns the address of GICD_IIDR.
pub fn iidr() -> *const u32 {
    (machine::platform().gic.distributor.base + IIDR) as *const u32
}

pub fn cost_mmio() {
    let register = iidr();
    for _ in 0..pass_count() {
        empty_caches();
        mark_begin::<{ Path::Mmio as u8 }>();
        // SAFETY: this is a register of the distributor, which the description names and `start` has mapped; reading it
        // changes nothing. The load is in assembly, without write-back, so that the syndrome describes it completely.
        unsafe { asm!("ldr {0:w}, [{1}]", out(reg) _, in(reg) register, options(nostack)) };
        mark_end::<{ Path::Mmio as u8 }>();
    }
}
