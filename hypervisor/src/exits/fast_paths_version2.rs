// SPDX-License-Identifier: MIT OR Apache-2.0
//! The [fast paths](crate::exits::fast_paths) on a machine with a GICv2. `arch::gicv2` makes the entries of the
//! vectors branch here.
//!
//! A guest's write of GICD_SGIR is a data abort. The syndrome, the address and the value decide together: SGIs
//! from [`crate::cpu::gicv2::DOORBELL`] on, and target lists that GICD_SGIR derives, go to Rust. Otherwise,
//! the value goes to the physical register, since a vCPU's interface has the same number as its CPU's.
//!
//! A list register takes the value of GICC_IAR unchanged: GICH_LR has the INTID and the SGI's sender in the same
//! bits (IHI 0048B, 4.4.4 and 5.3.8). No barrier is needed: the registers are Device-nGnRE, so one device gets its
//! accesses in order (DDI 0487K.a, B2.8); the guest is interrupted once the write of the list register arrives.

use crate::machine::vm::DISTRIBUTOR;

/// ESR_EL2 of a 32-bit store from w5, where `arch::insn::write_sgi` has the value, to an address without a translation
/// at level 3: class, IL, ISV, SAS 2, SRT 5, WnR (DDI 0487K.a, D23.2.39). The walk gets to level 3 because the table
/// there maps the guest's CPU interface.
pub const ESR_STORE_OF_W5: u64 = 0x9385_0047;
/// HPFAR_EL2 of the distributor: bits 47:12 of the address in 43:4.
pub const HPFAR_DISTRIBUTOR: u64 = DISTRIBUTOR.base >> 12 << 4;
const _: () = assert!(HPFAR_DISTRIBUTOR & 0xfff == 0, "CMP has it as an immediate");

