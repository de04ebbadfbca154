// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles in assembly, in the vectors and in the code after them, the common cases of the most-measured exits.
//!
//! A Rust function may change twenty registers, so the path to it saves and restores twenty. The
//! exits handled here need two. Each of these exits has code here for its most common case. The Rust
//! handler serves every other case, such as a deadline or a list register in use, as if the fast
//! path did not exist. Until it hands over, the fast path changes nothing, except that it
//! acknowledges an interrupt and passes on its number. The Rust handlers
//! ([`crate::exits::synchronous::fast`], [`crate::interrupts::irq`]) can serve all cases, and do so
//! where events are traced.
//!
//! Each fast path does only what the architecture requires:
//!
//! - No exit needs a barrier. Exception entry and return are context
//!   synchronization events (DDI 0487K.a, D1.3.2 and D1.4.1), so a register that
//!   is written here takes effect at the return.
//! - The guest's own DSB makes the stores that precede an SGI visible. The guest needs that DSB
//!   without a hypervisor too (IHI 0069H, 12.1.6).
//! - ESR_EL2 gives the cause. ELR_EL2 is moved past an instruction that trapped; after an HVC,
//!   ELR_EL2 already points past the HVC (D1.3.1.4).
//! - A physical interrupt is acknowledged (ICC_IAR1_EL1) and its priority dropped (ICC_EOIR1_EL1);
//!   an SGI is also deactivated (ICC_DIR_EL1). EL2 has EOImode 1, so the guest can deactivate a
//!   timer's interrupt itself (IHI 0069H, 4.6.2 and 5.2.1).
//! - ICH_ELRSR_EL2 shows whether the list register is free: the guest frees it without EL2
//!   (12.4). No interrupt is listed during a wait, so ICH_ELRSR_EL2 is not read again after a wait.
//!   A write of ICH_LR\<n\>_EL2 gives the interrupt to the guest.
//! - The stack pointer locates this CPU's memory: the stack is empty at each exit, and ends where
//!   that memory begins.
//! - If the guest can't take a timer's interrupt at once, EL2 checks the timer again when the guest takes the
//!   interrupt (`look_again`, [`crate::interrupts::vgic_cpu::trap_next_access`]). EL2 skips this check after a wait,
//!   and in the vectors for a guest that may have been interrupted in a WFI.
//!
//! Other work in the core also costs time (`cargo xtask cost --board gem5`). A write to a system register refills the
//! pipeline, and a store has to complete before the next such write, so each path increments one counter, after its
//! last such write where possible. Code after an ERET is fetched too. If the core fetches the next line while the
//! return takes effect, it looks up that line in the guest's translation regime. The lookup took 30 cycles on gem5's
//! `minor` where an ERET was the fourth instruction of its line. No ERET here is in that position.
//!
//! The offsets used below come from the Rust types.

use crate::cpu::pending_word::FIRST_SGI;

/// The bit of ICC_SGI1R_EL1 that is set only if the INTID is [`FIRST_SGI`] or greater: INTID is in
/// bits 27:24 (IHI 0069H, 12.2).
pub const KICKED: u32 = 24 + FIRST_SGI.trailing_zeros();
const _: () = assert!(FIRST_SGI == 8, "one bit tells them apart");

/// The value of ESR_EL2 for a write of ICC_SGI1R_EL1 from x1: class, IL, and the ISS that names the
/// register (DDI 0487K.a, D23.2.39).
pub const ESR_SGI_FROM_X1: u64 = 0x623a_3036;
/// Bits of ESR_EL2 that distinguish a trapped WFI from other exceptions with bit 30 clear: the class (31:26)
/// without its last bit, and TI (1:0). These bits are 0 for WFI and 1 for WFE. RN and RV describe a register, which
/// WFI does not have, so they are not compared (D23.2.39, ISS encoding for an exception from a WF* instruction).
///
/// Class 0 (unknown reason) has 0 in these bits too, but is not taken from a lower level while
/// HCR_EL2.TGE is 0 (DDI 0487K.a, HCR_EL2, field TGE).
pub const WAIT_BITS: u64 = 0xf800_0003;
const _: () = {
    let class = (trap::esr::WFX as u64) << 26;
    assert!(
        class & WAIT_BITS == 0,
        "only the last bit of its class is set"
    );
    assert!(ESR_SGI_FROM_X1 >> 30 & 1 == 1, "bit 30 tells them apart");
};

