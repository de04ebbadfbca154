// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine on which the loops run: interrupts, masking, WFI, the clock, and payloads with their
//! checks.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use loom::sync::Notify;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{Acquire, Relaxed};
use wait::poll::Pause;
use wait::request::{CALL, Notice, REQUESTS, RESCHED, Request};
use wait::target::{Measure, Target};

use crate::protocol::{Clearing, Masking, Protocol};

/// Stands for the scheduler's tick in place of a request bit: an interrupt without a request, which
/// comes only once.
pub const TICK: u32 = 1 << 8;
/// Number of clock ticks that a long halt takes. Of the halts that have to wait, every second one is
/// long; all other halts take no ticks.
const LONG_HALT: u64 = 2;

/// One wake-up by a waker.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    /// Request bit, which also names the interrupt; or [`TICK`].
    pub bit: u32,
    /// Whether the interrupt may be left out.
    pub elide: bool,
}

/// Counts events in all executions of a model, to show that the model was not empty. These counters
/// are not loom's, so they do not change the executions.
#[derive(Debug, Default)]
pub struct Coverage {
    /// Executions of the model.
    pub executions: AtomicU64,
    /// Wake-ups that sent an interrupt.
    pub sent: AtomicU64,
    /// Wake-ups whose interrupt was left out.
    pub elided: AtomicU64,
    /// Wake-ups that found their request already set.
    pub coalesced: AtomicU64,
    /// WFIs that had to wait.
    pub blocked: AtomicU64,
    /// Function calls that the interrupt handler served.
    pub handled: AtomicU64,
    /// Polls that reached their limit.
    pub timeouts: AtomicU64,
}

