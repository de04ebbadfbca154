// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function call on its way from one CPU to another.

use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use arch::insn;
use sched::list::Link;

/// A call of one CPU to another.
#[repr(align(64))]
pub struct Call {
    /// Its place in the list of the target.
    pub link: Link,
    /// The function has not run yet.
    pub busy: AtomicBool,
    /// The function.
    pub function: AtomicPtr<()>,
    /// What it is given.
    pub argument: AtomicU64,
    /// When the function began, ticks.
    pub began: AtomicU64,
}

impl Call {
    /// No call.
    pub const fn new() -> Self {
        Self {
            link: Link::new(),
            busy: AtomicBool::new(false),
            function: AtomicPtr::new(core::ptr::null_mut()),
            argument: AtomicU64::new(0),
            began: AtomicU64::new(0),
        }
    }

    /// Waits until the function has run; when it began.
    pub fn wait(&self) -> u64 {
        while self.busy.load(Acquire) {
            insn::yield_now();
        }
        self.began.load(Relaxed)
    }
}
