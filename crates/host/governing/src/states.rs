// SPDX-License-Identifier: MIT OR Apache-2.0
//! The idle states of a replay, and their costs.
//!
//! The states come from a file, or from a table in the form that the guest's option `--states` takes. The states of
//! such a table take their powers from the default file.
//!
//! A state has a power, and entering and leaving the state has a price. The file does not contain the price, because
//! the price follows from the target residency: the shortest stay for which the state pays off compared with the next
//! shallower enabled state. With powers `p` and residencies `R`, the price of state `i` is the price of the shallower
//! state `j` plus `(p_j - p_i) * R_i`.

use std::path::Path;

use anyhow::Result;
use cpuidle::{Hz, State, StateKind, Table};
use serde::Deserialize;

use shell::failure::{BadInput, bad_input};
use shell::{files, mistake};

/// The file of the default states.
const DEFAULT: &str = include_str!("states.toml");
/// Power of a running CPU, in the unit of all powers.
pub const FULL_POWER: u64 = 1000;
/// Shortest and longest period of the tick, in us.
const TICK_US: std::ops::RangeInclusive<u64> = 100..=1_000_000;
/// Longest latency and residency, in us.
const MAX_US: u64 = 1_000_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tick_us: u64,
    state: Vec<StateEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateEntry {
    name: String,
    kind: Word,
    exit_latency_us: u64,
    target_residency_us: u64,
    power: u64,
    #[serde(default)]
    disabled: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Poll,
    Wfi,
    Standby,
}

impl From<Word> for StateKind {
    fn from(word: Word) -> Self {
        match word {
            Word::Poll => Self::Poll,
            Word::Wfi => Self::Wfi,
            Word::Standby => Self::Standby,
        }
    }
}

/// Cost of a stay in a state, in thousandths of a running CPU's energy in a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Cost of entering and leaving the state.
    pub price: u128,
    /// Cost of each nanosecond in the state.
    pub power: u64,
}

impl Cost {
    /// Returns the cost of a stay.
    pub fn cost_of_stay(self, stay_ns: u64) -> u128 {
        self.price + u128::from(self.power) * u128::from(stay_ns)
    }
}

/// The states and their costs.
#[derive(Clone, Debug)]
pub struct States {
    /// The table of states that governors use.
    pub table: Table,
    /// Costs of the states; prices of disabled states have no meaning.
    pub costs: Vec<Cost>,
}

impl States {
    /// Parses the default file.
    pub fn parse_default() -> Self {
        Self::parse(DEFAULT).unwrap_or_else(|why| unreachable!("states.toml: {why}"))
    }

    /// Parses `text` as a table, or reads the file that `text` names.
    pub fn named(text: &str) -> Result<Self> {
        if text.contains(['.', '/']) {
            return Self::read(Path::new(text));
        }
        Self::of_table(text).map_err(|why| {
            BadInput::error(format!(
                "--states: {why}; a file has a dot or a slash in its name"
            ))
        })
    }

    /// Parses a table with the guest's times; an error describes the mistake in it.
    fn of_table(text: &str) -> Result<Self, String> {
        let states = cpuidle::States::parse(text).map_err(|why| why.to_string())?;
        let table = states.table(cpuidle::States::STANDBY_US, Hz::HZ_250.tick_ns());
        let table = table.map_err(|why| why.to_string())?;
        let default = parse_file(DEFAULT)?.state;
        let power = |state: &State| {
            let same = default.iter().find(|entry| entry.name == state.name);
            same.map_or(FULL_POWER, |entry| entry.power)
        };
        let powers: Vec<u64> = table.states().iter().map(power).collect();
        let costs = costs(table.states(), &powers);
        Ok(Self { table, costs })
    }

    fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = match files::read_text(path) {
            Ok(text) => text,
            Err(error) => bad_input!(
                "--states: {shown} can't be read ({error}); crates/host/governing/src/states.toml is an example"
            ),
        };
        Self::parse(&text).map_err(|why| BadInput::error(format!("--states: {shown}: {why}")))
    }

    /// Parses the text of a file; an error describes the mistake in it, in one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file = parse_file(text)?;
        if !TICK_US.contains(&file.tick_us) {
            let (min, max) = (TICK_US.start(), TICK_US.end());
            return Err(format!(
                "tick_us = {}: not within {min} to {max}",
                file.tick_us
            ));
        }
        check_entries(&file.state)?;
        let powers: Vec<u64> = file.state.iter().map(|entry| entry.power).collect();
        let states: Vec<State> = file.state.into_iter().map(to_state).collect();
        let costs = costs(&states, &powers);
        let table = Table::new(&states, file.tick_us * 1000).map_err(|why| why.to_string())?;
        Ok(Self { table, costs })
    }

    /// Replaces the frequency of the CPU's tick.
    pub fn with_tick(self, hz: Hz) -> Self {
        let table = Table::new(self.table.states(), hz.tick_ns());
        Self {
            table: table.unwrap_or_else(|why| unreachable!("another tick: {why}")),
            ..self
        }
    }
}

