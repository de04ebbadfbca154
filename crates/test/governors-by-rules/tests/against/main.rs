// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the governors of `crates/no_std/cpuidle` with the governors that were written from the rules, choice by
//! choice over generated traces.
//!
//! Both governors get the same questions and the same outcomes, even after a difference: the CPU enters the state that
//! the governor written from the rules chooses. Two choices differ if their state, their decision to stop the tick, or
//! their poll limit differs. The test prints each difference with the trace's seed and step.

mod cpu;
mod pairs;

use std::fmt;
use std::thread;

use cpu::{Course, Question, SimulatedCpu, Spice, Stay};
use cpuidle::{FOREVER, Governor as _, Moment, Outcome, Selected, Setup, Wake};
use governors_by_rules::{Ask, Choice, Event, NO_LATENCY_LIMIT, Sleep, Table, tick_ns};
use pairs::{ByRules, IdleMachine, MACHINES, Maker, PAIRS, Pair};

const TRACES: u64 = 10_000;
const STEPS: u64 = 40;

/// The two governors that run a trace, with their tables. The first is from `cpuidle`, the second from the rules.
struct Both {
    first: Selected,
    first_table: cpuidle::Table,
    second: ByRules,
    second_table: Table,
    /// Whether Linux asks the governor at all (rule G9).
    asked: bool,
    tick_ns: u64,
}

/// The parts of a choice on which the idle loop acts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Acted {
    state: usize,
    tick_stops: bool,
    poll_limit_ns: Option<u64>,
}

impl fmt::Display for Acted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tick = if self.tick_stops { "stopped" } else { "kept" };
        write!(f, "state {}, tick {tick}", self.state)?;
        match self.poll_limit_ns {
            Some(ns) => write!(f, ", polls {ns} ns"),
            None => Ok(()),
        }
    }
}

impl Both {
    fn new(pair: &Pair, machine: &IdleMachine, by_rules: Maker) -> Self {
        let tick = tick_ns(machine.hz);
        Self {
            first: Selected::new(Setup::new(pair.name, 0)),
            first_table: machine.cpuidle_table(tick as u64),
            second: by_rules(tick),
            asked: pair.asked_of_one || machine.states.len() > 1,
            second_table: machine.rules_table(),
            tick_ns: tick as u64,
        }
    }

    /// Disables a third of the states, but never all.
    fn disable_some(&mut self, rng: &mut fastrand::Rng) {
        for index in 0..self.second_table.states().len() {
            if rng.u8(..3) == 0 && self.first_table.set_enabled(index, false).is_ok() {
                self.second_table.set_disabled(index, true);
            }
        }
    }

    fn ask(&mut self, question: &Question) -> (Acted, Acted) {
        let moment = Moment {
            now_ns: question.now_ns,
            next_tick_ns: question.next_tick_ns,
            tick_stopped: question.tick_stopped,
            latency_limit_ns: question.limit_ns.unwrap_or(FOREVER),
            utilisation: question.utilisation,
            io_waiters: question.io_waiters,
        };
        let ask = Ask {
            timer_ns: question.until_timer_ns(),
            event_ns: question.event_ns(),
            tick_stopped: question.tick_stopped,
            io_waiters: question.io_waiters,
            latency_limit_ns: question.limit_ns.map_or(NO_LATENCY_LIMIT, |ns| ns as i64),
            utilisation: u64::from(question.utilisation),
        };
        let first = self.first.select(&self.first_table, &moment, || {
            question.timer_ns.unwrap_or(FOREVER)
        });
        let second = if self.asked {
            self.second.governor().choose(&self.second_table, &ask)
        } else {
            Choice {
                state: 0,
                stop_tick: false,
            }
        };
        let second = self.enabled_choice(second);
        let polls = |state: usize| self.second_table.states()[state].polling;
        let limit = self
            .second
            .poll_limit_ns(&self.second_table, self.tick_ns as i64);
        let first = Acted {
            state: first.state,
            tick_stops: first.stop_tick || question.tick_stopped,
            poll_limit_ns: polls(first.state).then_some(first.poll_limit_ns),
        };
        let second = Acted {
            state: second.state,
            tick_stops: second.stop_tick || question.tick_stopped,
            poll_limit_ns: polls(second.state).then_some(limit),
        };
        (first, second)
    }

    /// Replaces the choice of a disabled state with the shallowest enabled state: `cpuidle` guarantees that the chosen
    /// state is enabled, whereas Linux does not.
    fn enabled_choice(&self, choice: Choice) -> Choice {
        let states = self.second_table.states();
        if !states[choice.state].disabled {
            return choice;
        }
        let shallowest = states.iter().position(|state| !state.disabled);
        Choice {
            state: shallowest.expect("a table has an enabled state"),
            ..choice
        }
    }

