// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapts an image to a GICv2, which has no system registers (IHI 0048B, 2.3).
//!
//! A table lists the instructions that a GICv2 machine can't use, each with the address of its
//! replacement code: the guest's SGIs (`insn::write_sgi`), each access to a register of the CPU interface
//! (`gic_regs`), and entries of the hypervisor's vectors. [`adapt`] replaces the instructions with
//! branches to that code, so no additional code runs on later GIC versions.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU64};

/// The GICv2 registers of this machine, for assembly code.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Registers {
    /// Address of GICD.
    pub distributor: AtomicU64,
    /// Address of GICC.
    pub interface: AtomicU64,
    /// For each Aff1, the CPU interface of the CPU with Aff0 = 0, or [`UNKNOWN`].
    first: [AtomicU8; CLUSTERS],
    /// Address of GICH, for a hypervisor.
    pub control: AtomicU64,
    /// Address of the function that accesses other registers.
    access: AtomicU64,
}

/// Reads or writes the register with the given number, and returns its value (`gic_regs`).
pub type Access = extern "C" fn(number: u32, value: u64) -> u64;

/// Added to a register's number for a write ([`Access`]).
pub const WRITE: u32 = 0x100;

/// Assembler macro: on a GICv2, the code at `code` runs instead of the next instruction.
#[macro_export]
macro_rules! gicv2_site_macro {
    () => {
        r#"
    .macro gicv2_instead code
9:
    .pushsection gicv2_sites, "a"
    .balign 4
    .long   9b - .
    .long   \code - .
    .popsection
    .endm
        "#
    };
}

/// Number of supported values of Aff1: a GICv2 has at most 8 CPU interfaces (IHI 0048B, 1.1).
const CLUSTERS: usize = 8;
/// The entry of a cluster that has no running CPU.
const UNKNOWN: u8 = u8::MAX;

/// The GICv2 of this machine; the first CPU fills it in.
pub static REGISTERS: Registers = Registers {
    distributor: AtomicU64::new(0),
    interface: AtomicU64::new(0),
    first: [const { AtomicU8::new(UNKNOWN) }; CLUSTERS],
    control: AtomicU64::new(0),
    access: AtomicU64::new(0),
};

impl Registers {
    /// Makes accesses to a GICv3's registers call `access`. Until then, these accesses have no effect.
    pub fn set_access(&self, access: Access) {
        self.access.store(access as usize as u64, Relaxed);
    }

    /// Returns the CPU interface of the CPU with affinity `mpidr`, if its cluster is recorded.
    #[must_use]
    pub fn interface_of(&self, mpidr: u64) -> Option<u8> {
        let first = self.first.get(aff1(mpidr))?.load(Relaxed);
        (first != UNKNOWN).then(|| first + mpidr as u8)
    }

    /// Records that the CPU with affinity `mpidr` has CPU interface `number`. Returns whether SGIs can be sent
    /// to the CPU: within a cluster, the numbers of the interfaces must rise in step with Aff0. Clusters
    /// that differ only above Aff1 count as one.
    #[must_use]
    pub fn record(&self, mpidr: u64, number: u8) -> bool {
        let (aff0, aff1) = (mpidr as u8, aff1(mpidr));
        let Some(first) = number.checked_sub(aff0).filter(|_| aff1 < CLUSTERS) else {
            return false;
        };
        let known = self.first[aff1].compare_exchange(UNKNOWN, first, Relaxed, Relaxed);
        known.map_or_else(|known| known == first, |_| true)
    }
}

/// Aff1 of `mpidr`.
const fn aff1(mpidr: u64) -> usize {
    (mpidr >> 8 & 0xff) as usize
}

#[cfg(target_arch = "aarch64")]
pub use sites::adapt;

#[cfg(target_arch = "aarch64")]
mod sites {
    use crate::insn;

    /// The addresses of an instruction and its replacement code, each relative to the field itself.
    #[repr(C)]
    struct Site {
        instruction: i32,
        code: i32,
    }

