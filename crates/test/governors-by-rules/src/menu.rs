// SPDX-License-Identifier: MIT OR Apache-2.0
//! The menu governor (rules M1 to M13).

use crate::fit::give_way;
use crate::trace::{Ask, Choice, Event, Governor, NO_TIMER, Sleep, Table};
use crate::typical::{SAMPLES, UNKNOWN, trimmed_above, trimmed_both};

const MAGNITUDES: usize = 6;
/// The correction factor that leaves the timer unchanged.
const UNITY: u32 = 8192;
/// The maximum that one event adds to a factor. Before the addition, the factor loses an eighth of its value.
const PULSE: u64 = 1024;
const SHORT_NS: u64 = 15_000;
const LONG_NS: u64 = 50_000_000;
const NS_PER_US: u64 = 1000;

/// The outliers to remove before the typical interval is computed (M4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outliers {
    /// Up to 6.5: large outliers. The interval counts only if the smallest sample is below the timer's prediction.
    AboveBelowTimer,
    /// 6.6 to 6.14: large outliers.
    Above,
    /// 6.15 to 6.17: outliers at both ends. If no interval is typical, the maximum is used instead.
    BothEndsElseMaximum,
    /// Since 6.18: outliers at both ends.
    BothEnds,
}

/// When a state is entered to avoid polling (M8a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollDetour {
    /// Up to 6.18: whenever the timer and the latency limit allow it.
    Always,
    /// Since 6.19: only if the state is short enough.
    ShortStates,
}

/// The rules of a Linux release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MenuRules {
    /// M3b: the typical interval is computed first, and the timer is requested only if the interval is above 15 us.
    pub typical_first: bool,
    /// M4: the outliers that are removed.
    pub outliers: Outliers,
    /// M2, M6: tasks that wait for I/O affect the prediction.
    pub io_counts: bool,
    /// M6: the prediction caps the latency limit.
    pub prediction_caps_latency: bool,
    /// M9: a choice without a reported sleep leaves an unknown sample.
    pub unknown_samples: bool,
    /// M7: the latency limit is tested first.
    pub latency_first: bool,
    /// M8a: when a state is entered to avoid polling.
    pub poll_detour: PollDetour,
    /// M3c: with the tick stopped, the timer is always requested.
    pub timer_if_stopped: bool,
    /// M5: a table with a single state is a separate case.
    pub single_state: bool,
    /// M3d: a timer that expires within two ticks needs no deeper state.
    pub two_ticks_are_safe: bool,
}

impl MenuRules {
    /// 6.2 (5.12 to 6.5).
    pub const V6_2: Self = Self {
        typical_first: false,
        outliers: Outliers::AboveBelowTimer,
        io_counts: true,
        prediction_caps_latency: true,
        unknown_samples: false,
        latency_first: false,
        poll_detour: PollDetour::Always,
        timer_if_stopped: false,
        single_state: true,
        two_ticks_are_safe: false,
    };

    /// 6.6 to 6.12.
    pub const V6_6: Self = Self {
        typical_first: true,
        outliers: Outliers::Above,
        ..Self::V6_2
    };

    /// 6.14 (6.13 and 6.14).
    pub const V6_14: Self = Self {
        io_counts: false,
        ..Self::V6_6
    };

    /// 6.15 and 6.16.
    pub const V6_15: Self = Self {
        outliers: Outliers::BothEndsElseMaximum,
        ..Self::V6_14
    };

    /// 7.1, the newest.
    pub const V7_1: Self = Self {
        outliers: Outliers::BothEnds,
        prediction_caps_latency: false,
        unknown_samples: true,
        latency_first: true,
        poll_detour: PollDetour::ShortStates,
        timer_if_stopped: true,
        single_state: false,
        two_ticks_are_safe: true,
        ..Self::V6_14
    };
}

/// The menu governor of one CPU.
#[derive(Clone, Debug)]
pub struct Menu {
    rules: MenuRules,
    tick_ns: u64,
    factors: [u32; 2 * MAGNITUDES],
    samples: [u32; SAMPLES],
    oldest: usize,
    /// *timer* and *bucket* of the last choice.
    timer_ns: u64,
    bucket: usize,
    learnt: bool,
}

