// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that `exits::fast_paths` reads, and counters that it increments. These paths are in assembly, so a single load
//! has to reach each value.

use core::sync::atomic::AtomicU64;

/// The bits of ICC_SGI1R_EL1 that have a meaning: Aff3, RS, IRM, Aff2, INTID, Aff1,
/// target list (IHI 0069H, 12.2).
pub const SGI_FIELDS: u64 = 0x00ff_f1ff_0fff_ffff;

/// State and counters of the fast paths: they take half a cache line, whose other half has the
/// first counters. Only the CPU that owns the state accesses it.
#[repr(C)]
pub struct FastPaths {
    /// If a trapped WFI only has to halt, the value of ICH_ELRSR_EL2 while no interrupt is listed;
    /// otherwise [`NEVER`].
    pub halt_if: AtomicU64,
    /// The constant [`SGI_FIELDS`], in memory that a single load reaches.
    pub sgi_fields: u64,
    /// Number of exits caused by an interrupt that was listed.
    pub interrupts: AtomicU64,
    /// Number of WFIs that halted until an interrupt came, which was then listed.
    pub waited: AtomicU64,
}

/// State that the fast paths read if a trapped WFI does more than halt.
#[repr(C)]
pub struct Waits {
    /// Like [`FastPaths::halt_if`], if EL2 first polls for [`Self::poll`] ticks.
    pub poll_if: AtomicU64,
    /// Ticks to poll; see `poll_if`.
    pub poll: AtomicU64,
    /// Like [`FastPaths::halt_if`], if the guest itself takes the interrupt that ends the wait;
    /// otherwise [`NEVER`], which is -1.
    pub direct_if: AtomicU64,
    /// Number of WFIs that halted until something other than a listed interrupt came.
    pub halted: AtomicU64,
}

/// A value that ICH_ELRSR_EL2 never has.
pub const NEVER: u64 = u64::MAX;

impl FastPaths {
    /// Creates the state of a vCPU with no exits yet, and without a fast path for waits.
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
    /// Creates the state without any fast path for waits.
    pub const fn new() -> Self {
        Self {
            poll_if: AtomicU64::new(NEVER),
            poll: AtomicU64::new(0),
            direct_if: AtomicU64::new(NEVER),
            halted: AtomicU64::new(0),
        }
    }
}
