// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a CPU did last at EL2, with time stamps, in a ring of its own.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, AtomicUsize};

use aarch64_cpu::registers::{CNTVCT_EL0, Readable};
use abi::{Counter, Traced};
use trap::esr::{self, Esr};

/// Events that a ring holds.
pub const EVENTS: usize = 64;

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Virtual count, ticks.
    pub time: u64,
    /// What happened, a [`Traced`].
    pub what: u64,
    /// What it happened with.
    pub data: u64,
}

/// The last events of a CPU. It alone notes. Any CPU may look, and sees whole
/// events only as long as it does not note any.
pub struct Ring {
    events: [[AtomicU64; 3]; EVENTS],
    count: AtomicUsize,
    /// Ticks spent at EL2, by the counter of the exit's cause.
    times: [AtomicU64; Counter::COUNT],
    /// When the exit began, its cause, and how long EL2 halted in it.
    began: AtomicU64,
    cause: AtomicUsize,
    halted: AtomicU64,
}

impl Ring {
    /// None.
    pub const fn new() -> Self {
        Self {
            events: [const { [const { AtomicU64::new(0) }; 3] }; EVENTS],
            count: AtomicUsize::new(0),
            times: [const { AtomicU64::new(0) }; Counter::COUNT],
            began: AtomicU64::new(0),
            cause: AtomicUsize::new(Counter::Other as usize),
            halted: AtomicU64::new(0),
        }
    }

    /// Notes an event. Only the CPU that owns the ring calls this.
    #[inline(always)]
    pub fn note(&self, what: Traced, data: u64) {
        let count = self.count.load(Relaxed);
        let event = &self.events[count % EVENTS];
        let now = CNTVCT_EL0.get();
        event[0].store(now, Relaxed);
        event[1].store(what as u64, Relaxed);
        event[2].store(data, Relaxed);
        self.count.store(count + 1, Release);
        self.account(what, data, now);
    }

    /// Sums up the time between an exit and the return from it.
    fn account(&self, what: Traced, data: u64, now: u64) {
        let begin = |cause: Counter| {
            self.began.store(now, Relaxed);
            self.cause.store(cause as usize, Relaxed);
            self.halted.store(0, Relaxed);
        };
        let add = |place: usize, ticks: u64| {
            let time = &self.times[place];
            time.store(time.load(Relaxed) + ticks, Relaxed);
        };
        match what {
            Traced::Synchronous => begin(cause(Esr(data))),
            Traced::Interrupt => begin(Counter::Irq),
            Traced::Halt => self.halted.store(now, Relaxed),
            Traced::Awake => {
                let halted = now - self.halted.load(Relaxed);
                self.halted.store(halted, Relaxed);
                add(Counter::Halt as usize, halted);
            }
            Traced::Resume => {
                let spent = now.saturating_sub(self.began.load(Relaxed));
                let working = spent.saturating_sub(self.halted.load(Relaxed));
                add(self.cause.load(Relaxed), working);
            }
            Traced::Sent | Traced::Nothing => {}
        }
    }

    /// Ticks spent at EL2, in the places of the counters.
    pub fn times(&self) -> [u64; Counter::COUNT] {
        core::array::from_fn(|n| self.times[n].load(Relaxed))
    }

    /// Event `number`, counted from the first one ever.
    fn event(&self, number: usize) -> Event {
        let [time, what, data] = &self.events[number % EVENTS];
        Event {
            time: time.load(Relaxed),
            what: what.load(Relaxed),
            data: data.load(Relaxed),
        }
    }

    /// The events that it holds, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Event> {
        let count = self.count.load(Acquire);
        (count - count.min(EVENTS)..count).map(|number| self.event(number))
    }

    /// The newest events, the newest first.
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

/// What an exit with this syndrome counts as. Of system registers only
/// the SGI registers are traced: the others take the untraced way.
fn cause(syndrome: Esr) -> Counter {
    match syndrome.class() {
        // TI, bit 0: WFE or WFET.
        esr::WFX if syndrome.iss() & 1 != 0 => Counter::Wfe,
        esr::WFX => Counter::Wfi,
        esr::HVC64 => Counter::Hvc,
        esr::SMC64 => Counter::Smc,
        esr::SYSREG => Counter::Sgi,
        esr::DATA_ABORT_LOWER => Counter::Mmio,
        _ => Counter::Other,
    }
}
