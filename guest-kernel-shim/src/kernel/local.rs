// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that only one CPU may access, checked at run time.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::percpu::PerCpu;

/// A value of one CPU.
pub struct Local<T> {
    owner: usize,
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `with` lets only the owner near the value, and only once at a time; an
// interrupt handler of the same CPU that came in between would find `taken` set.
// The value's maker hands it over before the owner can know of it.
unsafe impl<T> Sync for Local<T> {}

impl<T> Local<T> {
    /// Wraps a value of the CPU with number `owner`.
    pub const fn new(owner: usize, value: T) -> Self {
        Self {
            owner,
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Runs `work` on the value.
    ///
    /// # Panics
    /// Panics on another CPU, and inside of another `with` of the same value.
    #[inline(always)]
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mine = PerCpu::this().index == self.owner;
        assert!(
            mine && !self.taken.load(Relaxed),
            "a value of CPU {} is used by another one or twice",
            self.owner
        );
        self.taken.store(true, Relaxed);
        // SAFETY: this is the one CPU that may, and `taken` was not set.
        let result = work(unsafe { &mut *self.value.get() });
        self.taken.store(false, Relaxed);
        result
    }
}
