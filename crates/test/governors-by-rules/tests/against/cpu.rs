// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated CPU, for which both governors choose states: its timers, requests, tick and limits follow from a seed.

use cpuidle::Wake;
use governors_by_rules::NO_TIMER;

/// A time longer than any simulated sleep.
const FAR_NS: u64 = 1_000_000_000_000;

/// The shortest time until a timer. Shorter times are below the resolution of the CPU's clocks.
const SOON_NS: u64 = 20;

/// The kind of events in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Requests a few us apart, with occasional pauses.
    Bursts,
    /// Requests with a fixed period, jittered a little.
    Periodic,
    /// Timers close to the bounds of `menu`'s buckets, the tick and the states' residencies.
    Edges,
    /// Idle for up to ten seconds.
    Long,
    /// Requests from half a us to a second apart.
    Mixed,
}

impl Course {
    pub const ALL: [Self; 5] = [
        Self::Bursts,
        Self::Periodic,
        Self::Edges,
        Self::Long,
        Self::Mixed,
    ];
}

/// Conditions that a trace varies besides the lengths of its stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spice {
    /// Latency limits are set and removed.
    pub limits: bool,
    /// The latency limit is sometimes 0.
    pub limit_zero: bool,
    /// Some states are disabled throughout.
    pub disabled: bool,
    /// Entries are refused.
    pub refusals: bool,
}

/// A period in which the CPU has nothing to do. The CPU may enter states several times within it.
#[derive(Clone, Copy, Debug)]
struct Period {
    timer_ns: Option<u64>,
    request_ns: u64,
    /// Time until an interrupt that gives the CPU nothing to do.
    nudge_ns: u64,
    limit_ns: Option<u64>,
    utilisation: u32,
    io_waiters: u32,
}

/// A question to a governor.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub now_ns: u64,
    pub timer_ns: Option<u64>,
    pub next_tick_ns: u64,
    pub tick_stopped: bool,
    pub limit_ns: Option<u64>,
    pub utilisation: u32,
    pub io_waiters: u32,
}

impl Question {
    /// Returns the time until the timer, in the form in which Linux's governors get it (rule G2).
    pub fn until_timer_ns(&self) -> i64 {
        let none = NO_TIMER - self.now_ns as i64;
        self.timer_ns.map_or(none, |ns| ns as i64)
    }

    /// Returns the time until the next event that is currently programmed (rule G4).
    pub fn event_ns(&self) -> i64 {
        if self.tick_stopped {
            self.until_timer_ns()
        } else {
            self.until_timer_ns().min(self.next_tick_ns as i64)
        }
    }
}

/// The conditions of a stay in a state.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    pub exit_latency_ns: u64,
    /// The poll limit, if the state polls.
    pub poll_limit_ns: Option<u64>,
    pub stop_tick: bool,
}

pub struct SimulatedCpu {
    pub rng: fastrand::Rng,
    course: Course,
    spice: Spice,
    tick_ns: u64,
    edges: Vec<u64>,
    period_ns: u64,
    now_ns: u64,
    tick_stopped: bool,
    period: Option<Period>,
}

