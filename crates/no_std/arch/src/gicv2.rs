// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapts an image to a GICv2, which has no system registers (IHI 0048B, 2.3).
//!
//! An image sends SGIs with one instruction, in [`crate::insn::write_sgi`]. A table lists the
//! address of each copy of this instruction, and of code that writes GICD_SGIR. [`adapt`] replaces the
//! instructions by branches to that code, so no additional code runs on later GIC versions.

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
};

impl Registers {
    /// Returns the CPU interface of the CPU with affinity `mpidr`, if its cluster is recorded.
    #[must_use]
    pub fn interface_of(&self, mpidr: u64) -> Option<u8> {
        let first = self.first.get(aff1(mpidr))?.load(Relaxed);
        (first != UNKNOWN).then(|| first + mpidr as u8)
    }

    /// Records that the CPU with affinity `mpidr` has CPU interface `number`. Returns whether SGIs
    /// can be sent to the CPU: within a cluster, interfaces must be numbered like Aff0. Clusters
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

    unsafe extern "C" {
        static __start_gicv2_sites: [Site; 0];
        static __stop_gicv2_sites: [Site; 0];
    }

    /// Replaces each instruction that sends an SGI by a branch to code for a GICv2.
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

    /// Encodes the instruction B from `at` to `code` (DDI 0487K.a, C6.2.26). Both addresses are in one image,
    /// so the distance is within the 128 MiB that a branch reaches.
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
            // A copy that a cache fetched meanwhile is older than memory, and clean.
            insn::dc_civac(at);
            insn::dsb_sy();
        }
    }
}