/// Result of M3.
struct Prediction {
    ns: u64,
    timer_ns: u64,
    event_ns: i64,
    bucket: usize,
}

/// How the search of M7 and M8 ended.
struct SearchEnd {
    state: usize,
    prediction_ns: u64,
    /// M8d: the tick is stopped, and the choice is final.
    settled: bool,
}

impl Menu {
    /// Creates a menu governor with a release's rules, for a tick of `tick_ns` ([`tick_ns`](crate::tick_ns)).
    pub fn new(rules: MenuRules, tick_ns: i64) -> Self {
        Self {
            rules,
            tick_ns: tick_ns as u64,
            factors: [UNITY; 2 * MAGNITUDES],
            samples: [0; SAMPLES],
            oldest: 0,
            timer_ns: 0,
            bucket: 0,
            learnt: false,
        }
    }

    fn add_sample(&mut self, us: u32) {
        self.samples[self.oldest] = us;
        self.oldest = (self.oldest + 1) % SAMPLES;
    }

    /// Returns the bucket for a time until the timer (M2).
    fn bucket_of(&self, ns: u64, io_waiters: u32) -> usize {
        let bounds = [10, 100, 1_000, 10_000, 100_000].map(|us| us * NS_PER_US);
        let magnitude = bounds.iter().filter(|&&bound| ns >= bound).count();
        let group = if self.rules.io_counts && io_waiters > 0 {
            MAGNITUDES
        } else {
            0
        };
        group + magnitude
    }

    /// Requests the timer (M3a). Returns *timer*, *event* and *bucket*, and the corrected timer in us.
    fn ask_timer(&self, ask: &Ask) -> (u64, i64, usize, u32) {
        let (timer, event) = if ask.timer_ns < 0 {
            (0, 0)
        } else {
            (ask.timer_ns as u64, ask.event_ns)
        };
        let bucket = self.bucket_of(timer, ask.io_waiters);
        let unit = u64::from(UNITY) * NS_PER_US;
        let scaled = timer
            .wrapping_mul(u64::from(self.factors[bucket]))
            .wrapping_add(unit / 2);
        (timer, event, bucket, (scaled / unit) as u32)
    }

    /// Predicts the duration of the sleep (M3).
    fn predict(&self, ask: &Ask) -> Prediction {
        let typical_us = match self.rules.outliers {
            Outliers::AboveBelowTimer => {
                let (.., timer_us) = self.ask_timer(ask);
                trimmed_above(&self.samples, Some(timer_us))
            }
            Outliers::Above => trimmed_above(&self.samples, None),
            Outliers::BothEndsElseMaximum => trimmed_both(&self.samples, true),
            Outliers::BothEnds => trimmed_both(&self.samples, false),
        };
        let typical_ns = u64::from(typical_us) * NS_PER_US;
        let asked = !self.rules.typical_first
            || typical_ns > SHORT_NS
            || (self.rules.timer_if_stopped && ask.tick_stopped);
        let mut prediction = if asked {
            let (timer_ns, event_ns, bucket, timer_us) = self.ask_timer(ask);
            let ns = typical_ns.min(u64::from(timer_us) * NS_PER_US);
            Prediction {
                ns,
                timer_ns,
                event_ns,
                bucket,
            }
        } else {
            Prediction {
                ns: typical_ns,
                timer_ns: NO_TIMER as u64,
                event_ns: (self.tick_ns / 2) as i64,
                bucket: self.bucket_of(NO_TIMER as u64, ask.io_waiters),
            }
        };
        let far = !self.rules.two_ticks_are_safe || prediction.timer_ns > 2 * self.tick_ns;
        if ask.tick_stopped && prediction.ns < self.tick_ns && far {
            prediction.ns = prediction.timer_ns;
        }
        prediction
    }

    /// Returns whether state 0 is chosen without a search (M5).
    fn takes_state_zero(&self, table: &Table, timer_ns: u64, limit_ns: i64) -> bool {
        limit_ns == 0
            || (self.rules.single_state && table.len() == 1)
            || (table.enabled(0)
                && (timer_ns < table.residency(1) as u64 || limit_ns < table.latency(1)))
    }

