// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that `exits::fast_paths` reads, and counters that it increments. It is assembly, so each
//! value lies where one load reaches it.

use core::sync::atomic::AtomicU64;

/// The bits of ICC_SGI1R_EL1 that have a meaning: Aff3, RS, IRM, Aff2, INTID, Aff1,
/// target list (IHI 0069H, 12.2).
pub const SGI_FIELDS: u64 = 0x00ff_f1ff_0fff_ffff;

/// State and counters of the fast paths: half a cache line, whose other half has the first
/// counters. Only the CPU that it belongs to accesses it.
#[repr(C)]
pub struct FastPaths {
    /// The value of ICH_ELRSR_EL2 without listed interrupts, if a trapped WFI is just a halt;
    /// [`NEVER`] if it is more.
    pub halt_if: AtomicU64,
    /// [`SGI_FIELDS`], in reach of one load.
    pub sgi_fields: u64,
    /// Number of exits on an interrupt that was listed.
    pub interrupts: AtomicU64,
    /// Number of WFIs that halted until an interrupt came that was listed.
    pub waited: AtomicU64,
}

/// State that they read if a trapped WFI is not just a halt.
#[repr(C)]
pub struct Waits {
    /// Like [`FastPaths::halt_if`], for polling for [`Self::poll`] ticks before the halt.
    pub poll_if: AtomicU64,
    /// See `poll_if`.
    pub poll: AtomicU64,
    /// Like [`FastPaths::halt_if`], if the interrupt that ends the wait is the guest's; [`NEVER`],
    /// which is -1, if it is not.
    pub direct_if: AtomicU64,
    /// Number of WFIs that halted until something else came.
    pub halted: AtomicU64,
}

/// A value that ICH_ELRSR_EL2 never has.
pub const NEVER: u64 = u64::MAX;

impl FastPaths {
    /// None taken, and no wait.
    pub const fn new() -> Self {
        Self {
            halt_if: AtomicU64::new(NEVER),
            sgi_fields: SGI_FIELDS,
            interrupts: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }
}

const _: () = assert!(size_of::<FastPaths>() == 32);

impl Waits {
    /// None.
    pub const fn new() -> Self {
        Self {
            poll_if: AtomicU64::new(NEVER),
            poll: AtomicU64::new(0),
            direct_if: AtomicU64::new(NEVER),
            halted: AtomicU64::new(0),
        }
    }
}
