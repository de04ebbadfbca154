// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets general and floating-point registers before an action that gives the CPU away, and reads them after it.

use core::mem::offset_of;

/// The CPU's action between setting its registers and reading them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The CPU executes WFI shortly before an interrupt arrives.
    Wfi,
    /// The CPU executes WFE with an empty event register.
    Wfe,
    /// The CPU runs for a number of ticks, and uses x0 and x1.
    Run(u64),
}

/// v0 to v31 as two halves each; FPCR and FPSR; NZCV; x0 to x30.
#[derive(Clone, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Registers {
    vectors: [u64; 64],
    floating: [u64; 2],
    flags: u64,
    general: [u64; 31],
}

impl Registers {
    /// Returns a different value for each register, for round `round`.
    pub fn for_round(round: u64) -> Self {
        let value = |n: usize| (round << 32 | 0xa000_0000 | n as u64).rotate_left(n as u32);
        Self {
            vectors: core::array::from_fn(|n| value(n + 31)),
            // FPCR: RMode; FPSR: IXC, QC.
            floating: [(round % 4) << 22, 1 << 4 | (round % 2) << 27],
            flags: (round % 16) << 28,
            general: core::array::from_fn(value),
        }
    }

    /// Whether the registers equal `put`, except the registers that `way` uses.
    pub fn agrees(&self, put: &Self, way: Way) -> bool {
        let mut expected = put.clone();
        if let Way::Run(_) = way {
            expected.general[..2].copy_from_slice(&self.general[..2]);
        }
        *self == expected
    }
}

core::arch::global_asm!(
    r#"
    .arch_extension fp
    .arch_extension simd
    .section .text.checks, "ax"

    .macro put_all
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    ldr     q\n, [x0, #16 * \n]
    .endr
    ldr     x4, [x0, #{floating}]
    ldr     x5, [x0, #{floating} + 8]
    msr     fpcr, x4
    msr     fpsr, x5
    ldr     x4, [x0, #{flags}]
    msr     nzcv, x4
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    ldr     x\n, [x0, #{general} + 8 * \n]
    .endr
    ldr     x0, [x0, #{general}]
    .endm

// strict counter-in-order: this read only bounds how long the values stay; nothing is measured.
check_around:
    stp     x29, x30, [sp, #-128]!
    stp     x19, x20, [sp, #16]
    stp     x21, x22, [sp, #32]
    stp     x23, x24, [sp, #48]
    stp     x25, x26, [sp, #64]
    stp     x27, x28, [sp, #80]
    stp     x1, x2, [sp, #96]
    cbz     x2, 1f
    sub     x3, x2, #1
    cbz     x3, 2f
    put_all
    ldr     x1, [sp, #104]
    mrs     x0, cntvct_el0
    add     x1, x0, x1
3:  mrs     x0, cntvct_el0
    sub     x0, x0, x1
    tbnz    x0, #63, 3b
    b       4f
1:  put_all
    wfi
    b       4f
2:  sevl
    wfe
    put_all
    wfe
4:  stp     x0, x1, [sp, #112]
    ldr     x0, [sp, #96]
    .irp    n, 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    str     x\n, [x0, #{general} + 8 * \n]
    .endr
    ldp     x2, x3, [sp, #112]
    str     x2, [x0, #{general}]
    str     x3, [x0, #{general} + 8]
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    str     q\n, [x0, #16 * \n]
    .endr
    mrs     x4, fpcr
    mrs     x5, fpsr
    str     x4, [x0, #{floating}]
    str     x5, [x0, #{floating} + 8]
    mrs     x4, nzcv
    str     x4, [x0, #{flags}]
    ldp     x19, x20, [sp, #16]
    ldp     x21, x22, [sp, #32]
    ldp     x23, x24, [sp, #48]
    ldp     x25, x26, [sp, #64]
    ldp     x27, x28, [sp, #80]
    ldp     x29, x30, [sp], #128
    ret
    "#,
    floating = const offset_of!(Registers, floating),
    flags = const offset_of!(Registers, flags),
    general = const offset_of!(Registers, general),
);

unsafe extern "C" {
    /// In x2: 0 for WFI, 1 for WFE, otherwise ticks.
    fn check_around(put: *const Registers, found: *mut Registers, way: u64);
}

/// Gives the registers the values `put`, performs `way`, and returns their values after it.
pub fn registers_after(put: &Registers, way: Way) -> Registers {
    let mut found = put.clone();
    found.general = [0; 31];
    found.vectors = [0; 64];
    let way = match way {
        Way::Wfi => 0,
        Way::Wfe => 1,
        Way::Run(ticks) => ticks.max(2),
    };
    // SAFETY: the assembly restores the registers that a function has to keep, changes floating-point registers,
    // which no compiled code of this image uses, and writes `found`. The caller lets EL1 use floating point.
    unsafe { check_around(put, &raw mut found, way) };
    found
}
