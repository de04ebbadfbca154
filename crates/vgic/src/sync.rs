// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomics and a lock, which are loom's where a model is checked (`tests/switching`).

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

#[cfg(not(loom))]
pub use spin::mutex::SpinMutex as Mutex;

#[cfg(loom)]
pub use self::model::Mutex;

#[cfg(loom)]
mod model {
    /// A lock as [`spin`]'s.
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
