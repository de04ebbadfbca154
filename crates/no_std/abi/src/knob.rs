// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the knobs, and the words in which [`Call::Set`](crate::Call::Set) passes them.

use crate::{Knob, Neighbour};

/// A knob with its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobValue {
    /// The wait instructions that trap.
    Trap(Trap),
    /// The side that owns the CPU interface.
    Deliver(Deliver),
    /// The time for which EL2 polls before it halts in a trapped WFI, in counter ticks.
    HostPoll(u64),
    /// Whether EL2 adapts the poll's limit, instead of using [`Self::HostPoll`].
    HostPollAdaptive(bool),
    /// Whether the guest itself polls; EL2 then does not poll.
    GuestPolls(bool),
    /// Fields of CNTHCTL_EL2, in their bit positions.
    EventStream(u64),
    /// Whether EL2 records events.
    Trace(bool),
    /// Whether EL2 checks timers again when the guest acknowledges their interrupts.
    RecheckTimers(bool),
    /// The neighbour's work.
    Neighbour(Neighbour),
    /// Length of a slice in ticks; 0 means no slices.
    Slice(u64),
    /// Whether a trapped WFE gives the CPU to the neighbour.
    YieldOnWfe(bool),
}

/// The wait instructions that trap to EL2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trap {
    /// WFI and WFIT (HCR_EL2.TWI).
    pub wfi: bool,
    /// WFE and WFET (HCR_EL2.TWE).
    pub wfe: bool,
}

impl Trap {
    /// No wait instruction traps.
    pub const NONE: Self = Self {
        wfi: false,
        wfe: false,
    };
}

/// The side, EL2 or guest, that owns the physical CPU interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deliver {
    /// EL2, which injects interrupts.
    #[default]
    Inject = 0,
    /// The guest.
    Direct = 1,
}

impl KnobValue {
    /// Returns the knob and the word to pass.
    #[must_use]
    pub const fn encode(self) -> (Knob, u64) {
        match self {
            Self::Trap(Trap { wfi, wfe }) => (Knob::Trap, wfi as u64 | (wfe as u64) << 1),
            Self::Deliver(deliver) => (Knob::Deliver, deliver as u64),
            Self::HostPoll(ticks) => (Knob::HostPoll, ticks),
            Self::HostPollAdaptive(on) => (Knob::HostPollAdaptive, on as u64),
            Self::GuestPolls(on) => (Knob::GuestPolls, on as u64),
            Self::EventStream(fields) => (Knob::EventStream, fields),
            Self::Trace(on) => (Knob::Trace, on as u64),
            Self::RecheckTimers(on) => (Knob::RecheckTimers, on as u64),
            Self::Neighbour(neighbour) => (Knob::Neighbour, neighbour.encode()),
            Self::Slice(ticks) => (Knob::Slice, ticks),
            Self::YieldOnWfe(on) => (Knob::YieldOnWfe, on as u64),
        }
    }

    /// Returns the value of `word` for `knob`, or `None` if `word` is not valid.
    #[must_use]
    pub const fn decode(knob: Knob, word: u64) -> Option<Self> {
        let on = word == 1;
        Some(match (knob, word) {
            (Knob::Trap, 0..=3) => Self::Trap(Trap {
                wfi: word & 1 != 0,
                wfe: word & 2 != 0,
            }),
            (Knob::Deliver, 0) => Self::Deliver(Deliver::Inject),
            (Knob::Deliver, 1) => Self::Deliver(Deliver::Direct),
            (Knob::HostPoll, ticks) => Self::HostPoll(ticks),
            (Knob::HostPollAdaptive, 0 | 1) => Self::HostPollAdaptive(on),
            (Knob::GuestPolls, 0 | 1) => Self::GuestPolls(on),
            (Knob::EventStream, fields) => Self::EventStream(fields),
            (Knob::Trace, 0 | 1) => Self::Trace(on),
            (Knob::RecheckTimers, 0 | 1) => Self::RecheckTimers(on),
            (Knob::Neighbour, word) => match Neighbour::decode(word) {
                Some(neighbour) => Self::Neighbour(neighbour),
                None => return None,
            },
            (Knob::Slice, ticks) => Self::Slice(ticks),
            (Knob::YieldOnWfe, 0 | 1) => Self::YieldOnWfe(on),
            (
                Knob::Trap
                | Knob::Deliver
                | Knob::HostPollAdaptive
                | Knob::GuestPolls
                | Knob::Trace
                | Knob::RecheckTimers
                | Knob::YieldOnWfe,
                _,
            ) => return None,
        })
    }
}
