// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomics and a lock. Atomics come from loom when a model is checked (`tests/switching`), but not
//! in the unit tests.

#[cfg(any(not(loom), test))]
pub use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
#[cfg(all(loom, not(test)))]
pub use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

#[cfg(any(not(loom), test))]
pub use spin::mutex::SpinMutex as Mutex;

#[cfg(all(loom, not(test)))]
pub use self::model::Mutex;

#[cfg(all(loom, not(test)))]
mod model {
    /// A lock with the same interface as the lock in [`spin`].
    #[derive(Debug)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no holder panics")
        }
    }
}
