// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passes a function call from one CPU to another.

use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use arch::insn;
use pages::Pool;
use sched::list::Link;

/// A call from one CPU to another. A value that is all zero means that there is no call.
#[repr(align(64))]
pub struct Call {
    /// Links the call into the list of the target.
    pub link: Link,
    /// Whether the function still has to run.
    pub busy: AtomicBool,
    /// The function.
    pub function: AtomicPtr<()>,
    /// Argument of the function.
    pub argument: AtomicU64,
    /// When the function began, in ticks.
    pub began: AtomicU64,
}

impl Call {
    /// Places `count` calls that are not busy in zeroed memory of `pool`. There is one for each pair
    /// of CPUs: with 512 CPUs, initializing them one by one took longer than all other work for calls.
    pub fn place_calls(pool: &mut Pool, count: usize) -> &'static [Self] {
        let place = pool.take((count * size_of::<Self>()) as u64) as *const Self;
        // SAFETY: this is zeroed memory of that size, aligned to a page, which nothing else uses. Zero is valid
        // for each field: a link to nothing (`Link::new`), a call that is not busy, no function, and a number.
        unsafe { core::slice::from_raw_parts(place, count) }
    }

    /// Waits until the function has run, and returns when it began.
    pub fn wait(&self) -> u64 {
        while self.busy.load(Acquire) {
            insn::yield_now();
        }
        self.began.load(Relaxed)
    }
}
