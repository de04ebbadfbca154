// SPDX-License-Identifier: MIT OR Apache-2.0
//! Breaks rules of the architecture that an emulator tolerates, for `rouse.fault=el2-breaks-rules`: `cargo xtask test
//! --strict` has to notice each violation in a running image. Each function breaks the rule that it is named after
//! (crate `rules`), once, on the first CPU, and restores the state.

use core::arch::asm;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU64, compiler_fence};

use aarch64_cpu::registers::{
    CNTVCT_EL0, HCR_EL2, Readable, SCTLR_EL2, TTBR0_EL2, VTCR_EL2, Writeable,
};
use arch::gicv2::REGISTERS;
use arch::regs::{ICH_AP0R0_EL2, ICH_AP1R0_EL2, ICH_ELRSR_EL2, Register, set_ich_lr};
use arch::{gic_cpu, insn};
use gic::gich;

use crate::cpu::percpu::PerCpu;
use crate::machine::machine;

/// A word on its own cache line.
#[repr(align(64))]
struct Line(AtomicU64);

/// Stores a word to a register of the interrupt controller. This is a macro so that reports name the calling function.
macro_rules! store {
    ($register:expr, $value:expr) => {
        // SAFETY: the address is that of a register which is mapped, and this CPU's own.
        unsafe {
            asm!("str {value:w}, [{register}]", value = in(reg) $value, register = in(reg) $register,
                options(nostack, preserves_flags));
        }
    };
}

/// Breaks the rules that can be broken without an exception.
pub fn break_all() {
    written_before_read();
    synchronised();
    tlbi_completed();
    break_before_make();
    caches_agree();
    exclusive_memory();
    interrupt_ended();
    active_priorities();
    list_registers();
    if is_version2() {
        gich_read_back();
    } else {
        gic_writes_done();
    }
    tlb_invalidated();
    counter_in_order();
    wait_can_end();
}

fn is_version2() -> bool {
    machine().platform.gic.version2.is_some()
}

fn written_before_read() {
    // No vCPU has run here yet.
    core::hint::black_box(VTCR_EL2.get());
}

fn synchronised() {
    set_ich_lr(0, 0);
    core::hint::black_box(ICH_ELRSR_EL2.get());
    insn::isb();
}

fn tlbi_completed() {
    insn::tlbi_alle2();
    insn::isb();
    insn::dsb_nsh();
}

fn break_before_make() {
    /// An entry of the first level that translates no address in use.
    const UNUSED: u64 = 200;
    let place = (TTBR0_EL2.get() & 0xffff_ffff_f000) + 8 * UNUSED;
    // SAFETY: the entry is in the root of this CPU's tables, which is mapped, and whose memory is never given back.
    // Nothing uses the addresses that it translates.
    let entry = unsafe { &*(place as *const AtomicU64) };
    for descriptor in [0x1003, 0x2003, 0] {
        entry.store(descriptor, Relaxed);
        insn::dsb_ish();
    }
    insn::tlbi_alle2();
    insn::dsb_ish();
    insn::isb();
}

fn caches_agree() {
    static LINE: Line = Line(AtomicU64::new(0));
    let on = SCTLR_EL2.get();
    let off = on & !(1 << 2);
    // SAFETY: the assembly stores to and loads from a variable of this function. SCTLR_EL2.C is off
    // for one store only, with no access to memory by the compiler in between.
    unsafe {
        asm!("msr sctlr_el2, {off}", "isb", "str xzr, [{line}]", "msr sctlr_el2, {on}", "isb", "ldr {value}, [{line}]",
            off = in(reg) off, on = in(reg) on, line = in(reg) LINE.0.as_ptr(), value = out(reg) _,
            options(nostack, preserves_flags));
    }
}

fn exclusive_memory() {
    let distributor = machine().platform.gic.distributor.base;
    // SAFETY: the load reads GICD_CTLR, which is mapped, and which no read changes.
    unsafe {
        asm!("ldxr {value:w}, [{distributor}]", "clrex",
            distributor = in(reg) distributor, value = out(reg) _, options(nostack, preserves_flags));
    }
}

