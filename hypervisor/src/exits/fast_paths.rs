// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common case of the exits that are measured most, in assembly: in their vectors
//! and behind them.
//!
//! A Rust function may change nineteen registers, so the way to one saves and restores
//! as many. These exits need four. Each is written out here for its one common case.
//! Everything else, from a deadline to a list register in use, goes to the Rust handler
//! as if it had gone there first. Nothing is changed before that is decided, but for the
//! interrupt that was acknowledged, whose number goes along. The Rust handlers
//! ([`crate::exits::synchronous::fast`], [`crate::interrupts::irq`]) do everything that is
//! done here as well, and do all of it where events are traced.
//!
//! Each does only what the architecture requires:
//!
//! - No exit needs a barrier. Exception entry and return are context
//!   synchronization events (DDI 0487K.a, D1.3.2 and D1.4.1), so a register that
//!   is written here has its effect at the return.
//! - The guest's own DSB makes visible what it stored before it sent an SGI. It needs
//!   that DSB without a hypervisor too (IHI 0069H, 12.1.6).
//! - ESR_EL2 says what happened. ELR_EL2 is moved past an instruction that trapped, but
//!   not past HVC, which has been executed (D1.3.1.4).
//! - A physical interrupt is acknowledged (ICC_IAR1_EL1), its priority dropped
//!   (ICC_EOIR1_EL1) and, an SGI, deactivated (ICC_DIR_EL1): EL2 has EOImode 1,
//!   so that the end of a timer's interrupt can be left to the guest
//!   (IHI 0069H, 4.6.2 and 5.2.1).
//! - ICH_ELRSR_EL2 says whether the list register is free: the guest frees it
//!   without EL2 (12.4). ICH_LR\<n\>_EL2 makes the interrupt the guest's.
//! - TPIDR_EL2 leads to this CPU's memory. It is read again where that costs less than
//!   saving another register. The stack pointer leads there too: the stack is empty at
//!   each exit, and ends where that memory begins.
//! - A timer's interrupt that the guest can't take at once is looked at again when it
//!   does (`fast_line_watch`, [`crate::interrupts::vgic_cpu::watch`]). This is not done
//!   after a wait, nor in the vectors for a guest whose WFI may be what was interrupted.
//!
//! The offsets of what is used below come from the types.

/// Instructions that do nothing, planted in the SGI path so that a test can see the gate
/// on its length notice them. None unless a build sets `ROUSE_PLANTED_NOPS`, a digit.
pub const PLANTED: u8 = match option_env!("ROUSE_PLANTED_NOPS") {
    Some(digit) => digit.as_bytes()[0] - b'0',
    None => 0,
};

/// ESR_EL2 of a write of ICC_SGI1R_EL1 from x1: class, IL, and the ISS that
/// names the register (DDI 0487K.a, D23.2.39).
pub const ESR_SGI_FROM_X1: u64 = 0x623a_3036;
/// ESR_EL2 of WFI, unconditional; that of WFE is one more.
pub const ESR_WFI: u64 = 0x07e0_0000;