/// Defines assembler macros for the vectors, and for the code that does not fit into them. The macros must be used
/// once, in one block, with the operands that [`crate::exits::vectors`] gives.
///
/// The frame has the size of `save_caller`'s frame, but holds only x0 and x2. The code at a `slow_`
/// label completes it. For an interrupt, w0 holds the INTID at that label.
macro_rules! fast_path_macros {
    () => {
        r#"
    // The stack ends where this CPU's memory begins, 256 bytes above the stack pointer.
    .macro count offset
        ldr     x2, [sp, #256 + \offset]
        add     x2, x2, #1
        str     x2, [sp, #256 + \offset]
    .endm

    // x1 is left alone: it may hold the value of the guest's SGI, and nothing else here needs x1.
    .macro enter
        stp     x0, x2, [sp, #-256]!
    .endm

    .macro leave
        ldp     x0, x2, [sp], #256
        eret
        dsb     nsh
        isb
    .endm

    // Turns the two saved registers into the start of a `save_caller` frame.
    .macro save_four
        ldr     x2, [sp, #8]
        str     x1, [sp, #8]
        stp     x2, x3, [sp, #16]
    .endm

    .macro step_over
        mrs     x0, elr_el2
        add     x0, x0, #4
        msr     elr_el2, x0
    .endm

    // A vector has room for 32 instructions.
    .macro fits vector
        .if     . - \vector > 128
        .error  "no room in the vector"
        .endif
    .endm

    // Bit 4 of the class distinguishes WFI and WFE (0x01) from a system register (0x18) and HVC
    // (0x16). The code at the branch target compares the rest of the syndrome.
    .macro vector_sync_fast kind
        .balign 128
    fast_sync_\kind:
        gicv2_instead fast_sync_version2
        enter
        mrs     x0, esr_el2
        tbz     w0, #30, fast_wait
        mov     w2, #{esr_sgi} & 0xffff
        movk    w2, #{esr_sgi} >> 16, lsl #16
        cmp     w0, w2
        b.ne    fast_call
        // x1 is the value that the guest writes. SGIs with this bit set need a kick.
        tbnz    x1, #{kicked}, slow_sync
        ldr     x2, [sp, #256 + {sgi_fields}]
        and     x2, x2, x1
        // ELR_EL2 is read before ICC_SGI1R_EL1 is written, so that the read need not wait for the write.
        mrs     x0, elr_el2
        add     x0, x0, #4
        msr     S3_0_C12_C11_5, x2              // ICC_SGI1R_EL1
        count   {count_sgi}
        msr     elr_el2, x0
        leave
        fits    fast_sync_\kind
    .endm

    // Lists the acknowledged interrupt w0 in list register 0, which is free.
    .macro list kind
        ldr     x2, [sp, #256 + {straight}]
        cmp     w0, w2
        b.hs    slow_irq\kind
        add     x2, sp, x0, lsl #3
        ldr     x2, [x2, #256 + {firsts}]
        cbz     x2, fast_other_slot\kind
        msr     S3_4_C12_C12_0, x2              // ICH_LR0_EL2
    fast_listed\kind:
        msr     S3_0_C12_C12_1, x0              // ICC_EOIR1_EL1
        tbnz    x2, #{hw}, fast_line\kind      // the guest deactivates it
        msr     S3_0_C12_C11_1, x0              // ICC_DIR_EL1
        count_listed \kind
        leave
    .endm

    // The interrupt that ended a wait was not an exception. A halt and its end are counted together.
    .macro count_listed kind
        .ifc    \kind,_wait
        count   {count_waited}
        .else
        .ifc    \kind,_polled
        count   {count_listed}
        .else
        count   {count_interrupt}
        .endif
        .endif
    .endm

    .macro vector_irq_fast kind
        .balign 128
    fast_irq_\kind:
        gicv2_instead fast_irq_version2_\kind
        enter
        .ifc    \kind,foreign
        sevl                                    // see traps::set_recheck_timers
        .endif
        mrs     x2, S3_4_C12_C11_5              // ICH_ELRSR_EL2
        mrs     x0, S3_0_C12_C12_0              // ICC_IAR1_EL1
        tbz     w2, #0, fast_in_use_\kind
        list    _\kind
        fits    fast_irq_\kind
    .endm

    // If a timer's interrupt came while IRQs were masked, makes EL2 check the timer at the acknowledgement.
    .macro look_again
        mrs     x0, spsr_el2
        tbz     w0, #{masked}, 6f
        mrs     x0, S3_4_C12_C11_0              // ICH_HCR_EL2
        orr     x0, x0, #{trap_group1}
        msr     S3_4_C12_C11_0, x0
    6:
    .endm

    // Like `list`, for another list register and for an INTID that the guest deactivates. w0 is
    // the acknowledged interrupt.
    .macro other_slot kind
    fast_in_use\kind:
        ldr     x2, [sp, #256 + {straight}]
        cmp     w0, w2
        b.hs    slow_irq\kind
    fast_other_slot\kind:
        add     x2, sp, x0, lsl #{arrival_shift}
        ldr     x2, [x2, #256 + {arrivals}]
        cbz     x2, slow_irq\kind
        stp     x1, x3, [sp, #16]
        add     x3, sp, x0, lsl #{arrival_shift}
        ldr     x3, [x3, #256 + {arrival_slots}]
        mrs     x1, S3_4_C12_C11_5              // ICH_ELRSR_EL2
        lsr     x1, x1, x3
        tbz     w1, #0, 4f
        cmp     x3, #2
        b.hi    3f
        b.eq    2f
        cbz     x3, 4f
        msr     S3_4_C12_C12_1, x2              // ICH_LR1_EL2
        b       5f
    2:  msr     S3_4_C12_C12_2, x2              // ICH_LR2_EL2
        b       5f
    3:  cmp     x3, #3
        b.ne    4f
        msr     S3_4_C12_C12_3, x2              // ICH_LR3_EL2
    5:  ldp     x1, x3, [sp, #16]
        b       fast_listed\kind
    4:  ldp     x1, x3, [sp, #16]
        b       slow_irq\kind
    fast_line\kind:
        .ifc    \kind,_watch
        look_again
        .endif
        .ifc    \kind,_foreign
        look_again
        .endif
        count_listed \kind
        leave
    .endm

    .macro fast_paths
        other_slot _plain
        other_slot _watch
        other_slot _foreign
        other_slot _wait
        other_slot _polled

    // Up to its ERET, this code fills two cache lines.
        .balign 64
    fast_wait:
        and     w2, w0, #{wait_bits}
        cbnz    w2, fast_wfe
        mrs     x0, S3_4_C12_C11_5              // ICH_ELRSR_EL2
        ldr     x2, [sp, #256 + {halt_if}]
        cmp     x0, x2
        b.ne    fast_wait_otherwise
    fast_halt:
        step_over
        wfi
        mrs     x0, S3_0_C12_C12_0              // ICC_IAR1_EL1
        list    _wait
    fast_wait_otherwise:
        ldr     x2, [sp, #256 + {poll_if}]
        cmp     x0, x2
        b.eq    fast_poll
        ldr     x2, [sp, #256 + {direct_if}]
        cmp     x0, x2
        b.ne    slow_sync
        // The guest's interrupts end the WFI only while they are routed to EL2.
    fast_halt_direct:
        count   {count_halted}
        step_over
        mrs     x0, hcr_el2
        orr     x2, x0, #{hcr_inject}
        msr     hcr_el2, x2
        isb
        wfi
        msr     hcr_el2, x0
        leave
    fast_poll:
        ldr     x0, [sp, #256 + {poll}]
        mrs     x2, cntvct_el0
        add     x2, x2, x0                      // the end
    1:  mrs     x0, isr_el1
        tbnz    w0, #{irq_pending}, 2f
        mrs     x0, cntvct_el0
        cmp     x0, x2
        yield
        b.lo    1b
        count   {count_miss}
        ldr     x2, [sp, #256 + {direct_if}]
        cmn     x2, #1
        b.eq    fast_halt
        b       fast_halt_direct
    2:  count   {count_wfi}
        count   {count_hit}
        step_over
        ldr     x2, [sp, #256 + {direct_if}]
        cmn     x2, #1
        b.eq    3f
        leave
    3:  mrs     x0, S3_0_C12_C12_0              // ICC_IAR1_EL1
        list    _polled
    fast_wfe:
        cmp     w2, #1
        b.ne    fast_abort
        count   {count_wfe}
        step_over
        // Under an emulator with one thread, this gives a turn to the CPU that the guest waits for.
        yield
        leave

    // HVC. All functions of Rouse are fast calls (bit 31; DEN0028F, 2.5): for any
    // other function, x0 becomes NOT_SUPPORTED, and nothing else changes.
    fast_call:
        lsr     w2, w0, #26
        cmp     w2, #{class_hvc}
        b.ne    fast_smc
        ldr     w2, [sp]
        tbnz    w2, #31, slow_sync
        count   {count_hvc}
        ldr     x2, [sp, #8]
        mov     x0, #{not_supported}
        add     sp, sp, #256
        eret
    .endm
        "#
    };
}
pub(crate) use fast_path_macros;
