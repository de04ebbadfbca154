// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program of the hostile neighbour: each unit makes each of the program's forbidden attempts once.
//!
//! The program gives each of the neighbour's own registers a value that is not the vCPU's, and checks that the register
//! still has that value after some time, during which turns end and begin. Then the program tries to harm the vCPU:
//! through interrupts, timers, PMU, debug registers, keys and memory, through calls, by invalidating TLBs and caches,
//! and by consuming and sending events. The program steps over every instruction that EL2 refuses.
//!
//! For its first units, the program's stage 1 is off, and the stage-1 registers have values with which it could not run.
//! Then the program turns stage 1 on.

use core::ops::Range;

use crate::neighbour::place::{TABLE, VECTORS};

core::arch::global_asm!(
    r#"
    .arch_extension fp
    .arch_extension simd
    .arch_extension pauth
    .section .rodata.neighbour, "a"
    .balign 8

    // Gives a register the value x9 + \add, and notes the value read back.
    .macro give register, at, add
        add     x10, x9, #\add
        msr     \register, x10
        isb
        mrs     x10, \register
        str     x10, [x4, #8 * \at]
    .endm

    // Gives a register the value \value, likewise.
    .macro set register, at, value
        msr     \register, \value
        isb
        mrs     x10, \register
        str     x10, [x4, #8 * \at]
    .endm

    // Notes the value of a register.
    .macro note register, at, rest:vararg
        mrs     x10, \register
        str     x10, [x4, #8 * \at]
    .endm

    // Counts the register as damaged if its value is not the noted one.
    .macro look register, at, add=0
        mrs     x10, \register
        ldr     x11, [x4, #8 * \at]
        bl      hostile_compare
    .endm

    .macro registers what, values:vararg
        \what   tpidr_el0, 0, \values
        \what   tpidr_el1, 1, \values
        \what   tpidrro_el0, 2, \values
        \what   contextidr_el1, 3, \values
        \what   far_el1, 4, \values
        \what   esr_el1, 5, \values
        \what   elr_el1, 6, \values
        \what   sp_el0, 7, \values
        \what   ttbr1_el1, 8, \values
        \what   par_el1, 9, \values
        \what   csselr_el1, 10, \values
        \what   cntkctl_el1, 11, \values
        \what   afsr0_el1, 12, \values
        \what   amair_el1, 13, \values
        \what   spsr_el1, 14, \values
        \what   afsr1_el1, 15, \values
    .endm

    // CCSIDR_EL1 depends on CSSELR_EL1; CTR_EL0 and CLIDR_EL1 belong to the CPU.
    .macro cache_registers what
        \what   ccsidr_el1, 20
        \what   clidr_el1, 21
        \what   ctr_el0, 22
    .endm

    // x0: address of the program's counts; x4: address of the noted values, in the same page.
    .global el2_program_hostile
el2_program_hostile:
    add     x4, x0, #64
    mov     x18, #{vectors}
    msr     vbar_el1, x18
    mov     x9, #0x5a00
    movk    x9, #0x5a5a, lsl #16
    mov     sp, x9
    isb
    mov     x15, xzr
1:  cmp     x15, #{units_off}
    b.ne    4f
    mov     x20, #0xff
    msr     mair_el1, x20
    movz    x20, #0x0080, lsl #16
    movk    x20, #0x3519
    movk    x20, #0x0002, lsl #32
    msr     tcr_el1, x20
    mov     x20, #{table}
    msr     ttbr0_el1, x20
    isb
    mrs     x20, sctlr_el1
    mov     x21, #0x1005                    // M, C, I
    orr     x20, x20, x21
    msr     sctlr_el1, x20
    isb
4:  mov     x12, #0x5b5b
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    add     x10, x12, #\n
    dup     v\n\().2d, x10
    .endr
    mov     x10, #1 << 24
    msr     fpcr, x10
    mov     x10, #1 << 27
    msr     fpsr, x10
    registers give, 1
    // A value that was read back could have been the vCPU's all along.
    mrs     x10, contextidr_el1
    add     x11, x9, #1
    bl      hostile_compare
    cache_registers note
    // Values of stage 1: any values while it is off; afterwards ASIDs, TBI0 and further indexes.
    mrs     x21, sctlr_el1
    mvn     x20, x9
    tbz     w21, #0, 5f
    mov     x20, #{table}
    bfi     x20, x15, #48, #8
5:  set     ttbr0_el1, 16, x20
    mvn     x20, x9
    tbz     w21, #0, 5f
    lsl     x20, x9, #16
    orr     x20, x20, #0xff
5:  set     mair_el1, 17, x20
    mov     x11, x20
    bl      hostile_compare
    lsl     x20, x9, #8
    tbz     w21, #0, 5f
    mrs     x20, tcr_el1
    bfi     x20, x15, #37, #1
5:  set     tcr_el1, 18, x20
    bfi     x21, x15, #15, #1               // UCT
    set     sctlr_el1, 19, x21
    note    cpacr_el1, 23

    mov     x13, #100
2:  yield
    subs    x13, x13, #1
    b.ne    2b

    registers look
    cache_registers look
    look    ttbr0_el1, 16
    look    mair_el1, 17
    look    tcr_el1, 18
    look    sctlr_el1, 19
    look    cpacr_el1, 23
    mov     x10, sp
    mov     x11, x9
    bl      hostile_compare
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    mov     x10, v\n\().d[0]
    add     x11, x12, #\n
    bl      hostile_compare
    mov     x10, v\n\().d[1]
    bl      hostile_compare
    .endr
    mrs     x10, fpcr
    mov     x11, #1 << 24
    bl      hostile_compare
    mrs     x10, fpsr
    mov     x11, #1 << 27
    bl      hostile_compare

    // The PMU.
    mov     x10, #7
    msr     pmcr_el0, x10
    mov     x10, #-1
    msr     pmcntenset_el0, x10
    msr     pmccntr_el0, x10
    msr     pmuserenr_el0, x10
    // Debug.
    msr     dbgbvr0_el1, xzr
    mov     x10, #0x1e5
    msr     dbgbcr0_el1, x10
    mov     x10, #1 << 15
    msr     mdscr_el1, x10
    msr     oslar_el1, x10
    // Interrupts.
    mrs     x10, S3_0_C12_C12_0             // ICC_IAR1_EL1
    mov     x10, #27
    msr     S3_0_C12_C12_1, x10             // ICC_EOIR1_EL1
    msr     S3_0_C12_C11_1, x10             // ICC_DIR_EL1
    msr     S3_0_C4_C6_0, xzr               // ICC_PMR_EL1
    msr     S3_0_C12_C12_7, xzr             // ICC_IGRPEN1_EL1
    msr     S3_0_C12_C12_3, x10             // ICC_BPR1_EL1
    msr     S3_0_C12_C12_5, xzr             // ICC_SRE_EL1
    msr     S3_0_C12_C9_0, xzr              // ICC_AP1R0_EL1
    mov     x10, #1 << 40
    msr     S3_0_C12_C11_5, x10             // ICC_SGI1R_EL1, to all others
    // Timers.
    msr     cntv_cval_el0, xzr
    mov     x10, #2
    msr     cntv_ctl_el0, x10
    msr     cntp_cval_el0, xzr
    mov     x10, #1
    msr     cntp_ctl_el0, x10
    // Keys.
    msr     S3_0_C2_C1_0, x9                // APIAKeyLo_EL1
    msr     S3_0_C2_C1_1, x9
    msr     S3_0_C2_C3_0, x9                // APGAKeyLo_EL1
    mrs     x10, S3_0_C2_C1_0
    // Errors that were deferred, and other vCPUs' registers.
    msr     S3_0_C12_C1_1, x9               // DISR_EL1
    msr     S3_0_C13_C0_7, x9               // SCXTNUM_EL1
    // Calls: turn the vCPU's CPU off, turn knobs.
    mov     x19, x0
    mov     x0, #0x84000000
    movk    x0, #2
    hvc     #0
    mov     x0, #0x84000000
    movk    x0, #8
    smc     #0
    movz    x0, #0xc600, lsl #16
    movk    x0, #1
    mov     x1, #0
    mov     x2, #0
    hvc     #0
    mov     x0, x19
    // Memory: unmapped addresses within and beyond its own table.
    mov     x10, #0x10000000
    ldr     x11, [x10]
    str     x11, [x10]
    mov     x10, #0x40000000
    ldr     x11, [x10]
    str     x11, [x10]
    // TLBs and caches, events, waits.
    tlbi    vmalle1is
    tlbi    vmalle1
    dsb     ish
    ic      iallu
    dc      isw, xzr
    dsb     sy
    isb
    clrex
    sev
    wfe
    wfe
    wfi
    ldr     x1, [x0]
    add     x1, x1, #1
    str     x1, [x0]
    add     x15, x15, #1
    yield
    b       1b

hostile_compare:
    cmp     x10, x11
    b.eq    3f
    ldr     x1, [x0, #8]
    add     x1, x1, #1
    str     x1, [x0, #8]
3:  ret
    .if     . - el2_program_hostile > {vectors}
    .error  "no room for the program"
    .endif

    // The program's vectors: after any exception, the program continues after the instruction that caused it.
    .balign 8
    .global el2_program_hostile_end
el2_program_hostile_end:
hostile_vectors:
    .rept   16
    mrs     x18, elr_el1
    add     x18, x18, #4
    msr     elr_el1, x18
    eret
    .fill   28, 4, 0xd503201f
    .endr
    .global el2_program_hostile_vectors_end
el2_program_hostile_vectors_end:
    "#,
    units_off = const UNITS_OFF,
    table = const TABLE,
    vectors = const VECTORS,
);

/// Number of units that the program does while its stage 1 is off.
const UNITS_OFF: u64 = 8;

arch::symbol_addresses! {
    /// The program.
    start = el2_program_hostile;
    /// The program's end, where its vectors begin.
    end = el2_program_hostile_end;
    /// The end of the vectors.
    vectors_end = el2_program_hostile_vectors_end;
}

/// Returns the program and its vectors, which are constants of this image.
pub fn hostile_program() -> Option<(Range<u64>, Range<u64>)> {
    Some((start()..end(), end()..vectors_end()))
}
