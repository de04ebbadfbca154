// SPDX-License-Identifier: MIT OR Apache-2.0
//! Provides a variable of the image for data that is too large for a stack and is needed before
//! exclusive accesses work (they need translation and caches).

use core::cell::UnsafeCell;

/// A variable to which a reference can be taken once.
#[derive(Debug)]
pub struct Place<T>(UnsafeCell<T>);

// SAFETY: `take` is the only operation, and its caller promises to be the only one.
unsafe impl<T: Send> Sync for Place<T> {}

impl<T> Place<T> {
    /// Creates a variable that contains `value`.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Returns the only reference to the variable.
    ///
    /// # Safety
    /// This function must be called only once.
    #[allow(
        clippy::mut_from_ref,
        reason = "the caller is the only one that gets it"
    )]
    pub const unsafe fn take(&'static self) -> &'static mut T {
        // SAFETY: the caller promises that there is no other reference.
        unsafe { &mut *self.0.get() }
    }
}
