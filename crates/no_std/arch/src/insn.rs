// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contains one wrapper for each instruction, without further behaviour.
//!
//! Barriers and waits are written without `nomem`, so the compiler moves no memory access
//! across them: an access that precedes a barrier in the source also precedes it in the machine
//! code.

use core::arch::asm;

/// Declares wrappers for instructions that have no operand.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() {
            // SAFETY: this is a hint or barrier without operands; it changes no register and
            // accesses no memory.
            unsafe { asm!($text, options(nostack, preserves_flags)) }
        }
    )*};
}

plain! {
    /// Waits for an interrupt, masked or not.
    wfi = "wfi";
    /// Waits until the event register is set or an unmasked interrupt is pending.
    wfe = "wfe";
    /// Sets the event register of every PE.
    sev = "sev";
    /// Sets the event register of this PE.
    sevl = "sevl";
    /// Hints that this PE is spinning, so that an emulator lets the other PEs run.
    yield_now = "yield";
    /// Synchronises the context: later instructions see earlier register writes.
    isb = "isb";
    /// Completes all earlier accesses, full system.
    dsb_sy = "dsb sy";
    /// Completes all earlier accesses, inner shareable domain.
    dsb_ish = "dsb ish";
    /// Completes all earlier stores, inner shareable domain.
    dsb_ishst = "dsb ishst";
    /// Completes all earlier accesses of this PE.
    dsb_nsh = "dsb nsh";
    /// Orders all earlier accesses before all later ones, inner shareable domain.
    dmb_ish = "dmb ish";
    /// Clears the local exclusive monitor.
    clrex = "clrex";
    /// Masks IRQs at this exception level.
    mask_irq = "msr daifset, #2";
    /// Unmasks IRQs at this exception level.
    unmask_irq = "msr daifclr, #2";
    /// Masks SErrors at this exception level.
    mask_serror = "msr daifset, #4";
    /// Unmasks SErrors at this exception level.
    unmask_serror = "msr daifclr, #4";
    /// Executes an error synchronization barrier: a masked SError that can be deferred goes to
    /// DISR_EL1. Does nothing without FEAT_RAS.
    esb = "hint #16";
    /// Masks debug exceptions, SError, IRQ and FIQ.
    mask_all = "msr daifset, #15";
    /// Invalidates the instruction caches of all PEs in the inner shareable domain.
    ic_ialluis = "ic ialluis";
    /// Invalidates all EL2 stage-1 translations of this PE.
    tlbi_alle2 = "tlbi alle2";
    /// Invalidates all EL2 stage-1 translations, inner shareable.
    tlbi_alle2is = "tlbi alle2is";
    /// Invalidates all stage-1 and stage-2 EL1&0 translations of this PE, of every VMID.
    tlbi_alle1 = "tlbi alle1";
    /// Invalidates all stage-1 and stage-2 EL1&0 translations, inner shareable.
    tlbi_alle1is = "tlbi alle1is";
    /// Invalidates this PE's EL1&0 stage-1 translations of the current VMID.
    tlbi_vmalle1 = "tlbi vmalle1";
    /// Invalidates this PE's translations of the current VMID, stages 1 and 2.
    tlbi_vmalls12e1 = "tlbi vmalls12e1";
}

/// Clears the event register of this PE by SEVL and WFE: the WFE always finds the register set, so it neither
/// waits nor traps (DDI 0487K.a, D1.7.1). Any exception return may set the register again.
#[inline(always)]
pub fn forget_events() {
    sevl();
    wfe();
}

/// Executes 1, 5, 6, 9, 10, 13, 14, ... instructions for a `count` of 0, 1, 2, and so on, plus the
/// call. The greatest common divisor of the differences between these numbers is 1.
#[inline(never)]
pub fn rounds(count: u64) {
    // SAFETY: the code counts a register down; it uses no memory and no stack.
    unsafe {
        asm!("cbz {n}, 3f", "tbz {n}, #0, 2f", "nop", "2: subs {n}, {n}, #1", "b.ne 2b", "3:",
            n = inout(reg) count => _, options(nomem, nostack));
    }
}

/// Executes 256 NOPs in a row. An emulator executes them faster than a loop with as many
/// instructions.
#[inline(never)]
pub fn nops() {
    // SAFETY: the code has no effect except that time passes.
    unsafe {
        asm!(
            ".rept 256",
            "nop",
            ".endr",
            options(nomem, nostack, preserves_flags)
        )
    }
}

/// Stops this CPU, which still takes unmasked interrupts.
pub fn hang() -> ! {
    loop {
        nops();
    }
}

/// Invalidates the EL1&0 stage-1 translations of `address` on all PEs of the inner shareable
/// domain, for every ASID and the current VMID (DDI 0487K.a, D8.14). A DSB ISH waits until this is
/// done.
#[inline(always)]
pub fn tlbi_vaae1is(address: u64) {
    /// Mask for bits 55:12 of the address; the other fields of the register stay 0.
    const PAGE: u64 = (1 << 44) - 1;
    // SAFETY: the PE reads translations again from the tables, which stay unchanged; the instruction
    // changes no register and accesses no memory.
    unsafe {
        asm!("tlbi vaae1is, {0}", in(reg) address >> 12 & PAGE, options(nostack, preserves_flags));
    }
}

