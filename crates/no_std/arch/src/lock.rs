// SPDX-License-Identifier: MIT OR Apache-2.0
//! A spin lock for slow paths.

use spin::RelaxStrategy;
use spin::mutex::SpinMutex;

use crate::insn;

/// A spin lock whose waiting CPUs yield.
pub type Lock<T> = SpinMutex<T, Turn>;

/// Yields on a CPU that finds a lock held: under an emulator with one thread, the lock's holder
/// needs a turn to run.
pub struct Turn;

impl RelaxStrategy for Turn {
    fn relax() {
        insn::yield_now();
    }
}
