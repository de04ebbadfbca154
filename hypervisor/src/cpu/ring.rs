// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps each CPU's last events at EL2, with time stamps, in a ring.

use core::fmt;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

use aarch64_cpu::registers::{CNTVCT_EL0, Readable};
use abi::{TimeLog, Traced, event_word};
use arch::insn;

/// Number of events that a ring holds.
pub const EVENTS: usize = 64;

#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The virtual count, in ticks.
    pub time: u64,
    /// The kind of event, a [`Traced`].
    pub what: u64,
    /// The event's data.
    pub data: u64,
}

/// The last events of a CPU. Only that CPU records events. Any CPU may read them, but the events are certain to be
/// whole only if none is recorded meanwhile.
pub struct Ring {
    events: [[AtomicU64; 3]; EVENTS],
    count: AtomicUsize,
    /// The guest's log, which also receives the events; null if there is none.
    log: AtomicPtr<TimeLog>,
}

impl Ring {
    /// Creates a ring without events.
    pub const fn new() -> Self {
        Self {
            events: [const { [const { AtomicU64::new(0) }; 3] }; EVENTS],
            count: AtomicUsize::new(0),
            log: AtomicPtr::new(null_mut()),
        }
    }

    /// Records an event. Only the CPU that owns the ring calls this.
    #[inline(always)]
    pub fn note_event(&self, what: Traced, data: u64) {
        let count = self.count.load(Relaxed);
        let event = &self.events[count % EVENTS];
        // Without this ISB, the counter could be read before the preceding work is over (DDI
        // 0487K.a, D12.1.3).
        insn::isb();
        let now = CNTVCT_EL0.get();
        event[0].store(now, Relaxed);
        event[1].store(what as u64, Relaxed);
        event[2].store(data, Relaxed);
        self.count.store(count + 1, Release);
        let log = self.log.load(Relaxed);
        // SAFETY: `copy_to_log` stores references that live for ever.
        if let Some(log) = unsafe { log.as_ref() } {
            // strict sgi-after-stores: as in `note`, whose stores the compiler may attribute to this line.
            log.note(now, event_word(what, data));
        }
    }

    /// From now on, also records events in `log`; with `None`, in the ring only.
    pub fn copy_to_log(&self, log: Option<&'static TimeLog>) {
        let log = log.map_or(null_mut(), |log| core::ptr::from_ref(log).cast_mut());
        self.log.store(log, Relaxed);
    }

    /// Returns event `number`, counted from the very first event.
    fn event(&self, number: usize) -> Event {
        let [time, what, data] = &self.events[number % EVENTS];
        Event {
            time: time.load(Relaxed),
            what: what.load(Relaxed),
            data: data.load(Relaxed),
        }
    }

    /// Returns the events that the ring holds, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Event> {
        let count = self.count.load(Acquire);
        (count - count.min(EVENTS)..count).map(|number| self.event(number))
    }

    /// Returns the newest events, the newest first.
    pub fn latest(&self) -> [Event; abi::EVENTS] {
        let count = self.count.load(Acquire);
        core::array::from_fn(|n| self.event(count.wrapping_sub(1 + n)))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = Traced::ALL
            .get(self.what as usize)
            .map_or("?", |what| what.name());
        write!(f, "{:>16} {what} {:#x}", self.time, self.data)
    }
}
