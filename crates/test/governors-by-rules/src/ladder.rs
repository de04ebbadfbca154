// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ladder governor (rules L1 to L10).

use crate::trace::{Ask, Choice, Event, Governor, Table};

/// L2: the number of long sleeps before a deeper state is chosen.
const UPWARD: u32 = 4;
/// L2: the number of short sleeps before a shallower state is chosen.
const DOWNWARD: u32 = 1;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    long: u32,
    short: u32,
}

/// The ladder governor of one CPU.
#[derive(Clone, Debug, Default)]
pub struct Ladder {
    /// The CPU's current state; `None` before the first choice (L1).
    current: Option<usize>,
    counts: [Counts; crate::MAX_STATES],
    recorded_ns: i64,
}

impl Ladder {
    /// Creates a ladder governor for a new device.
    pub fn new() -> Self {
        Self::default()
    }

    /// L8: moves from one state to another.
    fn change(&mut self, from: usize, to: usize) -> Choice {
        self.counts[from] = Counts::default();
        self.current = Some(to);
        Choice::new(to, true)
    }
}

impl Governor for Ladder {
    fn choose(&mut self, table: &Table, ask: &Ask) -> Choice {
        // L10: if the poll state is the only one, it is the first state.
        let first = usize::from(table.polls(0) && table.len() > 1);
        let current = *self.current.get_or_insert(first);
        let limit = ask.latency_limit_ns;
        if limit == 0 {
            return self.change(current, 0);
        }
        let slept = self.recorded_ns - table.latency(current);
        // L2: a state before the first state has no thresholds.
        let (long_ns, enough) = if current < first {
            (0, 0)
        } else {
            (table.latency(current), UPWARD)
        };
        let next = current + 1;
        let next_usable = next < table.len() && table.enabled(next) && table.latency(next) <= limit;
        let counts = &mut self.counts[current];
        if next_usable && slept > long_ns {
            counts.long += 1;
            counts.short = 0;
            if counts.long >= enough {
                return self.change(current, next);
            }
        }
        if current <= first {
            return Choice::new(current, true);
        }
        if !table.enabled(current) || table.latency(current) > limit {
            let to = (first + 1..current)
                .rev()
                .find(|&i| table.latency(i) <= limit);
            return self.change(current, to.unwrap_or(first));
        }
        if slept < table.latency(current) {
            counts.short += 1;
            counts.long = 0;
            if counts.short >= DOWNWARD {
                return self.change(current, current - 1);
            }
        }
        Choice::new(current, true)
    }

    fn learn(&mut self, _: &Table, event: &Event) {
        match event {
            Event::Slept(sleep) => {
                self.recorded_ns = sleep.slept_ns;
                if sleep.entered > 0 {
                    self.current = Some(sleep.entered);
                }
            }
            Event::Refused => self.recorded_ns = 0,
        }
    }
}
