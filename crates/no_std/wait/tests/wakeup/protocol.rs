// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real protocol, [`Real`], and variants that are each broken in one place.
//!
//! The loops themselves are always the real ones. The loops' CPU breaks a rule by doing a requested
//! step at another time: if masking takes effect only at the WFI, the loop behaves like one that
//! masks after the check.

use loom::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};
use wait::request::{Notice, POLLING, REQUESTS, Request};

/// When interrupts are masked around a halt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// Interrupts are masked from before the check until after the WFI.
    Real,
    /// Interrupts are never masked.
    Never,
    /// Interrupts are masked from after the check until after the WFI.
    AfterCheck,
    /// Interrupts are masked from before the check until before the WFI.
    UntilHalt,
    /// Interrupts are masked from before the check, and never unmasked again.
    Forever,
}

/// When a busy CPU clears the flag of the interrupt handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clearing {
    /// Clears the flag if it was seen set, before the requests are taken.
    Real,
    /// Clears the flag whether it was seen set or not.
    Unseen,
    /// Clears the flag after the requests were taken.
    AfterTake,
}

/// When the CPU checks whether its tick came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickCheck {
    /// The check runs with interrupts masked.
    Real,
    /// The check runs before interrupts are masked.
    BeforeMask,
}

/// The operations on the request word and the steps of the loops. An operation that a mutant does
/// not override is the real one.
pub trait Protocol: Sized + 'static {
    /// Ordering that the DSB before the interrupt provides.
    const BARRIER: Ordering = Release;
    /// Whether the interrupt arrives before the request.
    const OVERTAKES: bool = false;
    /// When interrupts are masked.
    const MASKING: Masking = Masking::Real;
    /// When the handler's flag is cleared.
    const CLEARING: Clearing = Clearing::Real;
    /// When the CPU checks whether its tick came.
    const TICK: TickCheck = TickCheck::Real;

    /// Calls [`Request::wake`].
    fn wake(request: &Request, bit: u32, elide: bool) -> Notice {
        request.wake(bit, elide)
    }

    /// Calls [`Request::pending`].
    fn pending(request: &Request) -> u32 {
        request.pending()
    }

    /// Calls [`Request::stop_polling`].
    fn stop_polling(request: &Request) -> u32 {
        request.stop_polling()
    }

    /// Calls [`Request::finish_polling`].
    fn finish_polling(request: &Request, bits: u32) -> u32 {
        request.finish_polling(bits)
    }

    /// Calls [`Request::take`].
    fn take(request: &Request, bits: u32) -> u32 {
        request.take(bits)
    }
}

/// The protocol without any change.
pub struct Real;
impl Protocol for Real {}

/// Returns a waker's duty if the word was `old` before the waker's request.
fn notice(old: u32, bit: u32, polling: bool) -> Notice {
    if old & bit != 0 {
        Notice::Coalesced
    } else if polling {
        Notice::Elided
    } else {
        Notice::Send
    }
}

/// Declares protocols that each do one thing differently.
macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident { $($otherwise:tt)* })*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl Protocol for $name { $($otherwise)* }
    )*};
}

mutants! {
    /// POLLING is cleared by a load and a store: a request in between is lost.
    StopNotAtomic {
        fn stop_polling(request: &Request) -> u32 {
            let old = request.word().load(Acquire);
            request.word().store(old & !POLLING, Release);
            old & REQUESTS
        }
    }
    /// POLLING is not cleared before the WFI.
    StopKeepsPolling {
        fn stop_polling(request: &Request) -> u32 {
            request.pending()
        }
    }
    /// The requests are checked before POLLING is cleared.
    CheckBeforeClear {
        fn stop_polling(request: &Request) -> u32 {
            let seen = request.pending();
            request.stop_polling();
            seen
        }
    }
    /// A poll that found its request leaves POLLING set.
    FinishKeepsPolling {
        fn finish_polling(request: &Request, bits: u32) -> u32 {
            request.take(bits)
        }
    }
    /// Requests are taken by a load and a store: a request in between is lost.
    TakeNotAtomic {
        fn take(request: &Request, bits: u32) -> u32 {
            let old = request.word().load(Acquire);
            request.word().store(old & !bits, Release);
            old & bits
        }
    }
    /// The waker decides based on the value that POLLING had before the request was set.
    LookBeforeRequest {
        fn wake(request: &Request, bit: u32, elide: bool) -> Notice {
            let polling = elide && request.word().load(Acquire) & POLLING != 0;
            notice(request.word().fetch_or(bit, AcqRel), bit, polling)
        }
    }
    /// The request is set without releasing the stores before it.
    RelaxedWake {
        fn wake(request: &Request, bit: u32, elide: bool) -> Notice {
            let old = request.word().fetch_or(bit, Relaxed);
            notice(old, bit, elide && old & POLLING != 0)
        }
    }
    /// Requests are taken after a halt without acquiring the stores before them.
    RelaxedTake {
        fn stop_polling(request: &Request) -> u32 {
            request.word().fetch_and(!POLLING, Relaxed) & REQUESTS
        }
        fn take(request: &Request, bits: u32) -> u32 {
            request.word().fetch_and(!bits, Relaxed) & bits
        }
    }
    /// Requests are taken after a poll without acquiring the stores before them.
    RelaxedFinish {
        fn finish_polling(request: &Request, bits: u32) -> u32 {
            request.word().fetch_and(!(bits | POLLING), Relaxed) & bits
        }
    }
    /// A halt is entered regardless of the result of the check.
    HaltsUnchecked {
        fn pending(_: &Request) -> u32 {
            0
        }
        fn stop_polling(request: &Request) -> u32 {
            request.stop_polling();
            0
        }
    }
    /// Interrupts are not masked around check and WFI.
    NeverMasked { const MASKING: Masking = Masking::Never; }
    /// Interrupts are masked only after the check.
    MaskedLate { const MASKING: Masking = Masking::AfterCheck; }
    /// Interrupts are unmasked before the WFI, which then continues to sleep after the handler.
    UnmaskedEarly { const MASKING: Masking = Masking::UntilHalt; }
    /// Interrupts stay masked after the WFI, so that no handler runs.
    NeverUnmasked { const MASKING: Masking = Masking::Forever; }
    /// A busy CPU clears the handler's flag without having seen it set.
    ClearedUnseen { const CLEARING: Clearing = Clearing::Unseen; }
    /// A busy CPU clears the handler's flag after it took the requests.
    ClearedLate { const CLEARING: Clearing = Clearing::AfterTake; }
    /// The check for the tick comes before interrupts are masked.
    TickCheckedEarly { const TICK: TickCheck = TickCheck::BeforeMask; }
    /// There is no DSB between the request and the interrupt, so the interrupt orders nothing.
    NoBarrier { const BARRIER: Ordering = Relaxed; }
    /// There is no DSB between the request and the interrupt, which overtakes it. This is only for
    /// wakers that do not elide: they are certain to send an interrupt.
    InterruptOvertakes { const OVERTAKES: bool = true; }
}
