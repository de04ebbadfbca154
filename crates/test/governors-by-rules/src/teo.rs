// SPDX-License-Identifier: MIT OR Apache-2.0
//! The teo governor of Linux 7.1 (rules N1 to N14).

use crate::fit::{bin_of, give_way};
use crate::trace::{Ask, Choice, Event, Governor, NO_TIMER, Sleep, Table};

const PULSE: u32 = 1024;
const SHORT_NS: i64 = 15_000;
const SHORT_LATENCY_NS: i64 = SHORT_NS / 2;

/// A count that loses an eighth at each event, and gains a pulse at some events (N2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fading(u32);

impl Fading {
    fn fade(&mut self) {
        self.0 = match self.0 / 8 {
            0 => 0,
            eighth => self.0 - eighth,
        };
    }

    fn pulse(&mut self) {
        self.0 += PULSE;
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    hits: Fading,
    intercepts: Fading,
}

/// The teo governor of one CPU, as in Linux 7.1.
#[derive(Clone, Debug)]
pub struct Teo {
    tick_ns: i64,
    bins: [Bin; crate::MAX_STATES],
    short: Fading,
    early: Fading,
    ticks: Fading,
    /// *timer* of the last choice, or "no timer" if it was not requested.
    timer_ns: i64,
    fresh: bool,
}

/// The candidate that follows from the statistics (N8 to N10).
struct Candidate {
    state: usize,
    /// The first enabled state.
    shallowest: usize,
    /// The bound of N10.
    bound: usize,
}

impl Teo {
    /// Creates a teo governor for a tick of `tick_ns`.
    pub fn new(tick_ns: i64) -> Self {
        Self {
            tick_ns,
            bins: [Bin::default(); crate::MAX_STATES],
            short: Fading::default(),
            early: Fading::default(),
            ticks: Fading::default(),
            timer_ns: 0,
            fresh: true,
        }
    }

    /// Returns T of N1: the sum of all hits and intercepts.
    fn total(&self) -> u32 {
        self.bins
            .iter()
            .map(|bin| bin.hits.0 + bin.intercepts.0)
            .sum()
    }

    fn intercepts_in(&self, bins: std::ops::Range<usize>) -> u32 {
        self.bins[bins].iter().map(|bin| bin.intercepts.0).sum()
    }

    /// N3: returns the measured time of a sleep, and counts short sleeps.
    fn measured_ns(&mut self, latency_ns: i64, sleep: &Sleep) -> i64 {
        self.short.fade();
        if sleep.poll_limit_hit {
            return i64::MAX;
        }
        let whole = sleep.slept_ns >= latency_ns;
        let measured = if whole {
            sleep.slept_ns - latency_ns / 2
        } else {
            sleep.slept_ns / 2
        };
        if !whole || measured < SHORT_NS {
            self.short.pulse();
        }
        measured
    }

    /// Counts a sleep (N3 to N6).
    fn count_sleep(&mut self, table: &Table, sleep: &Sleep) {
        let latency = table.latency(sleep.entered);
        let measured = self.measured_ns(latency, sleep);
        for bin in &mut self.bins {
            bin.hits.fade();
            bin.intercepts.fade();
        }
        self.early.fade();
        self.ticks.fade();
        let before = self.total();
        let expected = bin_of(table, self.timer_ns);
        if sleep.by_tick {
            self.ticks.pulse();
            if 3 * self.ticks.0 > 2 * (before + PULSE) {
                self.bins[table.len() - 1].hits.pulse();
                return;
            }
            if 3 * self.early.0 < 2 * before {
                self.bins[expected].hits.pulse();
                return;
            }
        }
        let ended = bin_of(table, measured.min(self.timer_ns));
        let in_time = i128::from(self.timer_ns) - i128::from(measured) < i128::from(latency / 2);
        if ended == expected && in_time {
            self.bins[expected].hits.pulse();
        } else {
            self.bins[ended].intercepts.pulse();
            if measured <= self.tick_ns {
                self.early.pulse();
            }
        }
    }