impl SimulatedCpu {
    pub fn new(seed: u64, course: Course, spice: Spice, tick_ns: u64, residencies: &[u64]) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let buckets = [10, 100, 1_000, 10_000, 100_000].map(|us| us * 1_000);
        let edges = [&buckets[..], &[15_000, tick_ns, 2 * tick_ns], residencies].concat();
        let period_ns = between(&mut rng, 1_000, 20_000_000);
        Self {
            rng,
            course,
            spice,
            tick_ns,
            edges,
            period_ns,
            now_ns: 0,
            tick_stopped: false,
            period: None,
        }
    }

    pub fn question(&mut self) -> Question {
        if self.period.is_none() {
            // The CPU has run a task, so the tick is running.
            self.tick_stopped = false;
            self.period = Some(self.draw_period());
        }
        let Some(period) = self.period else {
            unreachable!("it was just drawn")
        };
        Question {
            now_ns: self.now_ns,
            timer_ns: period.timer_ns,
            next_tick_ns: self.tick_ns - self.now_ns % self.tick_ns,
            tick_stopped: self.tick_stopped,
            limit_ns: period.limit_ns,
            utilisation: period.utilisation,
            io_waiters: period.io_waiters,
        }
    }

    fn draw_period(&mut self) -> Period {
        let rng = &mut self.rng;
        let beside = |rng: &mut fastrand::Rng, edges: &[u64]| {
            let edge = edges[rng.usize(..edges.len())];
            (edge + rng.u64(..1_001)).saturating_sub(500).max(SOON_NS)
        };
        let timer_ns = match rng.u8(..8) {
            0 => None,
            1 => Some(beside(rng, &self.edges)),
            _ if self.course == Course::Edges => Some(beside(rng, &self.edges)),
            _ => Some(between(rng, 1_000, 300_000_000)),
        };
        let request_ns = match self.course {
            Course::Bursts if rng.u8(..12) > 0 => between(rng, 500, 50_000),
            Course::Bursts => between(rng, 1_000_000, 50_000_000),
            Course::Periodic => self.period_ns + rng.u64(..=self.period_ns / 64),
            Course::Edges if rng.bool() => FAR_NS,
            Course::Edges => beside(rng, &self.edges),
            Course::Long => between(rng, 1_000_000, 10_000_000_000),
            Course::Mixed => between(rng, 500, 1_000_000_000),
        };
        let limit_ns = match rng.u8(..4) {
            0 if self.spice.limit_zero => Some(0),
            0 | 1 if self.spice.limits => Some(between(rng, 1_000, 2_000_000) / 1_000 * 1_000),
            _ => None,
        };
        let nudge_ns = if rng.u8(..3) == 0 {
            between(rng, 1_000, 30_000_000)
        } else {
            FAR_NS
        };
        Period {
            timer_ns,
            request_ns,
            nudge_ns,
            limit_ns,
            utilisation: rng.u32(..40),
            io_waiters: rng.u32(..6).saturating_sub(3),
        }
    }

    /// Draws whether this entry is refused, because the CPU has something to do.
    pub fn refuses(&mut self) -> bool {
        let refused = self.spice.refusals && self.rng.u8(..24) == 0;
        if refused {
            self.now_ns += 700;
            self.period = None;
        }
        refused
    }

    /// Stays in a state. Returns the length of the stay, and the cause of the wake-up.
    pub fn stay(&mut self, stay: &Stay) -> (u64, Wake) {
        let question = self.question();
        let Some(mut period) = self.period.take() else {
            unreachable!("there was a question")
        };
        let tick_runs = !stay.stop_tick && !self.tick_stopped;
        let mut ends = vec![
            (period.request_ns, Wake::Request),
            (period.timer_ns.unwrap_or(FAR_NS), Wake::Timer),
            (period.nudge_ns, Wake::Interrupt),
        ];
        if tick_runs {
            ends.push((question.next_tick_ns, Wake::Tick));
        }
        if let Some(limit) = stay.poll_limit_ns {
            ends.push((limit, Wake::PollTimeout));
        }
        let Some(&(ns, wake)) = ends.iter().min_by_key(|(ns, _)| *ns) else {
            unreachable!("a request comes in the end")
        };
        let slept = ns + self.rng.u64(..=stay.exit_latency_ns);
        self.now_ns += slept;
        if matches!(wake, Wake::Tick | Wake::PollTimeout | Wake::Interrupt) {
            self.tick_stopped = !tick_runs;
            if wake == Wake::Interrupt {
                period.nudge_ns = between(&mut self.rng, 1_000, 30_000_000) + slept;
            }
            let rest = |ns: u64| ns.saturating_sub(slept).max(SOON_NS);
            period.timer_ns = period.timer_ns.map(rest);
            period.request_ns = rest(period.request_ns);
            period.nudge_ns = rest(period.nudge_ns);
            self.period = Some(period);
        }
        (slept, wake)
    }
}

/// Draws a time between `low` and `high`. The position of its highest bit is uniformly distributed.
pub fn between(rng: &mut fastrand::Rng, low: u64, high: u64) -> u64 {
    let magnitude = rng.u32(low.ilog2()..=high.ilog2());
    (rng.u64(1 << magnitude..2 << magnitude)).clamp(low, high)
}