/// Defines assembler macros, which must be used like those of [`crate::exits::fast_paths`].
macro_rules! fast_path_version2_macros {
    () => {
        r#"
    .macro enter_version2
        stp     x1, x3, [sp, #16]
        stp     x4, x5, [sp, #32]
        ldr     x1, [sp, #256 + {version2_control}]
    .endm

    .macro leave_version2
        ldp     x1, x3, [sp, #16]
        ldp     x4, x5, [sp, #32]
    .endm

    // Lists the acknowledged interrupt w0 (GICC_IAR) in list register 0, which is free. x1 is the address of
    // GICH, and x3 that of GICC.
    .macro list_version2 kind
        and     w4, w0, #0x3ff
        ldr     x2, [sp, #256 + {straight}]
        cmp     x4, x2
        b.hs    slow_irq_version2\kind
        cmp     w4, #{doorbell}
        b.eq    slow_irq_version2\kind
        add     x2, sp, x4, lsl #3
        ldr     w2, [x2, #256 + {firsts} + 4]
        cbz     w2, other_slot_version2\kind
        // w2 is the upper half of a GICv3's value: HW (29), priority (23:19), the group (16).
    value_version2\kind:
        and     w5, w2, #0x00f80000
        lsl     w5, w5, #4
        bfxil   w5, w0, #0, #13                 // the rest of GICC_IAR is reserved
        ubfx    w4, w2, #16, #1
        orr     w4, w5, w4, lsl #30
        orr     w4, w4, #1 << 28                // pending
        tbnz    w2, #29, line_version2\kind
        str     w4, [x1, #0x100]                // GICH_LR0
        str     w0, [x3, #0x10]                 // GICC_EOIR
        str     w0, [x3, #0x1000]               // GICC_DIR
        leave_version2
        count_listed \kind
        leave
    .endm

    // Closes the guest's CPU interface until its next access; see `look_again` and `cpu::gicv2`.
    .macro look_again_version2
        mrs     x4, spsr_el2
        tbz     w4, #{masked}, 6f
        ldr     x4, [sp, #256 + {version2_traps}]
        orr     x4, x4, #{trap_group1}
        str     x4, [sp, #256 + {version2_traps}]
        ldr     x4, [sp, #256 + {version2_closed}]
        mrs     x5, vttbr_el2
        cmp     x4, x5
        b.eq    6f
        msr     vttbr_el2, x4
        isb
        tlbi    vmalls12e1
        dsb     nsh
    6:
    .endm

    .macro other_slot_version2 kind
    in_use_version2\kind:
        and     w4, w0, #0x3ff
        ldr     x2, [sp, #256 + {straight}]
        cmp     x4, x2
        b.hs    slow_irq_version2\kind
        cmp     w4, #{doorbell}
        b.eq    slow_irq_version2\kind
    other_slot_version2\kind:
        add     x4, sp, x4, lsl #{arrival_shift}
        ldr     w2, [x4, #256 + {arrivals} + 4]
        cbz     w2, slow_irq_version2\kind
        ldr     x4, [x4, #256 + {arrival_slots}]
        ldr     w5, [x1, #0x30]                 // GICH_ELRSR0
        lsr     w5, w5, w4
        tbz     w5, #0, slow_irq_version2\kind
        add     x1, x1, x4, lsl #2              // its GICH_LR is at the offset of GICH_LR0
        b       value_version2\kind
    // The guest deactivates the interrupt.
    line_version2\kind:
        orr     w4, w4, #1 << 31
        bfi     w4, w0, #10, #10
        str     w4, [x1, #0x100]                // GICH_LR
        str     w0, [x3, #0x10]                 // GICC_EOIR
        .ifc    \kind,_watch
        look_again_version2
        .endif
        .ifc    \kind,_foreign
        look_again_version2
        .endif
        leave_version2
        count_listed \kind
        leave
    // For Rust, an SGI is marked as such; see `gic::gich`.
    slow_irq_version2\kind:
        and     w4, w0, #0x3ff
        cmp     w4, #16
        b.hs    1f
        orr     w0, w0, #{sgi_mark}
    1:  leave_version2
        b       slow_irq\kind
    .endm

    .macro irq_version2 kind
    fast_irq_version2_\kind:
        enter
        .ifc    \kind,foreign
        sevl                                    // see traps::set_recheck_timers
        .endif
        enter_version2
        ldr     x3, [sp, #256 + {version2_interface}]
        ldr     w2, [x1, #0x30]                 // GICH_ELRSR0
        ldr     w0, [x3, #0xc]                  // GICC_IAR
        tbz     w2, #0, in_use_version2_\kind
        list_version2 _\kind
        other_slot_version2 _\kind
    .endm

    .macro fast_paths_version2
        irq_version2 plain
        irq_version2 watch
        irq_version2 foreign

    fast_sync_version2:
        enter
        mrs     x0, esr_el2
        tbnz    w0, #31, fast_sgi_version2
        tbz     w0, #30, fast_wait_version2
        b       fast_call

    fast_sgi_version2:
        mov     w2, #{esr_store} & 0xffff
        movk    w2, #{esr_store} >> 16, lsl #16
        cmp     w0, w2
        b.ne    slow_sync
        mrs     x0, hpfar_el2
        cmp     x0, #{hpfar_distributor}
        b.ne    slow_sync
        mrs     x0, far_el2
        and     x0, x0, #0xfff
        cmp     x0, #0xf00                      // GICD_SGIR
        b.ne    slow_sync
        and     w0, w5, #0xf
        cmp     w0, #{doorbell}
        b.hs    slow_sync
        tst     w5, #3 << 24
        b.ne    slow_sync
        ldr     w2, [sp, #256 + {version2_sgi_fields}]
        ldr     x0, [sp, #256 + {version2_distributor}]
        and     w2, w2, w5
        str     w2, [x0, #0xf00]                // GICD_SGIR
        step_over
        count   {count_sgi}
        leave

    fast_wait_version2:
        and     w2, w0, #{wait_bits}
        cbnz    w2, fast_wfe
        enter_version2
        ldr     w0, [x1, #0x30]                 // GICH_ELRSR0
        ldr     x2, [sp, #256 + {halt_if}]
        cmp     x0, x2
        b.ne    fast_wait_otherwise_version2
    fast_halt_version2:
        step_over
        wfi
        ldr     x3, [sp, #256 + {version2_interface}]
        ldr     w0, [x3, #0xc]                  // GICC_IAR
        list_version2 _wait
        other_slot_version2 _wait
    fast_wait_otherwise_version2:
        ldr     x2, [sp, #256 + {poll_if}]
        cmp     x0, x2
        b.eq    1f
        leave_version2
        b       slow_sync
    1:  ldr     x0, [sp, #256 + {poll}]
        mrs     x2, cntvct_el0
        add     x2, x2, x0                      // the end
    2:  mrs     x0, isr_el1
        tbnz    w0, #{irq_pending}, 3f
        mrs     x0, cntvct_el0
        cmp     x0, x2
        yield
        b.lo    2b
        count   {count_miss}
        b       fast_halt_version2
    3:  count   {count_wfi}
        count   {count_hit}
        step_over
        ldr     x3, [sp, #256 + {version2_interface}]
        ldr     w0, [x3, #0xc]                  // GICC_IAR
        list_version2 _polled
        other_slot_version2 _polled

    full_version2_plain:
        bl      {full_version2}
        b       full_plain_done
    full_version2_traced:
        bl      {full_version2}
        b       full_traced_done
    .endm
        "#
    };
}
pub(crate) use fast_path_version2_macros;
