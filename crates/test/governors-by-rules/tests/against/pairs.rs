// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pairs of governors that are compared, and the machines with their tables of states.

use cpuidle::{Name, StateKind};
use governors_by_rules::{
    EarlyAnswer, Governor, Haltpoll, HaltpollParameters, Ladder, Menu, MenuRules, Outliers, Teo,
    TeoRecent, Utilisation, poll_limit_ns,
};
use governors_by_rules::{State, Table};

/// A governor written from the rules.
pub enum ByRules {
    Plain(Box<dyn Governor>),
    Haltpoll(Haltpoll),
}

impl ByRules {
    pub fn governor(&mut self) -> &mut dyn Governor {
        match self {
            Self::Plain(governor) => governor.as_mut(),
            Self::Haltpoll(governor) => governor,
        }
    }

    /// Returns the poll limit, in ns, of the poll state after the last choice.
    pub fn poll_limit_ns(&self, table: &Table, tick_ns: i64) -> u64 {
        match self {
            Self::Plain(_) => poll_limit_ns(table, tick_ns) as u64,
            Self::Haltpoll(governor) => governor.own_limit_ns(table),
        }
    }
}

/// Creates a governor written from the rules. The argument is the tick's period, in ns.
pub type Maker = fn(i64) -> ByRules;

/// A governor of `cpuidle`, and a function that creates its counterpart written from the rules.
pub struct Pair {
    pub name: Name,
    pub by_rules: Maker,
    /// Whether this governor's release of Linux asks the governor even if there is only one state (rule G9).
    pub asked_of_one: bool,
    /// Similar governors, from which the comparison must distinguish this one.
    pub others: &'static [(&'static str, Maker)],
}

/// All governors except `fixed`, which has no rules.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: Name::Menu,
        by_rules: |tick| menu(MenuRules::V7_1, tick),
        asked_of_one: false,
        others: &[
            ("menu of 6.15", |tick| menu(MenuRules::V6_15, tick)),
            ("menu with 6.15's maximum", |tick| {
                menu_but(MenuRules::V7_1, tick, |rules| {
                    rules.outliers = Outliers::BothEndsElseMaximum
                })
            }),
            ("menu without unknown samples", |tick| {
                menu_but(MenuRules::V7_1, tick, |rules| rules.unknown_samples = false)
            }),
            ("menu without safe ticks", |tick| {
                menu_but(MenuRules::V7_1, tick, |rules| {
                    rules.two_ticks_are_safe = false
                })
            }),
        ],
    },
    Pair {
        name: Name::Menu614,
        by_rules: |tick| menu(MenuRules::V6_14, tick),
        asked_of_one: true,
        others: &[
            ("menu of 6.6", |tick| menu(MenuRules::V6_6, tick)),
            ("menu of 6.15", |tick| menu(MenuRules::V6_15, tick)),
        ],
    },
    Pair {
        name: Name::Menu62,
        by_rules: |tick| menu(MenuRules::V6_2, tick),
        asked_of_one: true,
        others: &[
            ("menu of 6.6", |tick| menu(MenuRules::V6_6, tick)),
            ("menu without waits for I/O", |tick| {
                menu_but(MenuRules::V6_2, tick, |rules| rules.io_counts = false)
            }),
        ],
    },
    Pair {
        name: Name::Teo,
        by_rules: |tick| boxed(Teo::new(tick)),
        asked_of_one: false,
        others: &[("teo of 6.2", |tick| recent(Utilisation::Ignored, tick))],
    },
    Pair {
        name: Name::Teo62,
        by_rules: |tick| recent(Utilisation::Ignored, tick),
        asked_of_one: true,
        others: &[
            ("teo with utilisation", |tick| {
                recent(Utilisation::Posted, tick)
            }),
            ("teo on the way to 6.6", |tick| {
                let early = EarlyAnswer::KeepsTick;
                boxed(TeoRecent::new(Utilisation::Ignored, early, tick, 1024))
            }),
        ],
    },
    Pair {
        name: Name::TeoUtilV6,
        by_rules: |tick| recent(Utilisation::Posted, tick),
        asked_of_one: true,
        others: &[
            ("teo without utilisation", |tick| {
                recent(Utilisation::Ignored, tick)
            }),
            ("teo as corrected", |tick| {
                recent(Utilisation::Corrected, tick)
            }),
        ],
    },
    Pair {
        name: Name::TeoUtil65,
        by_rules: |tick| recent(Utilisation::Corrected, tick),
        asked_of_one: true,
        others: &[
            ("teo as posted", |tick| recent(Utilisation::Posted, tick)),
            ("teo on the way to 6.6", |tick| {
                let early = EarlyAnswer::KeepsTick;
                boxed(TeoRecent::new(Utilisation::Corrected, early, tick, 1024))
            }),
        ],
    },
    Pair {
        name: Name::Ladder,
        by_rules: |_| boxed(Ladder::new()),
        asked_of_one: false,
        others: &[],
    },
    Pair {
        name: Name::Haltpoll,
        by_rules: |tick| haltpoll(HaltpollParameters::V6_9, tick),
        asked_of_one: false,
        others: &[("haltpoll of 6.2", |tick| {
            haltpoll(HaltpollParameters::V6_2, tick)
        })],
    },
];

