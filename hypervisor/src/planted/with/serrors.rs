// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes the SErrors that are asked for. No emulator in use here generates SErrors, so the
//! syndrome is made up: it is written to ESR_EL2, and the code branches to the vector as if the
//! SError had been taken. From there to the return, everything happens as with a real SError.

use plan::{Fault, SerrorFault};
use trap::serror::Taken;

use super::asked::asked_fault;
use crate::cpu::percpu::PerCpu;
use crate::dumps::serror;

/// Offsets in the vectors (DDI 0487K.a, D1.3.1.5): an SError from this level, and from a lower one.
const FROM_EL2: u64 = 0x380;
const FROM_GUEST: u64 = 0x580;
/// Class, IL, and the DFSC that makes AET valid.
const SERROR: u64 = 0x2f << 26 | 1 << 25 | 0x11;
/// Values of the syndrome for each AET.
const UNCONTAINABLE: u64 = SERROR;
const RESTARTABLE: u64 = SERROR | 0b010 << 10;
const RECOVERABLE: u64 = SERROR | 0b011 << 10;
const CORRECTED: u64 = SERROR | 0b110 << 10;
/// DFSC 0: uncategorized.
const UNCATEGORIZED: u64 = SERROR & !0x3f;
/// DISR_EL1 of a restartable SError that was deferred.
pub const DEFERRED: u64 = 1 << 31 | 0b010 << 10 | 0x11;

unsafe extern "C" {
    /// Branches to the vector at `offset` with the syndrome `esr`. If the handler returns, the
    /// result is 0, or 1 if a general register has changed.
    ///
    /// # Safety
    /// The caller must run at EL2; nothing else is required.
    safe fn el2_as_if_serror(esr: u64, offset: u64) -> u64;
}

core::arch::global_asm!(
    r#"
    .section .text.planted_serrors, "ax"
el2_as_if_serror:
    stp     x29, x30, [sp, #-128]!
    stp     x19, x20, [sp, #16]
    stp     x21, x22, [sp, #32]
    stp     x23, x24, [sp, #48]
    stp     x25, x26, [sp, #64]
    stp     x27, x28, [sp, #80]
    mrs     x2, elr_el2
    mrs     x3, spsr_el2
    stp     x2, x3, [sp, #96]
    mrs     x2, esr_el2
    str     x2, [sp, #112]
    msr     esr_el2, x0
    adr     x2, 1f
    msr     elr_el2, x2
    mrs     x3, daif
    orr     x3, x3, #1                      // EL2 with SP_EL2: 0b1001
    orr     x3, x3, #8
    msr     spsr_el2, x3
    isb
    mrs     x2, vbar_el2
    add     x2, x2, x1
    .irp    n, 0,1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    mov     x\n, #(0x500 + \n)
    .endr
    br      x2
1:
    .irp    n, 0,1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    cmp     x\n, #(0x500 + \n)
    b.ne    2f
    .endr
    mov     x0, #0
    b       3f
2:  mov     x0, #1
3:  ldr     x2, [sp, #112]
    msr     esr_el2, x2
    ldp     x2, x3, [sp, #96]
    msr     elr_el2, x2
    msr     spsr_el2, x3
    isb
    ldp     x27, x28, [sp, #80]
    ldp     x25, x26, [sp, #64]
    ldp     x23, x24, [sp, #48]
    ldp     x21, x22, [sp, #32]
    ldp     x19, x20, [sp, #16]
    ldp     x29, x30, [sp], #128
    ret
    "#,
);

/// Causes the SErrors that are asked for when the first cell begins, while the guest measures.
#[inline(never)]
pub fn at_cell(cell: u64, pass: u64) {
    let Some(Fault::Serror(fault)) = asked_fault() else {
        return;
    };
    if (cell, pass) != (1, 0) {
        return;
    }
    match fault {
        SerrorFault::GoOn => {
            fake(FROM_GUEST, CORRECTED);
            fake(FROM_GUEST, RESTARTABLE);
            serror::with_serrors(PerCpu::this(), Taken::InEl2, || fake(FROM_EL2, RESTARTABLE));
        }
        SerrorFault::Recoverable => fake(FROM_GUEST, RECOVERABLE),
        SerrorFault::Uncontainable => fake(FROM_GUEST, UNCONTAINABLE),
        SerrorFault::Uncategorized => fake(FROM_GUEST, UNCATEGORIZED),
    }
}

fn fake(vector: u64, esr: u64) {
    let changed = el2_as_if_serror(esr, vector);
    assert!(
        changed == 0,
        "the vector at {vector:#x} changes a general register"
    );
}
