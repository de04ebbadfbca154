// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that belong to one CPU each, and are used only by the thread that runs this CPU.

use std::cell::UnsafeCell;
use std::ffi::c_uint;

/// Maximum number of CPUs that the emulator supports.
pub const CPUS: usize = 512;

/// One value for each CPU. Only the thread that runs the CPU uses the value.
pub struct PerCpu<T>([UnsafeCell<T>; CPUS]);

// SAFETY: an element is used only in callbacks for its CPU. The emulator calls these on the one thread that runs the
// CPU.
unsafe impl<T> Sync for PerCpu<T> {}

impl<T> PerCpu<T> {
    /// Creates the values from the cells `all`.
    pub const fn new(all: [UnsafeCell<T>; CPUS]) -> Self {
        Self(all)
    }

    /// Returns the value of CPU `index`, for a callback that runs for this CPU.
    ///
    /// # Safety
    /// Call it once per callback, with the index that the callback received.
    #[expect(clippy::mut_from_ref, reason = "see `Sync`: no other thread has it")]
    pub unsafe fn value_of_cpu(&self, index: c_uint) -> &mut T {
        // SAFETY: the caller holds no other reference.
        unsafe { &mut *self.0[index as usize].get() }
    }
}
