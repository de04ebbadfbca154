// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the exception vectors of EL2.
//!
//! Every exit of the guest passes through here, so the two vectors that matter (synchronous and IRQ
//! from a lower level) save only the registers that a Rust function may clobber: x0 to x18 and x30.
//! x19 to x29 still hold the guest's values when the handler returns, because the procedure call
//! standard makes every function preserve them (AAPCS64 2024Q3, 6.1.1). A handler that has to see
//! or change one of x19 to x29 returns [`synchronous::Next::Full`]; the stub then completes the
//! frame and calls the handler again.
//!
//! # Six tables
//!
//! Some properties of a vCPU decide what an exit does, and rarely change. No exit tests them, because
//! VBAR_EL2 already depends on them: there is a table for each case, chosen by [`crate::cpu::traps`] and
//! [`crate::neighbour::switch`]. A test would add a load and a branch to every path that is measured.
//!
//! | table | when | its two entries for exits |
//! |---|---|---|
//! | `el2_vectors` | from the start on | the [fast paths](crate::exits::fast_paths), and after them Rust without time stamps |
//! | `el2_vectors_watching` | EL2 checks a timer again whose interrupt came while IRQs were masked ([`traps::watches_timers`]) | the same, with that check |
//! | `el2_vectors_foreign` | the guest has not turned these checks off ([`traps::set_recheck_timers`]) | the same; each interrupt also leaves an event |
//! | `el2_vectors_traced` | time stamps are taken ([`trace`]) | Rust with time stamps, no fast path |
//! | `el2_vectors_shared` | the CPU has a neighbour, and no time stamps | Rust that gives the neighbour its turns ([`shared`]) |
//! | `el2_vectors_neighbour` | the neighbour runs | the way back from the neighbour |
//!
//! The other fourteen entries are equal in all tables (`vectors_before`, `vectors_after`): EL2's own exceptions,
//! SErrors, AArch32. An image for tests has further tables, which do as little as possible (`crate::planted`).

use core::mem::offset_of;

use abi::Counter;
use arch::optional;

use crate::cpu::gicv2;
use crate::cpu::percpu::PerCpu;
use crate::cpu::{trace, traps};
use crate::dumps::{dump, serror};
use crate::exits::{fast_paths, fast_paths_version2, shared, synchronous};
use crate::interrupts::{irq, vgic_cpu};
use crate::neighbour::switch::Back;
use crate::neighbour::turn;
use crate::planted;

/// Offset in `PerCpu` of the state of the vCPU's list registers, for assembly.
const LIST: usize = offset_of!(PerCpu, vcpu.list);
// The stack ends where the CPU's `PerCpu` begins, so its top has to be aligned.
const _: () = assert!(align_of::<PerCpu>().is_multiple_of(16));

/// Offset in `PerCpu` of a counter, for assembly.
const fn counter_offset(counter: Counter) -> usize {
    offset_of!(PerCpu, vcpu.counters) + 8 * counter as usize
}

