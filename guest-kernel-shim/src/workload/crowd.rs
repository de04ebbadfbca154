// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives CPUs more work than one task: two tasks that are always ready, so that one waits while the other runs, and an
//! idling CPU has work to search for.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire};
use core::task::{Context, Poll};

use arch::insn;

use crate::kernel::Cpu;

/// Number of the block's tasks that the crowd serves and that have not ended.
static FOR: AtomicU32 = AtomicU32::new(0);

/// Records the start of a task that the crowd serves.
pub fn note_begin() {
    FOR.fetch_add(1, AcqRel);
}

/// Records the end of a task that the crowd serves.
pub fn note_end() {
    FOR.fetch_sub(1, AcqRel);
}

/// Spawns the two tasks of this CPU; they end when all tasks that they serve have ended.
pub fn spawn(cpu: &Cpu) {
    cpu.spawn(Ready);
    cpu.spawn(Ready);
}

/// A task that is always ready.
struct Ready;

impl Future for Ready {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if FOR.load(Acquire) == 0 {
            return Poll::Ready(());
        }
        // Where CPUs run one after another, the other CPUs would otherwise make no progress.
        insn::yield_now();
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