fn boxed(governor: impl Governor + 'static) -> ByRules {
    ByRules::Plain(Box::new(governor))
}

fn menu(rules: MenuRules, tick_ns: i64) -> ByRules {
    boxed(Menu::new(rules, tick_ns))
}

fn menu_but(mut rules: MenuRules, tick_ns: i64, change: fn(&mut MenuRules)) -> ByRules {
    change(&mut rules);
    menu(rules, tick_ns)
}

fn haltpoll(parameters: HaltpollParameters, tick_ns: i64) -> ByRules {
    ByRules::Haltpoll(Haltpoll::new(parameters, tick_ns))
}

fn recent(utilisation: Utilisation, tick_ns: i64) -> ByRules {
    boxed(TeoRecent::new(
        utilisation,
        EarlyAnswer::AsAny,
        tick_ns,
        1024,
    ))
}

/// A machine: its ticks per second, and its states as (polls, exit latency in us, target residency in us).
pub struct IdleMachine {
    pub what: &'static str,
    pub hz: u32,
    pub states: &'static [(bool, u64, u64)],
}

const fn machine(what: &'static str, hz: u32, states: &'static [(bool, u64, u64)]) -> IdleMachine {
    IdleMachine { what, hz, states }
}

const POLL: (bool, u64, u64) = (true, 0, 0);

const fn halt(latency_us: u64, residency_us: u64) -> (bool, u64, u64) {
    (false, latency_us, residency_us)
}

pub const MACHINES: &[IdleMachine] = &[
    machine("WFI alone", 250, &[halt(1, 2)]),
    machine(
        "two states without polling",
        250,
        &[halt(1, 1), halt(150, 600)],
    ),
    machine("poll and WFI", 250, &[POLL, halt(1, 2)]),
    machine(
        "poll, WFI and standby",
        250,
        &[POLL, halt(1, 2), halt(100, 400)],
    ),
    machine(
        "poll and three states at 1000 Hz",
        1000,
        &[POLL, halt(2, 2), halt(10, 20), halt(133, 600)],
    ),
    machine(
        "four states without polling at 100 Hz",
        100,
        &[
            halt(1, 1),
            halt(50, 150),
            halt(300, 3_000),
            halt(1_000, 20_000),
        ],
    ),
    machine(
        "poll and four states",
        250,
        &[
            POLL,
            halt(2, 10),
            halt(50, 100),
            halt(200, 5_000),
            halt(900, 20_000),
        ],
    ),
];

impl IdleMachine {
    pub fn cpuidle_table(&self, tick_ns: u64) -> cpuidle::Table {
        let states: Vec<_> = self
            .states
            .iter()
            .map(|&(polls, latency_us, residency_us)| {
                let kind = if polls {
                    StateKind::Poll
                } else {
                    StateKind::Wfi
                };
                cpuidle::State::new("state", kind, latency_us * 1000, residency_us * 1000)
            })
            .collect();
        cpuidle::Table::new(&states, tick_ns).expect("a table of the tests is right")
    }

    pub fn rules_table(&self) -> Table {
        let states: Vec<_> = self
            .states
            .iter()
            .map(|&(polling, latency_us, residency_us)| State {
                exit_latency_ns: latency_us as i64 * 1000,
                target_residency_ns: residency_us as i64 * 1000,
                polling,
                disabled: false,
            })
            .collect();
        Table::new(&states)
    }
}