core::arch::global_asm!(
    arch::frame_macros!(),
    arch::gicv2_site_macro!(),
    fast_paths::fast_path_macros!(),
    fast_paths_version2::fast_path_version2_macros!(),
    r#"
    .macro vector_sync handler, kind
        .balign 128
        save_caller
        mov     x0, sp
        bl      \handler
        cbnz    x0, exit_full\kind
        b       exit_resume\kind
    .endm

    .macro vector_irq handler, kind
        .balign 128
        save_caller
        bl      \handler
        b       exit_resume\kind
    .endm

    // A vector for the neighbour's exceptions, after which `neighbour::switch` continues.
    .macro vector_neighbour reason
        .balign 128
        stp     x0, x1, [sp, #-16]!
        mov     x1, #\reason
        b       el2_from_neighbour
    .endm

    // An SError after which execution may continue; the frame is completed for a report.
    .macro vector_serror kind
        .balign 128
        save_caller
        b       serror_\kind
    .endm

    .macro serror kind, handler
    serror_\kind:
        save_rest
        mov     x0, sp
        bl      \handler
        restore_caller
        eret
    .endm

    // EL2 itself failed, perhaps because of its stack, so the report uses another stack if the CPU
    // has a PerCpu. The guest's SP_EL0 holds x0 meanwhile.
    .macro own_failed handler, number
        mrs     x0, tpidr_el2
        cbz     x0, 1f
        ldr     x0, [x0, #{report_stack_top}]
        mov     sp, x0
1:      mrs     x0, sp_el0
        unexpected \handler, \number
    .endm

    .macro vector_own handler, number
        .balign 128
        msr     sp_el0, x0
        own_failed \handler, \number
    .endm

    // An exception of EL2 itself. If it comes from an access to a register that firmware keeps, its
    // class is 0, unknown reason.
    .macro vector_own_sync handler, number
        .balign 128
        msr     sp_el0, x0
        mrs     x0, esr_el2
        lsr     x0, x0, #26
        cbz     x0, own_undefined
        own_failed \handler, \number
    .endm

    .macro vectors_before
        vector_unexpected {unexpected}, 0
        vector_unexpected {unexpected}, 1
        vector_unexpected {unexpected}, 2
        vector_unexpected {unexpected}, 3
        vector_own_sync {unexpected}, 4
        vector_own {unexpected}, 5
        vector_own {unexpected}, 6
        vector_serror el2
    .endm

    .macro vectors_after
        vector_unexpected {unexpected}, 10
        vector_serror guest
        vector_unexpected {unexpected}, 12
        vector_unexpected {unexpected}, 13
        vector_unexpected {unexpected}, 14
        vector_serror guest
    .endm

    .section .text.vectors, "ax"
    .balign 2048
    .global el2_vectors
el2_vectors:
    vectors_before
    vector_sync_fast plain
    vector_irq_fast plain
    vectors_after
    .balign 2048
    .global el2_vectors_watching
el2_vectors_watching:
    vectors_before
    vector_sync_fast watch
    vector_irq_fast watch
    vectors_after
    .balign 2048
    .global el2_vectors_foreign
el2_vectors_foreign:
    vectors_before
    vector_sync_fast foreign
    vector_irq_fast foreign
    vectors_after
    .balign 2048
    .global el2_vectors_traced
el2_vectors_traced:
    vectors_before
    vector_sync {fast_traced}, _traced
    vector_irq {irq_traced}, _traced
    vectors_after

    // A CPU with a neighbour: no fast path in assembly.
    .balign 2048
    .global el2_vectors_shared
el2_vectors_shared:
    vectors_before
    .balign 128
    save_caller
    mrs     x0, esr_el2
    tst     x0, #{no_wfi}
    b.ne    shared_sync
    bl      {shared_wait}
    cbnz    x0, shared_sync
    restore_caller
    eret
    vector_irq {irq_shared}, _plain
    vectors_after

    // Likewise while the neighbour runs.
    .balign 2048
    .global el2_vectors_neighbour
el2_vectors_neighbour:
    vectors_before
    vector_neighbour {neighbour_trapped}
    vector_neighbour {neighbour_interrupted}
    vectors_after

    fast_paths
    fast_paths_version2

    serror  el2, {serror_in_el2}
    serror  guest, {serror_in_guest}

own_undefined:
    mrs     x0, sp_el0
    save_caller
    bl      {left_alone}
    cbz     w0, own_undefined_failed
    restore_caller
    eret
own_undefined_failed:
    restore_caller
    msr     sp_el0, x0
    own_failed {unexpected}, 4

fast_smc:
    cmp     w2, #{class_smc}
    b.ne    slow_sync
    save_four
    save_caller_rest
    mov     x0, sp
    bl      {smc}
    b       exit_resume_plain

    // On a GICv2, a data abort does not come here.
fast_abort:
    lsr     w2, w0, #26
    cmp     w2, #{class_abort}
    b.ne    slow_sync
    save_four
    save_caller_rest
    mov     x0, sp
    bl      {distributor}
    cbz     x0, exit_resume_plain
    b       exit_full_plain

slow_sync:
    save_four
    save_caller_rest
    mov     x0, sp
    bl      {fast}
    cbz     x0, exit_resume_plain
exit_full_plain:
    save_rest
    mov     x0, sp
    gicv2_instead full_version2_plain
    bl      {full}
full_plain_done:
    restore_rest
exit_resume_plain:
    restore_caller
    eret

    // On a CPU with a neighbour, except for a WFI that only has to halt.
shared_sync:
    mov     x0, sp
    bl      {fast_shared}
    cbnz    x0, exit_full_plain
    b       exit_resume_plain

    // After a wait, no timer is checked again.
slow_irq_wait:
    count   {count_halted}
slow_irq_polled:
    save_four
    save_caller_rest
    bl      {irq_waited}
    b       exit_resume_plain

slow_irq_plain:
slow_irq_watch:
slow_irq_foreign:
    save_four
    save_caller_rest
    bl      {irq}
    b       exit_resume_plain

exit_full_traced:
    save_rest
    mov     x0, sp
    gicv2_instead full_version2_traced
    bl      {full}
full_traced_done:
    restore_rest
exit_resume_traced:
    bl      {resume}
    restore_caller
    eret
    "#,
    planted::vectors!(),
    fast = sym synchronous::fast::<trace::Off>,
    smc = sym synchronous::serve_smc,
    class_smc = const trap::esr::SMC64,
    distributor = sym synchronous::access_distributor,
    class_abort = const trap::esr::DATA_ABORT_LOWER,
    fast_traced = sym synchronous::fast::<trace::On>,
    fast_shared = sym synchronous::fast::<trace::Shared>,
    shared_wait = sym shared::wait,
    no_wfi = const shared::NO_WFI,
    irq_shared = sym turn::interrupt,
    neighbour_trapped = const Back::Trapped as u64,
    neighbour_interrupted = const Back::Interrupt as u64,
    full = sym synchronous::full,
    full_version2 = sym synchronous::full_version2,
    esr_store = const fast_paths_version2::ESR_STORE_OF_W5,
    hpfar_distributor = const fast_paths_version2::HPFAR_DISTRIBUTOR,
    doorbell = const gicv2::DOORBELL,
    sgi_mark = const gic::gich::SGI,
    version2_distributor = const offset_of!(PerCpu, version2.distributor),
    version2_interface = const offset_of!(PerCpu, version2.interface),
    version2_control = const offset_of!(PerCpu, version2.control),
    version2_sgi_fields = const offset_of!(PerCpu, version2.sgi_fields),
    version2_traps = const offset_of!(PerCpu, version2.traps),
    version2_closed = const offset_of!(PerCpu, version2.closed),
    irq = sym irq::acknowledged,
    irq_waited = sym irq::waited,
    irq_traced = sym turn::interrupt_traced,
    resume = sym trace::resume,
    left_alone = sym optional::left_alone,
    unexpected = sym dump::unexpected,
    serror_in_el2 = sym serror::in_el2,
    serror_in_guest = sym serror::in_guest,
    esr_sgi = const fast_paths::ESR_SGI_FROM_X1,
    wait_bits = const fast_paths::WAIT_BITS,
    class_hvc = const trap::esr::HVC64,
    not_supported = const abi::NOT_SUPPORTED,
    hcr_inject = const traps::HCR_INJECT,
    kicked = const fast_paths::KICKED,
    hw = const vgic::ListRegister::HW_BIT,
    masked = const vgic_cpu::IRQ_MASKED.trailing_zeros(),
    trap_group1 = const vgic_cpu::TRAP_GROUP1,
    sgi_fields = const offset_of!(PerCpu, vcpu.fast_paths.sgi_fields),
    halt_if = const offset_of!(PerCpu, vcpu.fast_paths.halt_if),
    poll_if = const offset_of!(PerCpu, vcpu.waits.poll_if),
    poll = const offset_of!(PerCpu, vcpu.waits.poll),
    direct_if = const offset_of!(PerCpu, vcpu.waits.direct_if),
    irq_pending = const arch::regs::IRQ_PENDING.trailing_zeros(),
    count_wfi = const counter_offset(Counter::Wfi),
    count_hit = const counter_offset(Counter::PollHit),
    count_miss = const counter_offset(Counter::PollMiss),
    count_interrupt = const offset_of!(PerCpu, vcpu.fast_paths.interrupts),
    count_listed = const counter_offset(Counter::Listed),
    count_waited = const offset_of!(PerCpu, vcpu.fast_paths.waited),
    count_halted = const offset_of!(PerCpu, vcpu.waits.halted),
    count_sgi = const counter_offset(Counter::Sgi),
    count_wfe = const counter_offset(Counter::Wfe),
    count_hvc = const counter_offset(Counter::Hvc),
    straight = const LIST + vgic::List::STRAIGHT,
    firsts = const LIST + vgic::List::FIRSTS,
    arrivals = const LIST + vgic::List::ARRIVALS,
    arrival_slots = const LIST + vgic::List::ARRIVAL_SLOTS,
    arrival_shift = const vgic::List::ARRIVAL_SHIFT,
    report_stack_top = const offset_of!(PerCpu, report_stack_top),
);