/// Waits for an event, or until the virtual count reaches `deadline`
/// (ticks of CNTVCT_EL0). Needs FEAT_WFxT.
#[inline(always)]
pub fn wfet(deadline: u64) {
    // SAFETY: the instruction waits; it changes no register and accesses no memory.
    unsafe {
        asm!(".arch_extension wfxt", "wfet {0}", in(reg) deadline,
            options(nostack, preserves_flags));
    }
}

/// Hints that `place` will be written, so that a core may fetch its cache line exclusively (DDI
/// 0487K.a, C6.2, PRFM (immediate)).
#[inline(always)]
pub fn prefetch_to_write<T>(place: &T) {
    // SAFETY: this is a hint: it changes no register, accesses no memory and never faults.
    unsafe {
        asm!("prfm pstl1keep, [{0}]", in(reg) core::ptr::from_ref(place),
            options(nostack, preserves_flags));
    }
}

/// Waits for an interrupt, or until the virtual count reaches
/// `deadline` (ticks of CNTVCT_EL0). Needs FEAT_WFxT.
#[inline(always)]
pub fn wfit(deadline: u64) {
    // SAFETY: the instruction waits; it changes no register and accesses no memory.
    unsafe {
        asm!(".arch_extension wfxt", "wfit {0}", in(reg) deadline,
            options(nostack, preserves_flags));
    }
}

/// Writes ICC_SGI1R_EL1 from x1: if the write traps, a hypervisor has already saved x1, one of the registers
/// that a call may change. If the compiler chose the register, a send could cost more in one part of the
/// image than in another.
///
/// On a GICv2, [`crate::gicv2::adapt`] replaces the instruction with a branch to the code below,
/// which translates the value to GICD_SGIR (IHI 0048B, 4.3.15): the SGI in bits 3:0 and the
/// targets' CPU interfaces in 23:16; if bit 24 is set, the targets are all other CPUs.
#[inline(always)]
pub fn write_sgi(value: u64) {
    // SAFETY: the code sends an interrupt; it changes no register and accesses no memory. On a
    // GICv2, it saves four registers below the stack pointer, where this target keeps nothing (no
    // red zone). There is no `nomem`, so earlier stores stay before the write.
    unsafe {
        asm!(
            "2: msr S3_0_C12_C11_5, x1",
            "3:",
            ".pushsection .text.gicv2, \"ax\"",
            "4: stp x2, x3, [sp, #-32]!",
            "stp x4, x5, [sp, #16]",
            "adrp x2, {registers}",
            "add x2, x2, :lo12:{registers}",
            "ldr x3, [x2]                   // GICD",
            "ldr x2, [x2, #16]              // the first CPU interface of each cluster",
            "ubfx x4, x1, #16, #3           // Aff1: which cluster",
            "lsl w4, w4, #3",
            "lsr x2, x2, x4                 // bits 7:0: its first CPU interface",
            "and w4, w1, #0xffff            // the targets' Aff0",
            "lsl w4, w4, w2",
            "and w4, w4, #0xff",
            "ubfx x5, x1, #24, #4           // the SGI",
            "orr w5, w5, w4, lsl #16",
            "tbz x1, #40, 5f                // IRM: all others",
            "orr w5, w5, #1 << 24",
            "5: str w5, [x3, #0xf00]        // GICD_SGIR; crate `critical` knows it",
            "ldp x4, x5, [sp, #16]",
            "ldp x2, x3, [sp], #32",
            "b 3b",
            ".popsection",
            ".pushsection gicv2_sites, \"a\"",
            ".balign 4",
            ".long 2b - .",
            ".long 4b - .",
            ".popsection",
            registers = sym crate::gicv2::REGISTERS,
            in("x1") value,
            options(nostack, preserves_flags)
        );
    }
}

/// Loads `*word` exclusively with acquire semantics, which arms the local monitor.
#[inline(always)]
pub fn load_exclusive(word: &core::sync::atomic::AtomicU32) -> u32 {
    let value: u32;
    // SAFETY: the code reads four aligned bytes that the reference keeps alive. The monitor is only
    // a wake-up source; no store-exclusive relies on it.
    unsafe {
        asm!("ldaxr {0:w}, [{1}]", out(reg) value, in(reg) word.as_ptr(),
            options(nostack, preserves_flags));
    }
    value
}

/// Cleans and invalidates the data cache line that holds `address`, to the point of
/// coherency.
///
/// # Safety
/// `address` must be mapped.
#[inline(always)]
pub unsafe fn dc_civac(address: usize) {
    // SAFETY: the caller vouches for the mapping; the operation preserves all data.
    unsafe { asm!("dc civac, {0}", in(reg) address, options(nostack, preserves_flags)) }
}