/// Adds 1 to a counter.
fn count(counter: &AtomicU64) {
    counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

/// State that the target and its wakers share.
pub struct World {
    /// The word under test.
    pub request: Request,
    /// Pending interrupts of the target, one bit per INTID.
    lines: AtomicU32,
    /// Notifies a target that waits in a WFI.
    event: Notify,
    /// Payload of each wake-up: 1 once it was handed over.
    payloads: Vec<AtomicU32>,
    /// Request bit of each wake-up.
    bits: Vec<u32>,
    coverage: Arc<Coverage>,
}

impl World {
    /// Creates a target that is awake, and the wake-ups that it will get.
    pub fn new(bits: Vec<u32>, coverage: Arc<Coverage>) -> Self {
        count(&coverage.executions);
        Self {
            request: Request::new(),
            lines: AtomicU32::new(0),
            event: Notify::new(),
            payloads: bits.iter().map(|_| AtomicU32::new(0)).collect(),
            bits,
            coverage,
        }
    }

    /// For the waker: hands over payload `index`, then wakes the target according to the
    /// protocol.
    pub fn wake<P: Protocol>(&self, index: usize, wake: Wake) {
        self.payloads[index].store(1, Relaxed);
        if wake.bit == TICK {
            return self.interrupt::<P>(TICK);
        }
        if P::OVERTAKES {
            self.interrupt::<P>(wake.bit);
        }
        match P::wake(&self.request, wake.bit, wake.elide) {
            Notice::Send => {
                count(&self.coverage.sent);
                if !P::OVERTAKES {
                    self.interrupt::<P>(wake.bit);
                }
            }
            Notice::Elided => {
                assert!(wake.elide, "elided unasked");
                count(&self.coverage.elided);
            }
            Notice::Coalesced => count(&self.coverage.coalesced),
        }
    }

    /// Whether payload `index` was handed over.
    pub fn has_handed(&self, index: usize) -> bool {
        self.payloads[index].load(Relaxed) != 0
    }

    /// Makes an interrupt pending for the target.
    fn interrupt<P: Protocol>(&self, line: u32) {
        self.lines.fetch_or(line, P::BARRIER);
        self.event.notify();
    }
}

/// The waiting CPU. This CPU owns every field except `world`.
pub struct LoomCpu<P> {
    world: Arc<World>,
    masked: Cell<bool>,
    /// Whether an interrupt that is pending when interrupts are unmasked is taken one step later.
    late: bool,
    unmasked_now: Cell<bool>,
    /// A bit for each payload that was found.
    seen: Cell<u32>,
    self_woken: Cell<bool>,
    /// The handler's flag, for [`Target::interrupted`].
    interrupted: Cell<bool>,
    /// Whether the flag still has to be cleared.
    clears: Cell<bool>,
    ticked: Cell<bool>,
    time: Cell<u64>,
    /// Number of halts that had to wait.
    halts: Cell<u64>,
    protocol: PhantomData<P>,
}

impl<P: Protocol> LoomCpu<P> {
    /// Creates a CPU that is awake, with interrupts unmasked.
    pub fn new(world: Arc<World>, late: bool) -> Self {
        Self {
            world,
            masked: Cell::new(false),
            late,
            unmasked_now: Cell::new(false),
            seen: Cell::new(0),
            self_woken: Cell::new(false),
            interrupted: Cell::new(false),
            clears: Cell::new(false),
            ticked: Cell::new(false),
            time: Cell::new(0),
            halts: Cell::new(0),
            protocol: PhantomData,
        }
    }

    /// Whether every payload was found, and no request is left for the next wait to
    /// find.
    pub fn is_done(&self) -> bool {
        self.seen.get().count_ones() as usize == self.world.payloads.len()
            && self.world.request.word().load(Relaxed) & REQUESTS == 0
    }

    /// Whether the tick has come since the last [`LoomCpu::take_tick`].
    pub fn has_ticked(&self) -> bool {
        self.take_interrupts();
        self.ticked.get()
    }

    /// Returns [`TICK`] if the tick has come since the last call, otherwise 0.
    pub fn take_tick(&self) -> u32 {
        if self.ticked.take() { TICK } else { 0 }
    }

    fn set_masked(&self) {
        self.take_interrupts();
        self.masked.set(true);
    }

    fn set_unmasked(&self) {
        self.masked.set(false);
        self.unmasked_now.set(self.late);
        self.take_interrupts();
    }

    fn set_uninterrupted(&self) {
        self.take_interrupts();
        self.interrupted.set(false);
    }

    /// Runs the vector and its handler, if an interrupt is pending and not masked.
    fn take_interrupts(&self) {
        if self.masked.get() || self.unmasked_now.replace(false) {
            return;
        }
        let lines = self.world.lines.swap(0, Acquire);
        if lines & RESCHED != 0 {
            self.interrupted.set(true);
        }
        if lines & TICK != 0 {
            self.ticked.set(true);
        }
        if lines & CALL != 0 && P::take(&self.world.request, CALL) != 0 {
            count(&self.world.coverage.handled);
            self.serve(CALL);
        }
    }

    /// Serves the taken requests, and asserts that their payload was handed over.
    pub fn serve(&self, taken: u32) {
        for bit in [RESCHED, CALL, TICK] {
            if taken & bit == 0 {
                continue;
            }
            let found = self.look(bit);
            let excused = bit == RESCHED && self.self_woken.get();
            assert!(found != 0 || excused, "payload not there");
        }
        if taken & CALL != 0 && self.look(CALL).count_ones() == self.expected_calls() {
            // The last call lets the task continue, as in `call::called_function`.
            self.self_woken.set(true);
            self.interrupted.set(true);
            self.world.request.wake(RESCHED, false);
        }
    }

    fn expected_calls(&self) -> u32 {
        let calls = self.world.bits.iter().filter(|&&bit| bit == CALL);
        calls.count() as u32
    }

    /// Returns the payloads of `bit` that were handed over, one bit each.
    fn look(&self, bit: u32) -> u32 {
        let mut found = 0;
        for (index, payload) in self.world.payloads.iter().enumerate() {
            let known = self.seen.get() & 1 << index != 0;
            if self.world.bits[index] == bit && (known || payload.load(Relaxed) != 0) {
                found |= 1 << index;
            }
        }
        self.seen.set(self.seen.get() | found);
        found
    }
}

/// An interrupt can be taken before each access to the word.
impl<P: Protocol> Target for LoomCpu<P> {
    fn request(&self) -> &Request {
        self.take_interrupts();
        &self.world.request
    }

    /// Takes the interrupts that came earlier, then masks interrupts.
    fn mask_irq(&self) {
        if !matches!(P::MASKING, Masking::Never | Masking::AfterCheck) {
            self.set_masked();
        }
    }

    fn unmask_irq(&self) {
        if P::MASKING != Masking::Forever {
            self.set_unmasked();
        }
    }

    /// Waits until an interrupt is pending, masked or not. The WFI by itself orders
    /// nothing.
    fn wfi(&self) {
        match P::MASKING {
            Masking::AfterCheck => self.set_masked(),
            Masking::UntilHalt => self.set_unmasked(),
            _ => self.take_interrupts(),
        }
        if self.world.lines.fetch_or(0, Relaxed) == 0 {
            count(&self.world.coverage.blocked);
            loop {
                self.world.event.wait();
                if self.world.lines.fetch_or(0, Relaxed) != 0 {
                    break;
                }
            }
            let halts = self.halts.get();
            self.halts.set(halts + 1);
            self.time.set(self.time.get() + halts % 2 * LONG_HALT);
        }
        self.take_interrupts();
    }

    fn yield_now(&self) {
        loom::thread::yield_now();
    }

    /// Advances the clock by one; a halt advances it, too. No interrupt is taken here: it could not be
    /// distinguished from an interrupt before the next access.
    fn now(&self) -> u64 {
        self.time.set(self.time.get() + 1);
        self.time.get()
    }

    fn interrupted(&self) -> bool {
        self.take_interrupts();
        let was = self.interrupted.get();
        if P::CLEARING == Clearing::Unseen {
            self.set_uninterrupted();
        }
        was
    }

    fn clear_interrupted(&self) {
        if P::CLEARING == Clearing::AfterTake {
            self.clears.set(true);
        } else {
            self.set_uninterrupted();
        }
    }

    fn count(&self, measure: Measure, many: u64) {
        if measure == Measure::PollTimeouts {
            assert_eq!(many, 1);
            count(&self.world.coverage.timeouts);
        }
    }

    fn pending(&self) -> u32 {
        P::pending(self.request())
    }

    fn stop_polling(&self) -> u32 {
        P::stop_polling(self.request())
    }

    fn finish_polling(&self, bits: u32) -> u32 {
        P::finish_polling(self.request(), bits)
    }

    fn take(&self, bits: u32) -> u32 {
        let taken = P::take(self.request(), bits);
        if self.clears.take() {
            self.set_uninterrupted();
        }
        taken
    }
}

/// How a [`LoomCpu`] pauses.
pub struct Looks {
    /// Whether the poll has no limit, so that the other threads must get to run.
    pub endless: bool,
}

impl Pause for Looks {
    const PER_CLOCK: u32 = 1;

    fn look(&self, request: &Request) -> u32 {
        request.word().load(Relaxed)
    }

    fn pause(&self, _: u64) {
        if self.endless {
            loom::thread::yield_now();
        }
    }
}