fn parse_file(text: &str) -> Result<File, String> {
    toml::from_str(text).map_err(|error| mistake::told(text, &error))
}

fn check_entries(entries: &[StateEntry]) -> Result<(), String> {
    let mut power = FULL_POWER;
    for entry in entries {
        let name = &entry.name;
        if entry.power > power {
            return Err(format!(
                "state `{name}`: power {} is above {power}, that of what is shallower; \
                 1000 is a CPU that runs",
                entry.power
            ));
        }
        power = entry.power;
        for (key, value) in [
            ("exit_latency_us", entry.exit_latency_us),
            ("target_residency_us", entry.target_residency_us),
        ] {
            if value > MAX_US {
                return Err(format!(
                    "state `{name}`: {key} = {value}: not within 0 to {MAX_US}"
                ));
            }
        }
    }
    Ok(())
}

fn costs(states: &[State], powers: &[u64]) -> Vec<Cost> {
    let mut shallower: Option<Cost> = None;
    let cost = |(state, &power): (&State, &u64)| {
        if !state.enabled {
            return Cost { price: 0, power };
        }
        let saved = shallower.map_or(0, |shallower| shallower.power - power);
        let price = u128::from(saved) * u128::from(state.target_residency_ns);
        let cost = Cost {
            price: shallower.map_or(0, |shallower| shallower.price) + price,
            power,
        };
        shallower = Some(cost);
        cost
    };
    states.iter().zip(powers).map(cost).collect()
}

fn to_state(entry: StateEntry) -> State {
    State {
        enabled: !entry.disabled,
        ..State::new(
            // The name lives as long as the process, which reads only one file.
            entry.name.leak(),
            entry.kind.into(),
            entry.exit_latency_us * 1000,
            entry.target_residency_us * 1000,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The powers are 1000, 400, 150 and 30; the residencies are 0, 10, 200 and 2000 us. Therefore, the prices, in us
    /// of a running CPU, are 0, 0.6 * 10 = 6, 6 + 0.25 * 200 = 56, and 56 + 0.12 * 2000 = 296.
    #[test]
    fn prices_follow_from_residencies() {
        let states = States::parse_default();
        let prices: Vec<u128> = states
            .costs
            .iter()
            .map(|cost| cost.price / 1_000_000)
            .collect();
        assert_eq!(prices, [0, 6, 56, 296]);
        for index in 1..4 {
            let pays_ns = states.table.at(index).target_residency_ns;
            let (shallow, deep) = (states.costs[index - 1], states.costs[index]);
            assert_eq!(shallow.cost_of_stay(pays_ns), deep.cost_of_stay(pays_ns));
            assert!(shallow.cost_of_stay(pays_ns - 1) < deep.cost_of_stay(pays_ns - 1));
        }
    }

    #[test]
    fn bad_files_are_refused_by_line_or_state() {
        let state = |text: &str| format!("tick_us = 4000\n[[state]]\nname = \"a\"\n{text}");
        let wfi = "kind = \"wfi\"\nexit_latency_us = 1\ntarget_residency_us = 1\npower = 500\n";
        assert!(States::parse(&state(wfi)).is_ok());
        for (text, told) in [
            (String::new(), "line 1: missing field `tick_us`"),
            (
                "tick_us = 99\nstate = []".into(),
                "tick_us = 99: not within 100",
            ),
            (
                "tick_us = 4000\nstate = []".into(),
                "0 states; there have to be 1 to 8",
            ),
            (
                state("kind = \"c1\"\n"),
                "line 4, `kind`: unknown variant `c1`",
            ),
            (
                state(&wfi.replace("500", "1001")),
                "`a`: power 1001 is above 1000",
            ),
            (
                state(&format!("{wfi}disabled = true\n")),
                "no state is enabled",
            ),
            (
                state(&format!("{wfi}speed = 1\n")),
                "line 8: unknown field `speed`",
            ),
            (
                state(&wfi.replace("us = 1\n", "us = 1000000001\n")),
                "exit_latency_us = 1000000001",
            ),
        ] {
            let why = States::parse(&text).unwrap_err();
            assert!(why.contains(told) && !why.contains('\n'), "{why}");
        }
    }
}