/// Declares functions that turn on translation and caches, after the last store without them.
macro_rules! clean_and_set_sctlr {
    ($($name:ident, $register:literal;)*) => {$(
        /// Cleans and invalidates the data cache from `start` to `end`, in lines of `line` bytes, to the
        /// point of coherency; then empties this PE's instruction cache and writes
        #[doc = concat!("`sctlr` to ", $register, ". Between the first line and the write nothing is stored.")]
        ///
        /// # Safety
        /// The range must be mapped before and after the call. With the translation and caches that
        /// `sctlr` sets, the running code and its stack must stay in place.
        #[inline(always)]
        pub unsafe fn $name(start: u64, end: u64, line: u64, sctlr: u64) {
            // SAFETY: the caller vouches for the range and for the effects of `sctlr`; the
            // maintenance preserves all data.
            unsafe {
                asm!(
                    "2: dc civac, {address}",
                    "add {address}, {address}, {line}",
                    "cmp {address}, {end}",
                    "b.lo 2b",
                    "dsb sy",
                    "ic iallu",
                    "dsb nsh",
                    "isb",
                    concat!("msr ", $register, ", {sctlr}"),
                    "isb",
                    address = inout(reg) start => _,
                    line = in(reg) line,
                    end = in(reg) end,
                    sctlr = in(reg) sctlr,
                    options(nostack),
                );
            }
        }
    )*};
}

clean_and_set_sctlr! {
    clean_and_set_sctlr_el1, "SCTLR_EL1";
    clean_and_set_sctlr_el2, "SCTLR_EL2";
}

/// Declares a function that translates an address in the active translation regime.
macro_rules! can_read {
    ($name:ident, $operation:literal, $level:literal) => {
        #[doc = concat!("Whether the running translation of ", $level, " lets ", $level, " read at `address`.")]
        #[inline]
        #[must_use]
        pub fn $name(address: u64) -> bool {
            let result: u64;
            // SAFETY: an address translation has no effect except on PAR_EL1, whose value
            // nothing needs.
            unsafe {
                core::arch::asm!(concat!("at ", $operation, ", {0}"), "isb", "mrs {1}, par_el1",
                    in(reg) address, out(reg) result, options(nostack, preserves_flags));
            }
            // PAR_EL1.F (DDI 0487K.a, D23.2.130).
            result & 1 == 0
        }
    };
}

/// Declares a function with which EL2 translates an address of its guest.
macro_rules! guest_reads {
    ($name:ident, $operation:literal, $level:literal) => {
        #[doc = concat!("The physical address at which the guest's ", $level, " reads `address`, if it may.")]
        #[must_use]
        pub fn $name(address: u64) -> Option<u64> {
            /// PAR_EL1.PA and PAR_EL1.F (DDI 0487K.a, D23.2.130).
            const PA: u64 = 0xf_ffff_ffff_f000;
            const FAILED: u64 = 1;
            let result: u64;
            // SAFETY: an address translation has no effect except on PAR_EL1. The guest may keep a
            // value in that register, so the code restores it.
            unsafe {
                core::arch::asm!("mrs {old}, par_el1", concat!("at ", $operation, ", {0}"), "isb",
                    "mrs {1}, par_el1", "msr par_el1, {old}", in(reg) address, out(reg) result,
                    old = out(reg) _, options(nostack, preserves_flags));
            }
            (result & FAILED == 0).then_some(result & PA | address & 0xfff)
        }
    };
}

guest_reads!(guest_el1_reads, "s12e1r", "EL1");
guest_reads!(guest_el0_reads, "s12e0r", "EL0");

can_read!(el1_can_read, "s1e1r", "EL1");
can_read!(el2_can_read, "s1e2r", "EL2");

/// Zeroes the block that holds `address`; DCZID_EL0 defines the block's size.
///
/// # Safety
/// The block must be mapped as Normal memory, and nothing may use it.
#[inline(always)]
pub unsafe fn dc_zva(address: usize) {
    // SAFETY: the caller promises that nothing uses the block.
    unsafe { asm!("dc zva, {0}", in(reg) address, options(nostack, preserves_flags)) }
}

/// Copies 64 bytes from `from` to `to`.
///
/// # Safety
/// Both addresses must be mapped, as Normal memory unless both are multiples of 8. Nothing may use the memory at `to`.
#[inline(always)]
pub unsafe fn copy_line(from: usize, to: usize) {
    // SAFETY: the caller promises that `from` may be read and `to` may be written.
    unsafe {
        asm!(
            "ldp {a}, {b}, [{from}]",
            "ldp {c}, {d}, [{from}, #16]",
            "stp {a}, {b}, [{to}]",
            "stp {c}, {d}, [{to}, #16]",
            "ldp {a}, {b}, [{from}, #32]",
            "ldp {c}, {d}, [{from}, #48]",
            "stp {a}, {b}, [{to}, #32]",
            "stp {c}, {d}, [{to}, #48]",
            a = out(reg) _,
            b = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
            from = in(reg) from,
            to = in(reg) to,
            options(nostack, preserves_flags)
        );
    }
}
