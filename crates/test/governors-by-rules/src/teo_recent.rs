// SPDX-License-Identifier: MIT OR Apache-2.0
//! The versions of teo that count recent intercepts: teo of 6.2 (rules T1 to T11), and teo with utilisation, both as
//! posted and as corrected (U1 to U6).

use std::collections::VecDeque;

use crate::fit::{bin_of, give_way};
use crate::trace::{Ask, Choice, Event, Governor, Sleep, Table};

const PULSE: u32 = 1024;
/// T4: the number of remembered events.
const REMEMBERED: usize = 9;

/// Whether and how utilisation counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utilisation {
    /// 6.2: utilisation does not count.
    Ignored,
    /// Posted in January 2023; 6.3 to 6.5.2 (U2, U3).
    Posted,
    /// Corrected in July 2023; 6.5.3 (U4, U5).
    Corrected,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    hits: u32,
    intercepts: u32,
}

/// How an early answer (by T6, T7, U4 or U6) affects the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyAnswer {
    /// Up to 6.5: T11 decides, as after any answer.
    AsAny,
    /// In the development of 6.6: the tick is kept (U6).
    KeepsTick,
}

/// The teo governor of one CPU, with recent intercepts.
#[derive(Clone, Debug)]
pub struct TeoRecent {
    utilisation: Utilisation,
    early_answer: EarlyAnswer,
    threshold: u64,
    tick_ns: i64,
    bins: [Bin; crate::MAX_STATES],
    /// T4: the last events, the newest at the end. For each, the bin of an intercept, or `None` for a hit.
    recent: VecDeque<Option<usize>>,
    /// *timer* of the last choice.
    timer_ns: i64,
    fresh: bool,
}

/// A candidate with its expected duration.
#[derive(Clone, Copy)]
struct Candidate {
    state: usize,
    ns: i64,
}

/// Result of T6 and T7.
struct First {
    candidate: Candidate,
    /// The first enabled state; 0 if a special case decided.
    shallowest: usize,
    /// The bound of T10.
    bound: usize,
    end: End,
}

/// The decisions that remain after T7.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// All decisions.
    Open,
    /// Only the tick (T11).
    Tick,
    /// Only the tick; none if an early answer keeps the tick (U6).
    Early,
}

impl TeoRecent {
    /// Creates a teo governor for a tick of `tick_ns`, on a CPU of `capacity` (U1; 1024 for the fastest).
    pub fn new(
        utilisation: Utilisation,
        early_answer: EarlyAnswer,
        tick_ns: i64,
        capacity: u64,
    ) -> Self {
        Self {
            utilisation,
            early_answer,
            threshold: capacity / 64,
            tick_ns,
            bins: [Bin::default(); crate::MAX_STATES],
            recent: VecDeque::new(),
            timer_ns: 0,
            fresh: true,
        }
    }

    fn span_ns(table: &Table, state: usize) -> i64 {
        (table.residency(state) + table.residency(state + 1)) / 2
    }

    /// T9: returns whether a state may be chosen for `span_ns`. If the tick is stopped, the span must be at least one
    /// tick long.
    fn long_enough(&self, ask: &Ask, span_ns: i64) -> bool {
        !ask.tick_stopped || span_ns >= self.tick_ns
    }

    fn recent_in(&self, bins: std::ops::Range<usize>) -> usize {
        self.recent
            .iter()
            .flatten()
            .filter(|bin| bins.contains(bin))
            .count()
    }

    fn intercepts_in(&self, bins: std::ops::Range<usize>) -> u32 {
        self.bins[bins].iter().map(|bin| bin.intercepts).sum()
    }

    /// Counts a sleep (T3 and T4).
    fn count_sleep(&mut self, table: &Table, measured_ns: i64) {
        for bin in &mut self.bins[..table.len()] {
            bin.hits -= bin.hits / 8;
            bin.intercepts -= bin.intercepts / 8;
        }
        let expected = bin_of(table, self.timer_ns);
        let measured = bin_of(table, measured_ns.min(self.timer_ns));
        if measured == expected {
            self.bins[expected].hits += PULSE;
            self.recent.push_back(None);
        } else {
            self.bins[measured].intercepts += PULSE;
            self.recent.push_back(Some(measured));
        }
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
    }

    /// Returns the measured time of a sleep (T2).
    fn measured_ns(&self, table: &Table, sleep: &Sleep) -> i64 {
        let safety_net = sleep.poll_limit_hit || (sleep.by_tick && self.timer_ns > self.tick_ns);
        if safety_net || sleep.span_ns >= self.timer_ns {
            return i64::MAX;
        }
        let latency = table.latency(sleep.entered);
        if sleep.slept_ns >= latency {
            sleep.slept_ns - latency / 2
        } else {
            sleep.slept_ns / 2
        }
    }

