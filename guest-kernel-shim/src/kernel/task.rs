// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks: futures that belong to one CPU for their whole life.
//!
//! A task is queued, runs, or waits, and its state says so in two bits. A waker sets QUEUED; the first to set it must
//! put the task into a queue of its CPU: a waker if the task waited, the executor if it ran meanwhile. So a task is in
//! at most one queue and no wake-up is lost.
//!
//! There is no allocator: a block of a cell places its futures one after the other in memory of their CPU, which is
//! reused when all have ended.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use sched::list::Link;

use super::local::Local;
use super::table;

/// It is in a queue, or will be put into one when it stops running.
const QUEUED: u32 = 1 << 0;
/// Its CPU runs it.
const RUNNING: u32 = 1 << 1;

/// A future in memory of a [`super::Cpu`].
pub struct Placed(&'static mut dyn Future<Output = ()>);

impl Placed {
    /// A future that nothing else refers to, in memory that has no other use as long as this lives.
    pub fn new(future: &'static mut dyn Future<Output = ()>) -> Self {
        Self(future)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        // SAFETY: it was placed by value, this is the only reference, and nothing
        // uses it after this.
        unsafe { core::ptr::drop_in_place(self.0) }
    }
}

/// One task.
pub struct Task {
    /// Number among all.
    pub number: u32,
    /// The CPU that runs it.
    pub home: usize,
    state: AtomicU32,
    /// Its place in the inbox of its CPU.
    pub inbox: Link,
    /// Its place in the list of tasks that wait for an event.
    pub waiting: Link,
    /// Number of the next task in the run queue, plus one.
    pub next: AtomicU32,
    future: Local<Option<Placed>>,
}

impl Task {
    /// A task that does not exist yet, of CPU `home`.
    pub const fn new(number: u32, home: usize) -> Self {
        Self {
            number,
            home,
            state: AtomicU32::new(0),
            inbox: Link::new(),
            waiting: Link::new(),
            next: AtomicU32::new(0),
            future: Local::new(home, None),
        }
    }

    /// Makes it run `future`; the caller puts it into a queue.
    pub fn begin(&self, future: Placed) {
        self.future.with(|place| *place = Some(future));
        self.state.store(QUEUED, Release);
    }

    /// Makes it ready.
    pub fn wake(&'static self) {
        if self.state.fetch_or(QUEUED, AcqRel) == 0 {
            table::enqueue(self);
        }
    }

    /// Runs the task until it waits or ends; returns what to do with it.
    pub fn run(&'static self) -> After {
        // An exchange, not a store: the writes of a waker that found QUEUED set have to be visible to the future.
        self.state.swap(RUNNING, AcqRel);
        let waker = self.waker();
        let mut context = Context::from_waker(&waker);
        let ended = self.future.with(|place| {
            let future = place.as_mut()?;
            // SAFETY: the future is never moved out of where it was placed.
            let pinned = unsafe { Pin::new_unchecked(&mut *future.0) };
            let ended = pinned.poll(&mut context) == Poll::Ready(());
            if ended {
                *place = None;
            }
            Some(ended)
        });
        if ended != Some(false) {
            self.state.store(0, Release);
            // A wake-up after the end finds no future.
            return ended.map_or(After::Waits, |_| After::Ended);
        }
        match self.state.fetch_and(!RUNNING, AcqRel) & QUEUED {
            0 => After::Waits,
            _ => After::Again,
        }
    }

    fn waker(&'static self) -> Waker {
        // SAFETY: the functions of the table expect a task that lives for ever,
        // and change nothing but atomics.
        unsafe { Waker::from_raw(raw(self)) }
    }

    /// Whether it has nothing to run.
    pub fn is_free(&self) -> bool {
        self.future.with(|place| place.is_none())
    }

    /// The task that follows it in the run queue.
    pub fn next(&self) -> Option<u32> {
        self.next.load(Relaxed).checked_sub(1)
    }
}

/// Action on a task that has stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It waits: nothing to do.
    Waits,
    /// It was woken while it ran.
    Again,
    /// It has ended.
    Ended,
}

fn raw(task: &'static Task) -> RawWaker {
    RawWaker::new(core::ptr::from_ref(task).cast(), &TABLE)
}

/// The task that a waker wakes.
fn task(data: *const ()) -> &'static Task {
    // SAFETY: only `raw` makes wakers with this table, of tasks that live for ever.
    unsafe { &*data.cast() }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(
    |data| raw(task(data)),
    |data| task(data).wake(),
    |data| task(data).wake(),
    |_| {},
);

/// Returns the task of a context.
pub fn current(context: &Context<'_>) -> &'static Task {
    debug_assert!(core::ptr::eq(context.waker().vtable(), &TABLE));
    task(context.waker().data())
}