    fn report_sleep(&mut self, state: usize, slept_ns: u64, wake: Wake) {
        self.first.reflect(
            &self.first_table,
            &Outcome {
                state,
                residency_ns: slept_ns,
                wake,
            },
        );
        let sleep = Sleep {
            entered: state,
            slept_ns: slept_ns as i64,
            span_ns: slept_ns as i64,
            by_tick: wake == Wake::Tick,
            poll_limit_hit: wake == Wake::PollTimeout,
        };
        self.teach_rules(&Event::Slept(sleep));
    }

    fn report_refusal(&mut self) {
        self.first.refused();
        self.teach_rules(&Event::Refused);
    }

    fn teach_rules(&mut self, event: &Event) {
        if self.asked {
            self.second.governor().learn(&self.second_table, event);
        }
    }
}

/// Returns the steps of trace `seed` at which the governor of `pair` and the governor from the rules differ.
fn check_trace(seed: u64, pair: &Pair, machine: &IdleMachine, by_rules: Maker) -> Vec<String> {
    let mut both = Both::new(pair, machine, by_rules);
    let course = Course::ALL[(seed % 5) as usize];
    let has = |bit: u64| (seed / 5) & (1 << bit) != 0;
    let spice = Spice {
        limits: has(0),
        limit_zero: has(1),
        disabled: has(2),
        refusals: has(3),
    };
    let residencies: Vec<u64> = machine.states.iter().map(|state| state.2 * 1000).collect();
    let mut cpu = SimulatedCpu::new(seed, course, spice, both.tick_ns, &residencies);
    if spice.disabled {
        both.disable_some(&mut cpu.rng);
    }
    let mut differences = Vec::new();
    for step in 0..STEPS {
        let question = cpu.question();
        let (first, second) = both.ask(&question);
        if first != second {
            differences.push(format!(
                "{} on {}, trace {seed} ({course:?}), step {step}: cpuidle {first}; by the rules \
                 {second}; {question:?}",
                pair.name.word(),
                machine.what
            ));
        }
        if cpu.refuses() {
            both.report_refusal();
            continue;
        }
        let (_, latency_us, _) = machine.states[second.state];
        let (slept_ns, wake) = cpu.stay(&Stay {
            exit_latency_ns: latency_us * 1000,
            poll_limit_ns: second.poll_limit_ns,
            stop_tick: second.tick_stops,
        });
        both.report_sleep(second.state, slept_ns, wake);
    }
    differences
}

/// Returns whether the governor can run on this machine: haltpoll needs a poll state.
fn can_run(pair: &Pair, machine: &IdleMachine) -> bool {
    pair.name != cpuidle::Name::Haltpoll || machine.states[0].0
}

#[test]
fn the_two_agree() {
    let mut all = 0;
    for pair in PAIRS {
        for machine in MACHINES.iter().filter(|machine| can_run(pair, machine)) {
            let differ = differences(pair, machine);
            for difference in differ.iter().take(5) {
                println!("{difference}");
            }
            if !differ.is_empty() {
                println!(
                    "{} on {}: {} steps",
                    pair.name.word(),
                    machine.what,
                    differ.len()
                );
            }
            all += differ.len();
        }
    }
    assert_eq!(all, 0, "steps at which cpuidle and the rules differ");
}

/// Returns the steps of all traces at which the two governors differ, in the order of the traces. Each CPU of this
/// computer runs a part of the traces.
fn differences(pair: &Pair, machine: &IdleMachine) -> Vec<String> {
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let part = TRACES.div_ceil(cpus);
    thread::scope(|scope| {
        let parts = (0..cpus).map(|cpu| {
            let seeds = (cpu * part).min(TRACES)..((cpu + 1) * part).min(TRACES);
            scope.spawn(|| {
                let steps = seeds.flat_map(|seed| check_trace(seed, pair, machine, pair.by_rules));
                steps.collect::<Vec<_>>()
            })
        });
        let parts: Vec<_> = parts.collect();
        let ended = parts.into_iter().map(|part| part.join().unwrap());
        ended.flatten().collect()
    })
}

/// Checks that the comparison distinguishes each governor from its closest relatives.
#[test]
fn another_release_makes_a_difference() {
    for pair in PAIRS {
        for (what, other) in pair.others {
            let differs = MACHINES
                .iter()
                .filter(|machine| can_run(pair, machine))
                .any(|machine| {
                    (0..TRACES).any(|seed| !check_trace(seed, pair, machine, *other).is_empty())
                });
            assert!(differs, "{} is taken for {what}", pair.name.word());
        }
    }
}

#[test]
fn poll_limits_agree() {
    for machine in MACHINES {
        for hz in [100, 250, 1000] {
            let tick = tick_ns(hz);
            let first = machine.cpuidle_table(tick as u64).poll_limit_ns();
            let second = governors_by_rules::poll_limit_ns(&machine.rules_table(), tick);
            assert_eq!(first, second as u64, "{} at {hz} Hz", machine.what);
        }
    }
}
