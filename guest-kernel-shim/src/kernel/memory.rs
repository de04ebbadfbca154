// SPDX-License-Identifier: MIT OR Apache-2.0
//! Allocates memory for the futures of one CPU.

use core::future::Future;

use super::task::Placed;

/// Bytes per CPU.
pub const SIZE: usize = 0x4_0000;

/// Memory that is allocated in order, from its start, and freed as a whole.
pub struct Memory {
    base: usize,
    used: usize,
}

impl Memory {
    /// Uses the [`SIZE`] bytes from `base` on.
    ///
    /// # Safety
    /// These bytes must be memory that nothing else ever uses.
    pub const unsafe fn new(base: usize) -> Self {
        Self { base, used: 0 }
    }

    /// Moves `future` into this memory.
    ///
    /// # Panics
    /// Panics if the future no longer fits.
    pub fn place_future<F: Future<Output = ()> + 'static>(&mut self, future: F) -> Placed {
        let at = (self.base + self.used).next_multiple_of(align_of::<F>());
        self.used = at + size_of::<F>() - self.base;
        assert!(self.used <= SIZE, "memory for futures exhausted");
        let place = at as *mut F;
        // SAFETY: the address is inside the memory that `new` was given, which nothing else uses. The address
        // is aligned, and is not given out again before `clear`, whose caller promises that every future is
        // gone.
        Placed::new(unsafe {
            place.write(future);
            &mut *place
        })
    }

    /// Frees all of this memory.
    ///
    /// # Safety
    /// Every [`Placed`] of this memory must have been dropped.
    pub unsafe fn clear(&mut self) {
        self.used = 0;
    }
}
