// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs tasks: futures that belong to one CPU for their whole life.
//!
//! A task is queued, runs, or waits; two bits of its state say which. A waker sets QUEUED. If the
//! task was waiting, the first waker to set this bit puts the task into a queue of its CPU; if the task was
//! running, the executor does so later. So a task is in at most one queue and no wake-up is lost.
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

/// The task is in a queue, or will be put into one when it stops running.
const QUEUED: u32 = 1 << 0;
/// The task's CPU runs it.
const RUNNING: u32 = 1 << 1;

/// A future in memory of a [`super::Cpu`].
pub struct Placed(&'static mut dyn Future<Output = ()>);

impl Placed {
    /// Wraps a future that nothing else refers to, in memory that has no other use while this value lives.
    pub fn new(future: &'static mut dyn Future<Output = ()>) -> Self {
        Self(future)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        // SAFETY: the future was placed by value, this is the only reference to it, and nothing
        // uses it afterwards.
        unsafe { core::ptr::drop_in_place(self.0) }
    }
}

/// One task.
pub struct Task {
    /// The task's number among all tasks.
    pub number: u32,
    /// The CPU that runs the task.
    pub home: usize,
    state: AtomicU32,
    /// Links the task into the inbox of its CPU.
    pub inbox: Link,
    /// Links the task into the list of tasks that wait for an event.
    pub waiting: Link,
    /// Number of the next task in the run queue, plus one.
    pub next: AtomicU32,
    future: Local<Option<Placed>>,
}

impl Task {
    /// Returns a task of CPU `home` that has nothing to run yet.
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

    /// Makes the task run `future`; the caller puts the task into a queue.
    pub fn set_future(&self, future: Placed) {
        self.future.with(|place| *place = Some(future));
        self.state.store(QUEUED, Release);
    }

    /// Makes the task ready.
    pub fn wake(&'static self) {
        if self.state.fetch_or(QUEUED, AcqRel) == 0 {
            table::enqueue(self);
        }
    }

    /// Runs the task until it waits or ends; returns what to do with it.
    pub fn run(&'static self) -> After {
        // An exchange and not a store: the writes of a waker that found QUEUED set have to be visible to the future.
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
            // A wake-up after the task's end finds no future.
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
        unsafe { Waker::from_raw(raw_waker(self)) }
    }

    /// Whether the task has no future.
    pub fn is_free(&self) -> bool {
        self.future.with(|place| place.is_none())
    }

    /// Returns the number of the task that follows this one in the run queue.
    pub fn next(&self) -> Option<u32> {
        self.next.load(Relaxed).checked_sub(1)
    }
}

/// The executor's next step for a task that has stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The task waits: there is nothing to do.
    Waits,
    /// The task was woken while it ran.
    Again,
    /// The task has ended.
    Ended,
}

fn raw_waker(task: &'static Task) -> RawWaker {
    RawWaker::new(core::ptr::from_ref(task).cast(), &TABLE)
}

/// Returns the task that a waker wakes.
fn task_of_waker(data: *const ()) -> &'static Task {
    // SAFETY: only `raw_waker` makes wakers with this table, and only for tasks that live for ever.
    unsafe { &*data.cast() }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(
    |data| raw_waker(task_of_waker(data)),
    |data| task_of_waker(data).wake(),
    |data| task_of_waker(data).wake(),
    |_| {},
);

/// Returns the task whose future is polled with `context`.
pub fn current_task(context: &Context<'_>) -> &'static Task {
    debug_assert!(core::ptr::eq(context.waker().vtable(), &TABLE));
    task_of_waker(context.waker().data())
}