fn interrupt_ended() {
    /// An SGI that EL2 never sends.
    const NONE: u32 = 15;
    /// GICC_EOIR.
    const EOIR: u64 = 0x10;
    if is_version2() {
        store!(REGISTERS.interface.load(Relaxed) + EOIR, NONE);
    } else {
        gic_cpu::end(NONE);
    }
}

fn active_priorities() {
    ICH_AP1R0_EL2.set(0);
    ICH_AP0R0_EL2.set(0);
    insn::isb();
}

fn list_registers() {
    /// The state pending and active, with the bit HW.
    const BOTH_OF_HARDWARE: u64 = 3 << 62 | 1 << 61;
    /// GICH_LR0, and the same fields in it.
    const LR0: u64 = 0x100;
    const BOTH_OF_HARDWARE_2: u32 = 3 << 28 | 1 << 31;
    if is_version2() {
        store!(REGISTERS.control.load(Relaxed) + LR0, BOTH_OF_HARDWARE_2);
    } else {
        set_ich_lr(0, BOTH_OF_HARDWARE);
    }
    set_ich_lr(0, 0);
    insn::isb();
}

fn gich_read_back() {
    /// SPSR_EL2 of the state in which EL2 runs: EL2 with SP_EL2, and all interrupts masked.
    const STATE: u64 = 0x3c9;
    let before = gich::read(Register::ICH_HCR_EL2 as u32);
    // GICH_HCR is the first register.
    store!(REGISTERS.control.load(Relaxed), 0);
    // SAFETY: the exception return leads to the instruction after it, in the state that the CPU is in already. ELR_EL2
    // and SPSR_EL2 hold nothing of use before the guest runs.
    unsafe {
        asm!("adr {next}, 2f", "msr elr_el2, {next}", "msr spsr_el2, {state}", "eret", "2:",
            next = out(reg) _, state = in(reg) STATE, options(nostack));
    }
    gich::write(Register::ICH_HCR_EL2 as u32, before);
}

fn gic_writes_done() {
    /// GICR_ICENABLER0 and GICR_ICPENDR0.
    const ICENABLER: u64 = 0x1_0180;
    const ICPENDR: u64 = 0x1_0280;
    /// A PPI that EL2 has not enabled.
    const UNUSED: u32 = 1 << 16;
    let redistributor = PerCpu::this().redistributor();
    for register in [ICENABLER, ICPENDR] {
        store!(redistributor.base() + register, UNUSED);
    }
    redistributor.disable_all(UNUSED);
}

fn tlb_invalidated() {
    let on = SCTLR_EL2.get();
    // SAFETY: addresses are the same without the MMU, no memory is accessed while it is off, and
    // the translations that TLBs hold have not changed.
    unsafe {
        asm!("msr sctlr_el2, {off}", "isb", "msr sctlr_el2, {on}", "isb",
            off = in(reg) on & !5, on = in(reg) on, options(nostack, preserves_flags));
    }
}

fn counter_in_order() {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    insn::isb();
    for _ in 0..100 {
        SEEN.fetch_add(1, SeqCst);
    }
    SEEN.store(CNTVCT_EL0.get(), Relaxed);
    compiler_fence(SeqCst);
}

fn wait_can_end() {
    /// HCR_EL2.FMO and IMO.
    const ROUTES: u64 = 1 << 3 | 1 << 4;
    let (cpu, hcr) = (PerCpu::this(), HCR_EL2.get());
    // An interrupt is made pending beforehand, to end the wait on an emulator.
    cpu.redistributor().enable_all(machine().doorbell_bit());
    cpu.redistributor().set_pending(machine().doorbell_bit());
    insn::dsb_sy();
    HCR_EL2.set(hcr & !ROUTES);
    insn::isb();
    insn::wfi();
    HCR_EL2.set(hcr);
    insn::isb();
}
