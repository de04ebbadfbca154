// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs code that may fault in any way at any instruction.
//!
//! A synchronous exception during [`run_attempt`] ends the attempt: the handler takes its stack pointer
//! from memory, because the code may have changed any register, notes the syndrome and returns to
//! the caller of [`run_attempt`]. Only one CPU at a time may do this.

use core::arch::{asm, global_asm};
use core::sync::atomic::AtomicU64;

use aarch64_cpu::registers::{CPACR_EL1, Readable, VBAR_EL1, Writeable};
use arch::insn;

/// An exception that ended an attempt.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Trap {
    /// ESR_EL1.
    pub esr: u64,
    /// FAR_EL1.
    pub far: u64,
    /// ELR_EL1.
    pub elr: u64,
    /// SPSR_EL1.
    pub spsr: u64,
}

impl Trap {
    /// Returns the exception's class, ESR_EL1.EC.
    pub const fn class(&self) -> u64 {
        self.esr >> 26 & 0x3f
    }

    /// Returns the fault status code of an abort, ESR_EL1.DFSC or IFSC.
    pub const fn fault(&self) -> u64 {
        self.esr & 0x3f
    }
}

/// The result of an attempt.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Outcome {
    /// The value of x0 when the code returned.
    pub value: u64,
    /// 0 if the code returned, otherwise 1 + the number of the vector, 0 to 15.
    vector: u64,
    trap: Trap,
}

/// Vectors of synchronous exceptions: from EL1 with SP_EL1, and from EL0 in each execution state.
const SAME: u64 = 4;
const LOWER: u64 = 8;
const LOWER_32: u64 = 12;

impl Outcome {
    /// Returns the synchronous exception that ended the attempt, if it came from EL1 itself.
    pub fn trap(&self) -> Option<Trap> {
        (self.vector == 1 + SAME).then_some(self.trap)
    }

    /// Returns the synchronous exception that ended the attempt, if it came from EL0.
    pub fn trap_from_el0(&self) -> Option<Trap> {
        matches!(self.vector, v if v == 1 + LOWER || v == 1 + LOWER_32).then_some(self.trap)
    }

    /// Whether the code returned.
    pub const fn returned(&self) -> bool {
        self.vector == 0
    }

    /// Whether the attempt ended with an undefined instruction at `pc`.
    pub fn is_undefined_at(&self, pc: u64) -> bool {
        self.trap()
            .is_some_and(|trap| trap.esr & !(1 << 25) == 0 && trap.elr == pc)
    }

    /// Whether the attempt ended with a synchronous external abort on a data access to `address`.
    pub fn abort_at(&self, address: u64) -> bool {
        self.trap()
            .is_some_and(|trap| trap.class() == 0x25 && trap.fault() == 0x10 && trap.far == address)
    }
}

/// Shows only the relevant parts of the outcome.
impl core::fmt::Display for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Trap {
            esr,
            far,
            elr,
            spsr,
        } = self.trap;
        match self.vector {
            0 => write!(f, "value {:#x}", self.value),
            _ => write!(
                f,
                "vector {}, ESR {esr:#x} FAR {far:#x} ELR {elr:#x} SPSR {spsr:#x}",
                self.vector - 1
            ),
        }
    }
}

/// Stack pointer of the running attempt.
#[unsafe(no_mangle)]
static HOSTILE_STACK: AtomicU64 = AtomicU64::new(0);

arch::symbol_addresses! {
    /// The vectors that end attempts.
    vectors = hostile_vectors;
}

global_asm!(
    arch::gicv2_site_macro!(),
    r#"
    // In: x0 = code, x1 and x2 = its x0 and x1, x3 = outcome.
    .section .text.hostile, "ax"
hostile_attempt:
    sub     sp, sp, #112
    stp     x19, x20, [sp, #0]
    stp     x21, x22, [sp, #16]
    stp     x23, x24, [sp, #32]
    stp     x25, x26, [sp, #48]
    stp     x27, x28, [sp, #64]
    stp     x29, x30, [sp, #80]
    mrs     x9, daif
    stp     x3, x9, [sp, #96]
    adrp    x9, HOSTILE_STACK
    mov     x10, sp
    str     x10, [x9, :lo12:HOSTILE_STACK]
    mov     x9, x0
    mov     x0, x1
    mov     x1, x2
    blr     x9
    mov     x1, #0
    // In: x0 = value, x1 = 1 + vector.
// strict any rule: the code is hostile.
hostile_return:
    ldr     x3, [sp, #96]
    stp     x0, x1, [x3]
    ldp     x19, x20, [sp, #0]
    ldp     x21, x22, [sp, #16]
    ldp     x23, x24, [sp, #32]
    ldp     x25, x26, [sp, #48]
    ldp     x27, x28, [sp, #64]
    ldp     x29, x30, [sp, #80]
    add     sp, sp, #112
    ret

    // In: x1 = 1 + vector; nothing else is known.
hostile_caught:
    adrp    x9, HOSTILE_STACK
    ldr     x9, [x9, :lo12:HOSTILE_STACK]
    mov     sp, x9
    ldp     x3, x10, [sp, #96]
    mrs     x11, esr_el1
    mrs     x12, far_el1
    stp     x11, x12, [x3, #16]
    mrs     x11, elr_el1
    mrs     x12, spsr_el1
    stp     x11, x12, [x3, #32]
    msr     daif, x10
    clrex
    isb
    mov     x0, #0
    b       hostile_return

    .macro hostile_vector number
        .balign 128
        mov     x1, #(1 + \number)
        b       hostile_caught
    .endm

hostile_irq_version2:
    b       el1_vectors_version2 + 0x280

    .section .text.vectors, "ax"
    .balign 2048
    .global hostile_vectors
hostile_vectors:
    .irp number, 0,1,2,3,4
        hostile_vector \number
    .endr
    .balign 128
    gicv2_instead hostile_irq_version2
    b       el1_vectors + 0x280             // this kernel's own IRQ vector
    .irp number, 6,7,8,9,10,11,12,13,14,15
        hostile_vector \number
    .endr
    .purgem gicv2_instead
    "#
);

/// Runs `code`, the address of instructions that end in a return, with x0 and x1.
///
/// # Safety
/// Whatever the code does, it must not change this CPU's stack above the stack pointer, nor memory
/// that other code uses. The code must run inside of [`with_vectors`].
pub unsafe fn run_attempt(code: u64, a: u64, b: u64) -> Outcome {
    let mut outcome = Outcome::default();
    // SAFETY: the assembly saves the registers that the calling convention keeps, and restores them
    // however the code ends. The outcome is as large as the values that the assembly writes.
    unsafe {
        asm!("bl hostile_attempt", inout("x0") code => _, inout("x1") a => _,
            inout("x2") b => _, inout("x3") &raw mut outcome => _, clobber_abi("C"));
    }
    outcome
}

/// Runs `work` with the vectors that end attempts.
pub fn with_vectors(work: impl FnOnce()) {
    let kept = VBAR_EL1.get();
    VBAR_EL1.set(vectors());
    insn::isb();
    work();
    VBAR_EL1.set(kept);
    insn::isb();
}

/// Runs `work` with FP and SIMD enabled; no other code here uses their registers.
pub fn with_simd(work: impl FnOnce()) {
    /// CPACR_EL1.FPEN.
    const ON: u64 = 3 << 20;
    CPACR_EL1.set(ON);
    insn::isb();
    work();
    CPACR_EL1.set(0);
    insn::isb();
}
