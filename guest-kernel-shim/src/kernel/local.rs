// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guards values that only one CPU may access, with a check at run time.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::percpu::PerCpu;

/// A value that only the CPU `owner` may access.
pub struct Local<T> {
    owner: usize,
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `with` lets only the owner access the value, and only once at a time. An interrupt handler of the same CPU
// that ran in between would find `taken` set. The code that creates the value gives it up before the owner can find
// it.
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
    /// Panics on another CPU, and inside another `with` of the same value.
    #[inline(always)]
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mine = PerCpu::this().index == self.owner;
        assert!(
            mine && !self.taken.load(Relaxed),
            "a value of CPU {} is used by another one or twice",
            self.owner
        );
        self.taken.store(true, Relaxed);
        // SAFETY: this is the only CPU that may access the value, and `taken` was not set.
        let result = work(unsafe { &mut *self.value.get() });
        self.taken.store(false, Relaxed);
        result
    }
}