    /// Returns the first candidate (T6, U2, U4 and T7).
    fn first_candidate(&self, table: &Table, ask: &Ask, utilised: bool) -> First {
        let timer = ask.timer_ns;
        let decided = |state, ns| First {
            candidate: Candidate { state, ns },
            shallowest: 0,
            bound: 0,
            end: End::Early,
        };
        if table.len() == 1 || (table.enabled(0) && table.residency(1) > timer) {
            return decided(0, timer);
        }
        if table.len() == 2 && utilised {
            match self.utilisation {
                Utilisation::Ignored => {}
                Utilisation::Posted => {
                    if let Some(i) = (0..2).find(|&i| table.enabled(i) && !table.polls(i)) {
                        return First {
                            end: End::Tick,
                            ..decided(i, timer)
                        };
                    }
                }
                Utilisation::Corrected => {
                    let span = Self::span_ns(table, 0);
                    let zero = table.enabled(0) && !table.polls(0) && self.long_enough(ask, span);
                    let state = usize::from(!zero && table.enabled(1));
                    let end = if state == 0 { End::Early } else { End::Tick };
                    return First {
                        end,
                        ..decided(state, span)
                    };
                }
            }
        }
        let mut enabled = (0..table.len()).filter(|&i| table.enabled(i));
        let Some(shallowest) = enabled.next() else {
            return decided(0, timer);
        };
        let reachable = |i: &usize| *i == 0 || table.residency(*i) <= timer;
        // If the first enabled state itself is too deep, deeper states are not considered.
        let deeper: Vec<usize> = if reachable(&shallowest) {
            enabled.take_while(reachable).collect()
        } else {
            Vec::new()
        };
        let state = deeper.last().copied().unwrap_or(shallowest);
        let bound = deeper
            .iter()
            .copied()
            .chain([shallowest].into_iter().filter(reachable))
            .filter(|&i| i > 0 && table.latency(i) <= ask.latency_limit_ns)
            .max()
            .unwrap_or(0);
        let alone = state == shallowest;
        let ns = match self.early_answer {
            EarlyAnswer::KeepsTick if alone => table.residency(state),
            _ => timer,
        };
        First {
            candidate: Candidate { state, ns },
            shallowest,
            bound,
            end: if alone { End::Tick } else { End::Open },
        }
    }

    /// Returns a shallower candidate if the statistics expect an early wake-up (T8 and T9).
    fn shallow_enough(&self, table: &Table, ask: &Ask, first: Candidate) -> Candidate {
        let below = 0..first.state;
        let hits: u32 = self.bins[below.clone()].iter().map(|bin| bin.hits).sum();
        let intercepts = self.intercepts_in(below.clone());
        let recent = self.recent_in(below.clone());
        let all: u32 = self.bins.iter().map(|bin| bin.hits + bin.intercepts).sum();
        let by_intercepts = 2 * intercepts > all - hits;
        let by_recent = recent > REMEMBERED / 2;
        if !by_intercepts && !by_recent {
            return first;
        }
        let mut aside: Option<Candidate> = None;
        for state in below.rev() {
            let this = Candidate {
                state,
                ns: Self::span_ns(table, state),
            };
            let fit = self.long_enough(ask, this.ns);
            let range = state..first.state;
            let most = (!by_recent || 2 * self.recent_in(range.clone()) > recent)
                && (!by_intercepts || 2 * self.intercepts_in(range) > intercepts);
            if most {
                let answer = (fit && table.enabled(state)).then_some(this);
                return answer.or(aside).unwrap_or(first);
            }
            if !table.enabled(state) {
                continue;
            }
            if fit {
                aside = Some(this);
            } else if aside.is_none() {
                break;
            }
        }
        first
    }

    /// Returns a shallower candidate for a highly utilised CPU (U3 and U5).
    fn yield_to_use(&self, table: &Table, ask: &Ask, from: Candidate) -> Candidate {
        let state = give_way(table, from.state, from.ns, false);
        if self.utilisation == Utilisation::Posted {
            return Candidate { state, ..from };
        }
        let ns = Self::span_ns(table, state);
        if self.long_enough(ask, ns) {
            Candidate { state, ns }
        } else {
            from
        }
    }

    /// Decides whether the tick is kept or stopped (T11).
    fn decide_tick(
        &self,
        table: &Table,
        ask: &Ask,
        candidate: Candidate,
        shallowest: usize,
    ) -> Choice {
        let Candidate { state, ns } = candidate;
        if ask.tick_stopped || (!table.polls(state) && ns >= self.tick_ns) {
            return Choice::new(state, true);
        }
        let too_deep = state > shallowest && table.residency(state) > ask.event_ns;
        let state = if too_deep {
            give_way(table, state, ask.event_ns, true)
        } else {
            state
        };
        Choice::new(state, false)
    }
}

impl Governor for TeoRecent {
    fn choose(&mut self, table: &Table, ask: &Ask) -> Choice {
        if self.fresh {
            // T5.
            self.fresh = false;
            self.count_sleep(table, i64::MAX);
        }
        self.timer_ns = ask.timer_ns;
        let utilised = self.utilisation != Utilisation::Ignored && ask.utilisation > self.threshold;
        let first = self.first_candidate(table, ask, utilised);
        let mut candidate = first.candidate;
        if first.end == End::Early && self.early_answer == EarlyAnswer::KeepsTick {
            return Choice::new(candidate.state, false);
        }
        if first.end == End::Open {
            candidate = self.shallow_enough(table, ask, candidate);
            // T10.
            candidate.state = candidate.state.min(first.bound);
            if utilised {
                candidate = self.yield_to_use(table, ask, candidate);
            }
        }
        self.decide_tick(table, ask, candidate, first.shallowest)
    }

    fn learn(&mut self, table: &Table, event: &Event) {
        if let Event::Slept(sleep) = event {
            let measured = self.measured_ns(table, sleep);
            self.count_sleep(table, measured);
        }
    }
}
