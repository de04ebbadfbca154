// SPDX-License-Identifier: MIT OR Apache-2.0
//! The haltpoll governor (rules H1 to H9).

use crate::poll::poll_limit_ns;
use crate::trace::{Ask, Choice, Event, Governor, Table};

/// The parameters (H1). Parameters whose name ends in `_ns` are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaltpollParameters {
    /// The largest poll limit.
    pub maximum_ns: u32,
    /// The factor by which the limit grows.
    pub grow: u32,
    /// The limit at which the growth begins.
    pub start_ns: u32,
    /// The divisor by which the limit shrinks; with 0, the limit shrinks to 0.
    pub shrink: u32,
    /// Whether the limit shrinks at all.
    pub allow_shrink: bool,
    /// H6: whether a limit that shrinks below `start_ns` becomes 0 (since 6.9).
    pub below_start_is_zero: bool,
}

impl HaltpollParameters {
    /// The defaults up to 6.8.
    pub const V6_2: Self = Self {
        maximum_ns: 200_000,
        grow: 2,
        start_ns: 50_000,
        shrink: 2,
        allow_shrink: true,
        below_start_is_zero: false,
    };

    /// The defaults since 6.9.
    pub const V6_9: Self = Self {
        below_start_is_zero: true,
        ..Self::V6_2
    };
}

/// The haltpoll governor of one CPU.
#[derive(Clone, Debug)]
pub struct Haltpoll {
    parameters: HaltpollParameters,
    tick_ns: i64,
    limit_ns: u64,
    last: usize,
    limit_hit: bool,
}

impl Haltpoll {
    /// Creates a haltpoll governor for a new device, with a tick of `tick_ns`.
    pub fn new(parameters: HaltpollParameters, tick_ns: i64) -> Self {
        Self {
            parameters,
            tick_ns,
            limit_ns: 0,
            last: 0,
            limit_hit: false,
        }
    }

    /// Returns the poll limit in ns (H1). If the limit is 0, the limit of P1 applies.
    pub fn limit_ns(&self) -> u64 {
        self.limit_ns
    }

    /// Returns the maximum time for which `table`'s polling state polls, in ns (P2).
    pub fn own_limit_ns(&self, table: &Table) -> u64 {
        match self.limit_ns {
            0 => poll_limit_ns(table, self.tick_ns) as u64,
            limit => limit,
        }
    }

    /// Adapts the limit to the time for which the CPU was blocked (H5 and H6).
    fn adjust(&mut self, blocked_ns: u64) {
        let Self {
            parameters: p,
            limit_ns,
            ..
        } = self;
        if blocked_ns > u64::from(p.maximum_ns) {
            if !p.allow_shrink {
                return;
            }
            // With a divisor of 0, the limit becomes 0.
            let shrunk = limit_ns.checked_div(u64::from(p.shrink)).unwrap_or(0);
            let reset = p.below_start_is_zero && shrunk < u64::from(p.start_ns);
            *limit_ns = if reset { 0 } else { shrunk };
        } else if blocked_ns > *limit_ns {
            let grown = limit_ns.wrapping_mul(u64::from(p.grow)) as u32;
            *limit_ns = u64::from(grown.max(p.start_ns).min(p.maximum_ns));
        }
    }
}

impl Governor for Haltpoll {
    fn choose(&mut self, table: &Table, ask: &Ask) -> Choice {
        let poll = Choice::new(0, false);
        let halt = Choice::new(1, true);
        // H8: this table has only the poll state.
        if ask.latency_limit_ns == 0 || table.len() == 1 {
            poll
        } else if self.limit_ns == 0 || (self.last == 0 && self.limit_hit) {
            halt
        } else {
            poll
        }
    }

    fn learn(&mut self, table: &Table, event: &Event) {
        let Event::Slept(sleep) = event else { return };
        self.last = sleep.entered;
        if sleep.entered == 0 {
            // H9.
            if self.limit_ns == 0 {
                self.limit_ns = self.own_limit_ns(table);
            }
            self.limit_hit = sleep.poll_limit_hit;
        } else {
            self.adjust(sleep.slept_ns as u64);
        }
    }
}