    /// N9: returns a state that is shallow enough for the early wake-ups that are expected.
    fn shallow_enough(&self, table: &Table, deepest: usize, shallowest: usize) -> usize {
        let hits: u32 = self.bins[..deepest].iter().map(|bin| bin.hits.0).sum();
        let intercepts = self.intercepts_in(0..deepest);
        if 2 * intercepts <= self.total() - hits {
            return deepest;
        }
        let most = (0..table.len() - 1)
            .max_by_key(|&i| self.bins[i].intercepts.0)
            .unwrap_or(0);
        let mut below = (shallowest..deepest).rev().filter(|&i| table.enabled(i));
        below
            .find(|&i| i <= most && 2 * self.intercepts_in(i..deepest) > intercepts)
            .unwrap_or(shallowest)
    }

    /// N14: decides whether the tick, which is not stopped yet, is kept or stopped.
    fn keep_or_stop(&self, table: &Table, candidate: &Candidate, ns: i64, event_ns: i64) -> Choice {
        let state = candidate.state;
        if !table.polls(state) && ns >= self.tick_ns {
            return Choice::new(state, true);
        }
        let too_deep = state > candidate.shallowest && table.residency(state) > event_ns;
        let state = if too_deep {
            give_way(table, state, event_ns, true)
        } else {
            state
        };
        Choice::new(state, false)
    }

    /// N11: returns whether the choice does not need the timer.
    fn timer_unneeded(&self, table: &Table, ask: &Ask, state: usize) -> bool {
        let shallow = state == 0 || table.residency(state) < SHORT_NS;
        let hurried = 2 * self.short.0 >= self.total() || ask.latency_limit_ns < SHORT_LATENCY_NS;
        !ask.tick_stopped && shallow && hurried
    }

    /// N12: returns a deeper state for a CPU whose tick is stopped, if there is one.
    fn deeper_state(&self, table: &Table, candidate: &Candidate, timer_ns: i64) -> usize {
        (candidate.state + 1..=candidate.bound)
            .rev()
            .find(|&i| table.enabled(i) && table.residency(i) <= timer_ns)
            .unwrap_or(candidate.state)
    }
}

impl Governor for Teo {
    fn choose(&mut self, table: &Table, ask: &Ask) -> Choice {
        if self.fresh {
            // N7.
            self.fresh = false;
            let sleep = Sleep {
                entered: 0,
                slept_ns: 0,
                span_ns: 0,
                by_tick: false,
                poll_limit_hit: false,
            };
            self.count_sleep(table, &sleep);
        }
        self.timer_ns = NO_TIMER;
        // N8.
        let enabled = || (0..table.len()).filter(|&i| table.enabled(i));
        let (Some(shallowest), Some(deepest)) = (enabled().next(), enabled().next_back()) else {
            return Choice::new(0, false);
        };
        // N10.
        let bound = enabled()
            .rfind(|&i| i > 0 && table.latency(i) <= ask.latency_limit_ns)
            .unwrap_or(0);
        let mut candidate = Candidate {
            state: deepest,
            shallowest,
            bound,
        };
        if shallowest == deepest {
            let ns = table.residency(deepest);
            if ask.tick_stopped {
                return Choice::new(deepest, true);
            }
            return self.keep_or_stop(table, &candidate, ns, self.tick_ns / 2);
        }
        candidate.state = self.shallow_enough(table, deepest, shallowest).min(bound);
        if self.timer_unneeded(table, ask, candidate.state) {
            return Choice::new(candidate.state, false);
        }
        // N12.
        let timer = ask.timer_ns;
        self.timer_ns = timer;
        if ask.tick_stopped
            && timer > 2 * self.tick_ns
            && table.residency(candidate.state) < self.tick_ns
        {
            return Choice::new(self.deeper_state(table, &candidate, timer), true);
        }
        // N13.
        if candidate.state == 0 {
            return Choice::new(0, false);
        }
        if table.residency(candidate.state) > timer {
            candidate.state = give_way(table, candidate.state, timer, true);
        }
        let early = 3 * self.early.0 >= 2 * self.total();
        let shallow = table.residency(candidate.state) < self.tick_ns;
        let ns = if shallow && early {
            self.tick_ns / 2
        } else {
            timer
        };
        if ask.tick_stopped {
            return Choice::new(candidate.state, true);
        }
        self.keep_or_stop(table, &candidate, ns, ask.event_ns)
    }

    fn learn(&mut self, table: &Table, event: &Event) {
        if let Event::Slept(sleep) = event {
            self.count_sleep(table, sleep);
        }
    }
}