    /// Returns the latency limit, which the prediction may lower (M6).
    fn capped_limit(&self, ask: &Ask, prediction_ns: u64) -> u64 {
        let limit = ask.latency_limit_ns as u64;
        if ask.tick_stopped || !self.rules.prediction_caps_latency {
            return limit;
        }
        let divisor = if self.rules.io_counts {
            1 + 10 * u64::from(ask.io_waiters)
        } else {
            1
        };
        limit.min(prediction_ns / divisor)
    }

    /// Searches for the state (M7 and M8).
    fn search(&self, table: &Table, ask: &Ask, told: &Prediction, limit_ns: u64) -> SearchEnd {
        let found = |state, prediction_ns| SearchEnd {
            state,
            prediction_ns,
            settled: false,
        };
        let mut enabled = (0..table.len()).filter(|&i| table.enabled(i)).peekable();
        let mut candidate = enabled.peek().copied().unwrap_or(0);
        for state in enabled {
            let within_limit = table.latency(state) as u64 <= limit_ns;
            let residency = table.residency(state) as u64;
            if self.rules.latency_first && !within_limit {
                break;
            }
            if residency <= told.ns {
                if !within_limit {
                    break;
                }
                candidate = state;
                continue;
            }
            let detour = match self.rules.poll_detour {
                PollDetour::Always => within_limit,
                PollDetour::ShortStates => {
                    residency < SHORT_NS && table.latency(state) as u64 <= told.ns
                }
            };
            if table.polls(candidate) && residency <= told.timer_ns && detour {
                return found(state, residency);
            }
            if told.ns < self.tick_ns {
                break;
            }
            if !ask.tick_stopped {
                return found(candidate, table.residency(candidate) as u64);
            }
            let shallow = (table.residency(candidate) as u64) < self.tick_ns;
            let deeper = shallow && table.residency(state) <= told.event_ns;
            let state = if deeper { state } else { candidate };
            return SearchEnd {
                state,
                prediction_ns: told.ns,
                settled: true,
            };
        }
        found(candidate, told.ns)
    }

    /// M11: returns the measured time of a sleep.
    fn measured_ns(&self, table: &Table, sleep: &Sleep) -> u64 {
        let latency = table.latency(sleep.entered) as u64;
        let slept = sleep.slept_ns as u64;
        let measured = if sleep.by_tick && self.timer_ns > self.tick_ns {
            LONG_NS / 10 * 9
        } else if sleep.poll_limit_hit && table.polls(sleep.entered) {
            self.timer_ns
        } else if slept > 2 * latency {
            slept - latency
        } else {
            slept / 2
        };
        measured.min(self.timer_ns)
    }
}

impl Governor for Menu {
    fn choose(&mut self, table: &Table, ask: &Ask) -> Choice {
        if self.rules.unknown_samples && !self.learnt {
            self.add_sample(UNKNOWN);
        }
        self.learnt = false;
        let told = self.predict(ask);
        self.timer_ns = told.timer_ns;
        self.bucket = told.bucket;
        if self.takes_state_zero(table, told.timer_ns, ask.latency_limit_ns) {
            return Choice::new(0, !table.polls(0));
        }
        let limit_ns = self.capped_limit(ask, told.ns);
        let found = self.search(table, ask, &told, limit_ns);
        // M10.
        let keep = !ask.tick_stopped
            && !found.settled
            && (table.polls(found.state) || found.prediction_ns < self.tick_ns);
        let too_deep = found.state > 0 && table.residency(found.state) > told.event_ns;
        let state = if keep && too_deep {
            give_way(table, found.state, told.event_ns, true)
        } else {
            found.state
        };
        Choice::new(state, !keep)
    }

    fn learn(&mut self, table: &Table, event: &Event) {
        let Event::Slept(sleep) = event else { return };
        let measured = self.measured_ns(table, sleep);
        let factor = &mut self.factors[self.bucket];
        *factor -= *factor / 8;
        // M12.
        *factor += if self.timer_ns > 0 && measured < LONG_NS {
            (PULSE * measured / self.timer_ns) as u32
        } else {
            PULSE as u32
        };
        self.add_sample((measured / NS_PER_US) as u32);
        self.learnt = true;
    }
}
