// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is compared with what: governors, tables, and the rules that `cpuidle` does not keep.

use cpuidle::{Kind, Name};
use governors_by_rules::{
    Departure, Departures, EarlyAnswer, Governor, Haltpoll, HaltpollParameters, Ladder, Menu,
    MenuRules, Teo, TeoRecent, Utilisation, poll_limit_ns,
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

    /// How long the poll state polls after the last choice.
    pub fn poll_limit_ns(&self, table: &Table, tick_ns: i64) -> u64 {
        match self {
            Self::Plain(_) => poll_limit_ns(table, tick_ns) as u64,
            Self::Haltpoll(governor) => governor.own_limit_ns(table),
        }
    }
}

/// A governor of `cpuidle` and how the rules make it.
pub struct Pair {
    pub name: Name,
    /// For a tick of so many ns.
    pub by_rules: fn(i64, Departures) -> ByRules,
    /// Linux's governor may choose a state that is disabled or slower than the limit, and counts
    /// on from it. `cpuidle` promises not to, and what it counts instead no rule says. So no
    /// state is disabled, no limit but 0 is below the first sleeping state, and none is 0 where
    /// state 0 does not poll.
    pub tame: bool,
    /// What `cpuidle` does otherwise; the reason of each stands at [`Departure`].
    pub departures: &'static [Departure],
}

/// All governors but `fixed`, which has no rules.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: Name::Menu,
        tame: false,
        by_rules: |tick, _| plain(Menu::new(MenuRules::V7_1, tick)),
        departures: &[],
    },
    Pair {
        name: Name::Menu614,
        tame: false,
        by_rules: |tick, _| plain(Menu::new(MenuRules::V6_14, tick)),
        departures: &[],
    },
    Pair {
        name: Name::Menu62,
        tame: false,
        by_rules: |tick, _| plain(Menu::new(MenuRules::V6_2, tick)),
        departures: &[],
    },
    Pair {
        name: Name::Teo,
        tame: false,
        by_rules: |tick, departures| plain(Teo::new(tick).departing(departures)),
        departures: &[
            Departure::TeoShortIsMeasured,
            Departure::TeoTicksAgainstBefore,
            Departure::TeoHitWithinConstant,
            Departure::TeoBeginsEmpty,
            Departure::TeoBoundIsEnabled,
            Departure::TeoZeroByTimerKeepsTick,
            Departure::TeoEarlyAboveFiveEighths,
        ],
    },
    Pair {
        name: Name::Teo62,
        tame: false,
        by_rules: |tick, departures| recent(Utilisation::Ignored, tick, departures),
        departures: &[],
    },
    Pair {
        name: Name::TeoUtilV6,
        tame: false,
        by_rules: |tick, departures| recent(Utilisation::Posted, tick, departures),
        departures: &[],
    },
    Pair {
        name: Name::TeoUtil65,
        tame: false,
        by_rules: |tick, departures| recent(Utilisation::Corrected, tick, departures),
        departures: &[Departure::TeoUtilDeepestSpansForever],
    },
    Pair {
        name: Name::Ladder,
        tame: true,
        by_rules: |_, departures| plain(Ladder::new().departing(departures)),
        departures: &[
            Departure::LadderLimitZeroKeepsTick,
            Departure::LadderForgetsRefusals,
            Departure::LadderFirstStateCountsDown,
        ],
    },
    Pair {
        name: Name::Haltpoll,
        tame: true,
        by_rules: |tick, departures| {
            let governor = Haltpoll::new(HaltpollParameters::V6_9, tick);
            ByRules::Haltpoll(governor.departing(departures))
        },
        departures: &[Departure::HaltpollLimitZeroPollsAsTable],
    },
];

fn plain(governor: impl Governor + 'static) -> ByRules {
    ByRules::Plain(Box::new(governor))
}

fn recent(utilisation: Utilisation, tick_ns: i64, departures: Departures) -> ByRules {
    let governor = TeoRecent::new(utilisation, EarlyAnswer::AsAny, tick_ns, 1024);
    plain(governor.departing(departures))
}

/// States as (polls, exit latency in us, target residency in us), and the ticks of a second.
pub struct Machine {
    pub what: &'static str,
    pub hz: u32,
    pub states: &'static [(bool, u64, u64)],
}

pub const MACHINES: &[Machine] = &[
    Machine {
        what: "poll and WFI",
        hz: 250,
        states: &[(true, 0, 0), (false, 1, 2)],
    },
    Machine {
        what: "poll, WFI and standby",
        hz: 250,
        states: &[(true, 0, 0), (false, 1, 2), (false, 100, 400)],
    },
    Machine {
        what: "poll and three states at 1000 Hz",
        hz: 1000,
        states: &[
            (true, 0, 0),
            (false, 2, 2),
            (false, 10, 20),
            (false, 133, 600),
        ],
    },
    Machine {
        what: "four states without polling at 100 Hz",
        hz: 100,
        states: &[
            (false, 1, 1),
            (false, 50, 150),
            (false, 300, 3_000),
            (false, 1_000, 20_000),
        ],
    },
    Machine {
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

impl Machine {
    pub fn first(&self, tick_ns: u64) -> cpuidle::Table {
        let states: Vec<_> = self
            .states
            .iter()
            .map(|&(polls, latency_us, residency_us)| {
                let kind = if polls { Kind::Poll } else { Kind::Wfi };
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
