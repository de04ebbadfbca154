// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of one CPU that other CPUs leave alone: a cache line of its own, and a
//! value without a lock.

use core::cell::UnsafeCell;
use core::ops::Deref;

/// A value with cache lines of its own, for state that others write while its CPU is busy with
/// something else.
#[repr(C, align(64))]
pub struct CacheLine<T>(pub T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// State that only the CPU it belongs to touches, and only with interrupts
/// masked, as EL2 always runs: so it needs neither lock nor atomics.
pub struct Local<T>(UnsafeCell<T>);

// SAFETY: `with` gives access on one CPU only, by its contract.
unsafe impl<T> Sync for Local<T> {}

impl<T> Local<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Runs `use_it` on the value.
    ///
    /// # Safety
    /// The caller must run on the CPU that the value belongs to, and `use_it`
    /// must not come here again for the same value.
    #[inline(always)]
    pub unsafe fn with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the caller promises that no other reference exists: no other
        // CPU makes one, and this CPU is not interrupted at EL2.
        use_it(unsafe { &mut *self.0.get() })
    }
}