/// Assembler macros: the vectors, and what does not fit there. To be used in
/// one block, once, with the operands that [`crate::exits::vectors`] gives.
///
/// The frame is that of `save_caller`; x0 to x3 are in it when a `slow_` label,
/// which saves what else that saves, is reached, and for an interrupt w0 is its INTID.
macro_rules! fast_path_macros {
    () => {
        r#"
    .macro count offset
        ldr     x2, [x0, #\offset]
        add     x2, x2, #1
        str     x2, [x0, #\offset]
    .endm

    // The same where x0 does not lead to this CPU's memory.
    .macro count_here offset
        ldr     x2, [sp, #256 + \offset]
        add     x2, x2, #1
        str     x2, [sp, #256 + \offset]
    .endm

    .macro step_over
        mrs     x0, elr_el2
        add     x0, x0, #4
        msr     elr_el2, x0
    .endm

    .macro leave
        ldp     x2, x3, [sp, #16]
        ldp     x0, x1, [sp], #256
        eret
    .endm

    // A vector has room for 32 instructions.
    .macro fits vector
        .if     . - \vector > 128
        .error  "no room in the vector"
        .endif
    .endm

    // Two bits of the class tell the three exits apart that are likely: 4 and 3
    // are 1 and 1 for a system register (0x18), 1 and 0 for HVC (0x16), 0 for
    // WFI and WFE (0x01). The rest of the syndrome is compared where they lead.
    .macro vector_sync_fast kind
        .balign 128
    fast_sync_\kind:
        stp     x0, x1, [sp, #-256]!
        stp     x2, x3, [sp, #16]
        mrs     x0, esr_el2
        tbz     w0, #30, fast_wait
        tbz     w0, #29, fast_call
        mov     w2, #{esr_sgi} & 0xffff
        movk    w2, #{esr_sgi} >> 16, lsl #16
        cmp     w0, w2
        b.ne    slow_sync
        // The guest's x1 is what it sends. SGIs from {kicked} on go by a kick.
        ubfx    x0, x1, #24, #4
        cmp     x0, #{kicked}
        b.hs    slow_sync
        mrs     x0, tpidr_el2
        ldr     x2, [x0, #{sgi_fields}]
        and     x2, x2, x1
        msr     S3_0_C12_C11_5, x2              // ICC_SGI1R_EL1
        .rept   {planted}
        nop
        .endr
        count   {count_sgi}
        step_over
        leave
        fits    fast_sync_\kind
    .endm

    // Lists the interrupt that is pending. Where the stack pointer is, the stack
    // ends and this CPU's memory begins, 256 bytes higher.
    .macro take kind
        mrs     x0, S3_0_C12_C12_0              // ICC_IAR1_EL1
        cmp     w0, #{private}
        b.hs    slow_irq\kind
        ldr     x2, [sp, #256 + {backlog}]
        cbnz    x2, slow_irq\kind
        add     x1, sp, x0, lsl #{arrival_shift}
        ldp     x2, x3, [x1, #256 + {arrivals}] // value, slot
        cbz     x2, slow_irq\kind
        mrs     x1, S3_4_C12_C11_5              // ICH_ELRSR_EL2
        lsr     x1, x1, x3
        tbz     w1, #0, slow_irq\kind
        cbnz    x3, fast_other_slot\kind
        msr     S3_4_C12_C12_0, x2              // ICH_LR0_EL2
    fast_listed\kind:
        msr     S3_0_C12_C12_1, x0              // ICC_EOIR1_EL1
        tbnz    x2, #{hw}, fast_line\kind      // the guest deactivates it
        msr     S3_0_C12_C11_1, x0              // ICC_DIR_EL1
        .ifnc   \kind,_watch
    fast_line\kind:
        .endif
    fast_counted\kind:
        // What ended a wait was no exception.
        .ifc    \kind,_wait
        count_here {count_listed}
        .else
        count_here {count_interrupt}
        .endif
        leave
    .endm

    .macro vector_irq_fast kind
        .balign 128
    fast_irq_\kind:
        stp     x0, x1, [sp, #-256]!
        stp     x2, x3, [sp, #16]
        take    _\kind
        fits    fast_irq_\kind
    .endm

    .macro other_slot kind
    fast_other_slot\kind:
        cmp     x3, #2
        b.hi    3f
        b.eq    2f
        msr     S3_4_C12_C12_1, x2              // ICH_LR1_EL2
        b       fast_listed\kind
    2:  msr     S3_4_C12_C12_2, x2              // ICH_LR2_EL2
        b       fast_listed\kind
    3:  cmp     x3, #3
        b.ne    slow_irq\kind
        msr     S3_4_C12_C12_3, x2              // ICH_LR3_EL2
        b       fast_listed\kind
    .endm

    .macro fast_paths
        other_slot _plain
        other_slot _watch
        other_slot _wait

    // A timer's interrupt that the guest can't take at once is looked at again
    // when it does.
    fast_line_watch:
        mrs     x0, spsr_el2
        tbz     w0, #{masked}, fast_counted_watch
        mrs     x0, S3_4_C12_C11_0              // ICH_HCR_EL2
        orr     x0, x0, #{trap_group1}
        msr     S3_4_C12_C11_0, x0
        b       fast_counted_watch

    fast_taken:
        take    _wait

    fast_wait:
        mov     w2, #{esr_wfi}
        subs    w2, w0, w2
        b.ne    fast_wfe
        mrs     x0, tpidr_el2
        ldr     x2, [x0, #{halt_if}]
        mrs     x1, S3_4_C12_C11_5              // ICH_ELRSR_EL2
        cmp     x1, x2
        b.ne    fast_wait_otherwise
    fast_halt:
        count   {count_halted}
        step_over
        wfi
        b       fast_taken
    fast_wait_otherwise:
        ldr     x2, [x0, #{poll_if}]
        cmp     x1, x2
        b.eq    fast_poll
        ldr     x2, [x0, #{direct_if}]
        cmp     x1, x2
        b.ne    slow_sync
        // An interrupt of the guest ends the WFI as long as it is EL2's.
    fast_halt_direct:
        count   {count_halted}
        step_over
        mrs     x0, hcr_el2
        orr     x1, x0, #{hcr_inject}
        msr     hcr_el2, x1
        isb
        wfi
        msr     hcr_el2, x0
        leave
    fast_poll:
        ldr     x1, [x0, #{poll}]
        mrs     x2, cntvct_el0
        add     x3, x1, x2                      // the end
    1:  mrs     x1, isr_el1
        tbnz    w1, #{irq_pending}, 2f
        mrs     x1, cntvct_el0
        cmp     x1, x3
        yield
        b.lo    1b
        count   {count_miss}
        ldr     x1, [x0, #{direct_if}]
        cmn     x1, #1
        b.eq    fast_halt
        b       fast_halt_direct
    2:  count   {count_wfi}
        count   {count_hit}
        ldr     x1, [x0, #{direct_if}]
        cmn     x1, #1
        step_over
        b.eq    fast_taken
        leave
    fast_wfe:
        cmp     w2, #1
        b.ne    slow_sync
        mrs     x0, tpidr_el2
        count   {count_wfe}
        step_over
        // Under an emulator with one thread the CPU that the guest waits for gets a turn.
        yield
        leave

    // HVC. Rouse has no function that is not a fast call (bit 31; DEN0028F, 2.5): x0
    // becomes NOT_SUPPORTED, and nothing else changes.
    fast_call:
        lsr     w2, w0, #26
        cmp     w2, #{class_hvc}
        b.ne    slow_sync
        ldr     w2, [sp]
        tbnz    w2, #31, slow_sync
        mrs     x0, tpidr_el2
        count   {count_hvc}
        ldp     x2, x3, [sp, #16]
        ldr     x1, [sp, #8]
        mov     x0, #{not_supported}
        add     sp, sp, #256
        eret
    .endm
        "#
    };
}
pub(crate) use fast_path_macros;
