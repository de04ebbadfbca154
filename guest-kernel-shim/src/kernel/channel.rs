// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models pipes between tasks on any CPUs, as far as pipes make tasks wait: a channel only counts
//! messages, up to a limit.
//!
//! A task that has to wait puts itself into a list and checks once more; a task that changed the count empties the
//! list. The order that [`sched::list`] guarantees lets one of the two see the other. If this second check shows that
//! a task need not wait, the task also empties the list, itself included, so that it is in no list when it goes on.
//!
//! A task waits for one thing at a time, so it is in one list at most.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, SeqCst};
use core::task::{Context, Poll};

use sched::list::List;

use super::table;
use super::task::{self, Task};

/// A channel: the number of messages in it, and the tasks that wait for it.
#[repr(align(64))]
pub struct Channel {
    level: AtomicU32,
    receivers: List,
    senders: List,
}

/// Maximum number of messages in a channel: Linux's default socket buffer (208 KiB of buffers of
/// 768 bytes) holds this many of the 100-byte messages that `perf bench sched messaging` sends.
const LIMIT: u32 = 278;

impl Channel {
    /// Returns an empty channel.
    pub const fn new() -> Self {
        Self {
            level: AtomicU32::new(0),
            receivers: List::new(),
            senders: List::new(),
        }
    }

    /// Sends a message, after waiting while the channel is full.
    pub fn send(&'static self) -> Transfer {
        Transfer {
            channel: self,
            sends: true,
        }
    }

    /// Receives a message, after waiting while the channel is empty.
    pub fn receive(&'static self) -> Transfer {
        Transfer {
            channel: self,
            sends: false,
        }
    }

    /// Sends a message from a called function; the caller knows that the channel is not full.
    pub fn post(&self) {
        let sent = self.try_transfer(true);
        assert!(sent, "a channel is full that never is");
        wake_all(&self.receivers);
    }

    /// Removes all messages; no task may be waiting.
    pub fn clear(&self) {
        self.level.store(0, SeqCst);
    }

    /// Sends or receives if that is possible without waiting.
    fn try_transfer(&self, sends: bool) -> bool {
        let change = |level: u32| match sends {
            true => (level < LIMIT).then_some(level + 1),
            false => level.checked_sub(1),
        };
        self.level.fetch_update(SeqCst, Acquire, change).is_ok()
    }

    /// Returns the tasks that wait to send, or to receive.
    fn waiting_tasks(&self, senders: bool) -> &List {
        if senders {
            &self.senders
        } else {
            &self.receivers
        }
    }
}

/// A message that is being sent or received.
pub struct Transfer {
    channel: &'static Channel,
    sends: bool,
}

impl Future for Transfer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { channel, sends } = *self;
        if !channel.try_transfer(sends) {
            let task: &Task = task::current_task(context);
            let list = channel.waiting_tasks(sends);
            list.push(task.number, &task.waiting);
            let level = channel.level.load(SeqCst);
            let possible = if sends { level < LIMIT } else { level != 0 };
            if possible {
                wake_all(list);
            }
            return Poll::Pending;
        }
        wake_all(channel.waiting_tasks(!sends));
        Poll::Ready(())
    }
}

/// Wakes every task in `list`.
fn wake_all(list: &List) {
    if !list.is_empty() {
        for number in list.take(|number| &table::task(number).waiting) {
            table::task(number).wake();
        }
    }
}
