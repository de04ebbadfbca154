// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs that are compared: governors and tables.

use cpuidle::{Name, StateKind};
use governors_by_rules::{
    EarlyAnswer, Governor, Haltpoll, HaltpollParameters, Ladder, Menu, MenuRules, Outliers, Teo,
    TeoRecent, Utilisation, poll_limit_ns,
};
use governors_by_rules::{State, Table};

/// A governor of the rules.
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

    /// Returns how long the poll state polls after the last choice.
    pub fn poll_limit_ns(&self, table: &Table, tick_ns: i64) -> u64 {
        match self {
            Self::Plain(_) => poll_limit_ns(table, tick_ns) as u64,
            Self::Haltpoll(governor) => governor.own_limit_ns(table),
        }
    }
}

/// Makes a governor of the rules, for a tick of so many ns.
pub type Maker = fn(i64) -> ByRules;

/// A governor of `cpuidle` and how the rules make it.
pub struct Pair {
    pub name: Name,
    pub by_rules: Maker,
    /// Whether its Linux asks it where there is one state (rule G9).
    pub asked_of_one: bool,
    /// Relatives that it must not be taken for.
    pub others: &'static [(&'static str, Maker)],
}

/// All governors but `fixed`, which has no rules.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: Name::Menu,
        by_rules: |tick| menu(MenuRules::V7_1, tick),
        asked_of_one: false,
        others: &[
            ("menu of 6.15", |tick| menu(MenuRules::V6_15, tick)),
            ("menu with 6.15's maximum", |tick| {
                let outliers = Outliers::BothEndsElseMaximum;
                menu(
                    MenuRules {
                        outliers,
                        ..MenuRules::V7_1
                    },
                    tick,
                )
            }),
            ("menu without unknown samples", |tick| {
                let unknown_samples = false;
                menu(
                    MenuRules {
                        unknown_samples,
                        ..MenuRules::V7_1
                    },
                    tick,
                )
            }),
            ("menu without safe ticks", |tick| {
                let two_ticks_are_safe = false;
                menu(
                    MenuRules {
                        two_ticks_are_safe,
                        ..MenuRules::V7_1
                    },
                    tick,
                )
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
                let io_counts = false;
                menu(
                    MenuRules {
                        io_counts,
                        ..MenuRules::V6_2
                    },
                    tick,
                )
            }),
        ],
    },
    Pair {
        name: Name::Teo,
        by_rules: |tick| plain(Teo::new(tick)),
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
                plain(TeoRecent::new(Utilisation::Ignored, early, tick, 1024))
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
                plain(TeoRecent::new(Utilisation::Corrected, early, tick, 1024))
            }),
        ],
    },
    Pair {
        name: Name::Ladder,
        by_rules: |_| plain(Ladder::new()),
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

fn plain(governor: impl Governor + 'static) -> ByRules {
    ByRules::Plain(Box::new(governor))
}

fn menu(rules: MenuRules, tick_ns: i64) -> ByRules {
    plain(Menu::new(rules, tick_ns))
}

fn haltpoll(parameters: HaltpollParameters, tick_ns: i64) -> ByRules {
    ByRules::Haltpoll(Haltpoll::new(parameters, tick_ns))
}

fn recent(utilisation: Utilisation, tick_ns: i64) -> ByRules {
    plain(TeoRecent::new(
        utilisation,
        EarlyAnswer::AsAny,
        tick_ns,
        1024,
    ))
}

/// States as (polls, exit latency in us, target residency in us), and the ticks of a second.
pub struct IdleMachine {
    pub what: &'static str,
    pub hz: u32,
    pub states: &'static [(bool, u64, u64)],
}

pub const MACHINES: &[IdleMachine] = &[
    IdleMachine {
        what: "WFI alone",
        hz: 250,
        states: &[(false, 1, 2)],
    },
    IdleMachine {
        what: "two states without polling",
        hz: 250,
        states: &[(false, 1, 1), (false, 150, 600)],
    },
    IdleMachine {
        what: "poll and WFI",
        hz: 250,
        states: &[(true, 0, 0), (false, 1, 2)],
    },
    IdleMachine {
        what: "poll, WFI and standby",
        hz: 250,
        states: &[(true, 0, 0), (false, 1, 2), (false, 100, 400)],
    },
    IdleMachine {
        what: "poll and three states at 1000 Hz",
        hz: 1000,
        states: &[
            (true, 0, 0),
            (false, 2, 2),
            (false, 10, 20),
            (false, 133, 600),
        ],
    },
    IdleMachine {
        what: "four states without polling at 100 Hz",
        hz: 100,
        states: &[
            (false, 1, 1),
            (false, 50, 150),
            (false, 300, 3_000),
            (false, 1_000, 20_000),
        ],
    },
    IdleMachine {
        what: "poll and four states",
        hz: 250,
        states: &[
            (true, 0, 0),
            (false, 2, 10),
            (false, 50, 100),
            (false, 200, 5_000),
            (false, 900, 20_000),
        ],
    },
];

impl IdleMachine {
    pub fn first(&self, tick_ns: u64) -> cpuidle::Table {
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

    pub fn second(&self) -> Table {
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
