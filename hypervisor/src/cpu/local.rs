// SPDX-License-Identifier: MIT OR Apache-2.0
//! Separates one CPU's memory from that of other CPUs: on cache lines of its own, or in a value that only
//! that CPU accesses, without a lock.

use core::cell::UnsafeCell;
use core::ops::Deref;

/// A value with cache lines of its own, for state that other CPUs write while the CPU that owns it
/// does something else.
#[repr(C, align(64))]
pub struct CacheLine<T>(pub T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// State accessed only by the CPU that owns it, and only with interrupts masked, as they always
/// are at EL2. So the state needs neither a lock nor atomics.
pub struct Local<T>(UnsafeCell<T>);

// SAFETY: by its contract, `with` gives access on one CPU only.
unsafe impl<T> Sync for Local<T> {}

impl<T> Local<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Returns the value, like [`Self::with`], for code that has to be inlined into its caller.
    ///
    /// # Safety
    /// The caller must run on the CPU that the value belongs to, and no other reference to the value may exist while the
    /// returned one is used.
    #[inline(always)]
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller promises that there is no other reference"
    )]
    pub unsafe fn here(&self) -> &mut T {
        // SAFETY: the caller promises that no other reference exists.
        unsafe { &mut *self.0.get() }
    }

    /// Runs `use_it` on the value.
    ///
    /// # Safety
    /// The caller must run on the CPU that the value belongs to, and `use_it` must not call this function again for the
    /// same value.
    #[inline(always)]
    pub unsafe fn with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the caller promises that no other reference exists: no other
        // CPU makes one, and this CPU is not interrupted at EL2.
        use_it(unsafe { &mut *self.0.get() })
    }
}