    // Calls the function that [`super::Registers::set_access`] recorded, with the number and the value that `gic_regs`
    // pushed; the function's result replaces the value. All registers that a function may clobber are preserved
    // (AAPCS64 2024Q3, 6.1.1), and so are the flags.
    core::arch::global_asm!(
        r#"
    .pushsection .text.gicv2, "ax"
    .global gicv2_access
    .hidden gicv2_access
gicv2_access:
    stp     x0, x1, [sp, #-176]!
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    mrs     x0, nzcv
    stp     x18, x0, [sp, #144]
    str     x30, [sp, #160]
    ldr     w0, [sp, #176 + 16]
    ldr     x1, [sp, #176]
    adrp    x2, {registers}
    add     x2, x2, :lo12:{registers}
    ldr     x2, [x2, #{access}]
    cbz     x2, 1f                          // nobody has set it: the access has no effect
    blr     x2
    str     x0, [sp, #176]
1:  ldr     x30, [sp, #160]
    ldp     x18, x0, [sp, #144]
    msr     nzcv, x0
    ldp     x16, x17, [sp, #128]
    ldp     x14, x15, [sp, #112]
    ldp     x12, x13, [sp, #96]
    ldp     x10, x11, [sp, #80]
    ldp     x8, x9, [sp, #64]
    ldp     x6, x7, [sp, #48]
    ldp     x4, x5, [sp, #32]
    ldp     x2, x3, [sp, #16]
    ldp     x0, x1, [sp], #176
    ret
    .popsection
    "#,
        registers = sym super::REGISTERS,
        access = const core::mem::offset_of!(super::Registers, access),
    );

    unsafe extern "C" {
        static __start_gicv2_sites: [Site; 0];
        static __stop_gicv2_sites: [Site; 0];
    }

    /// Replaces each instruction in the table with a branch to its code for a GICv2.
    ///
    /// # Safety
    /// The image must be writable, with MMU and caches off, and no other CPU may execute any part
    /// of the image except the code that holds CPUs.
    pub unsafe fn adapt() {
        let mut site = (&raw const __start_gicv2_sites).cast::<Site>();
        let end = (&raw const __stop_gicv2_sites).cast::<Site>();
        while site < end {
            // SAFETY: the linker puts all sites between the two symbols.
            let (at, code) = unsafe {
                let (at, code) = (&raw const (*site).instruction, &raw const (*site).code);
                (
                    at.addr().wrapping_add_signed(at.read() as isize),
                    code.addr().wrapping_add_signed(code.read() as isize),
                )
            };
            // SAFETY: `at` is an instruction of this image, and the caller permits writing it.
            unsafe { write_code(at, encode_branch(at, code)) };
            // SAFETY: the result is at most one past the last site.
            site = unsafe { site.add(1) };
        }
        insn::ic_ialluis();
        insn::dsb_sy();
        insn::isb();
    }

    /// Encodes the instruction B from `at` to `code` (DDI 0487K.a, C6.2.26). Both are in the same
    /// image, so the distance is within the 128 MiB that a branch reaches.
    const fn encode_branch(at: usize, code: usize) -> u32 {
        0x1400_0000 | (code.wrapping_sub(at) >> 2) as u32 & 0x03ff_ffff
    }

    /// Writes `instruction` at `at`, and removes cached copies of that line (DDI 0487K.a, B2.11).
    ///
    /// # Safety
    /// See [`adapt`].
    unsafe fn write_code(at: usize, instruction: u32) {
        // SAFETY: the caller promises what these operations need.
        unsafe {
            insn::dc_civac(at);
            insn::dsb_sy();
            core::ptr::with_exposed_provenance_mut::<u32>(at).write_volatile(instruction);
            insn::dsb_sy();
            // A copy that a cache fetched in the meantime is older than memory, and clean.
            insn::dc_civac(at);
            insn::dsb_sy();
        }
    }
}
