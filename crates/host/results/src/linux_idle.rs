// SPDX-License-Identifier: MIT OR Apache-2.0
//! How Linux idled in a cell, and which properties of that idling the machine does not model.

use plan::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cell, INSNS, VIRTUAL};

/// Name of the guest in [`Machine::handed_over`](crate::Machine::handed_over).
pub const GUEST: &str = "guest";
/// Probes for the properties that polls depend on: a store by another CPU ends a WFE, and CPUs run at the same time.
const STORE_ENDS_WFE: &str = "monitor_wakes_wfe";
const AT_ONCE: &str = "cpus_run_at_once";
/// Names of the kernel's own polling loop, which runs either on all CPUs, or on the CPUs whose file `idle_poll`
/// requests it.
const POLLS: [&str; 2] = ["nohlt", "idle_poll"];
/// A poll that lasted at least this share of its limit counts as having reached it. The share is below 1, because the
/// kernel reads its clock after the limit, and the time of a state is in whole microseconds.
const WHOLE: f64 = 0.95;

/// A state of cpuidle.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct IdleState {
    /// Name of the state.
    pub name: String,
    /// Exit latency, microseconds; 0 for a state that polls.
    pub latency_us: u64,
    /// Target residency, microseconds.
    pub residency_us: u64,
}

impl std::fmt::Display for IdleState {
    /// Prints name, latency and residency, for example `WFI 100/100`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.name, self.latency_us, self.residency_us)
    }
}

/// Parses the states in a record: `WFE:0:0,WFI:100:100`.
pub fn parse_states(text: &str) -> Result<Vec<IdleState>, String> {
    let state = |text: &str| {
        let (rest, residency) = text.rsplit_once(':')?;
        let (name, latency) = rest.rsplit_once(':')?;
        Some(IdleState {
            name: name.into(),
            latency_us: latency.parse().ok()?,
            residency_us: residency.parse().ok()?,
        })
    };
    let all = text.split(',').filter(|text| !text.is_empty());
    let all: Option<_> = all.map(state).collect();
    all.ok_or_else(|| "idle_states: it is not a list of states".into())
}

/// Number of entries into the polling state, their total time, and their limit.
struct Polls {
    entries: u64,
    ns: u64,
    /// The limit of a poll in nanoseconds: the residency of the next state.
    limit_ns: u64,
}

impl Cell {
    /// Returns the polls of cpuidle, if a polling state was entered.
    fn polls_of_cpuidle(&self) -> Option<Polls> {
        let place = self
            .idle_states
            .iter()
            .position(|state| state.latency_us == 0)?;
        let name = self.idle_states[place].name.to_lowercase();
        let counts = self.counters.get("cpuidle")?;
        let count = |what: &str| counts.get(&format!("{name}.{what}")).copied();
        // The governor haltpoll uses a limit of its own.
        let own = self.idles_by.ends_with("/haltpoll");
        let next = self.idle_states.get(place + 1).filter(|_| !own);
        let polls = Polls {
            entries: count("usage")?,
            ns: count("time-ns")?,
            limit_ns: next.map_or(0, |state| 1000 * state.residency_us),
        };
        (polls.entries > 0).then_some(polls)
    }

    /// Whether Linux polled while it idled.
    fn has_polled(&self) -> bool {
        POLLS.contains(&&*self.idles_by) || self.polls_of_cpuidle().is_some()
    }

    /// Adds the properties that Linux's waits depend on and that the machine does not model. An emulator that counts
    /// instructions runs the CPUs in turn, and its WFE returns at once, unless the kernel's waits hand the turn over.
    pub(crate) fn note_unmodelled(&mut self, hands_over: bool) {
        if !self.what.workload.is_linux() || ![INSNS, VIRTUAL].contains(&self.unit.as_str()) {
            return;
        }
        let polled = self.has_polled();
        let waits = polled || self.what.workload == Workload::LinuxMembarrier;
        if polled {
            self.not_modelled.push(AT_ONCE.into());
        }
        if waits && !hands_over && !self.what.trap.wfe() {
            self.not_modelled.push(STORE_ENDS_WFE.into());
        }
    }

    /// Returns a note if polls lasted until their limit, which means that no wake-up ended them. If values include idle
    /// time, polls are expected to last that long.
    pub(crate) fn late_polls_note(&self) -> Option<String> {
        let polls = self.polls_of_cpuidle()?;
        let each = polls.ns as f64 / polls.entries as f64;
        let sample = self.stats?.p50 as f64;
        let whole = polls.limit_ns > 0 && each >= WHOLE * polls.limit_ns as f64;
        // If instructions are counted, the counter runs at 1000 MHz, so an instruction takes a nanosecond.
        (self.unit == INSNS && whole && each >= sample).then(|| {
            format!(
                "{} under {}: each poll lasted its whole limit, on average ({} polls of {:.0} us): wake-ups end hardly any",
                self.title(),
                self.under,
                polls.entries,
                each / 1000.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stats;

    /// Returns a cell in which Linux polled `usage` times, for `ns` nanoseconds in total, and whose samples take 11,000
    /// instructions.
    fn cell(usage: u64, ns: u64) -> Cell {
        let counts = [
            ("wfe.usage".to_owned(), usage),
            ("wfe.time-ns".to_owned(), ns),
        ];
        Cell {
            what: plan::Cell {
                workload: Workload::LinuxPipe,
                ..plan::Cell::default()
            },
            unit: INSNS.into(),
            idle_states: parse_states("WFE:0:0,WFI:100:100").unwrap(),
            counters: [("cpuidle".to_owned(), counts.into())].into(),
            stats: Some(Stats {
                count: 9,
                p50: 11_000,
                ..Stats::default()
            }),
            ..Cell::default()
        }
    }

    fn stars(mut cell: Cell, hands_over: bool) -> Vec<String> {
        cell.note_unmodelled(hands_over);
        cell.not_modelled
    }

    #[test]
    fn states_are_read_back() {
        let read = parse_states("cpu:1:0:0,WFI:100:200").unwrap();
        let shown: Vec<String> = read.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["cpu:1 0/0", "WFI 100/200"]);
        assert_eq!(parse_states(""), Ok(Vec::new()));
        assert!(parse_states("WFI").is_err() && parse_states("WFI:x:1").is_err());
    }

    #[test]
    fn a_star_follows_what_the_kernel_did() {
        assert_eq!(stars(cell(9, 90), true), [AT_ONCE]);
        assert_eq!(stars(cell(9, 90), false), [AT_ONCE, STORE_ENDS_WFE]);
        let mut trapped = cell(9, 90);
        trapped.what.trap = plan::Trap::Both;
        assert_eq!(stars(trapped, false), [AT_ONCE]);
        // The state existed, but no CPU entered it.
        assert!(stars(cell(0, 0), false).is_empty());
        let time = Cell {
            unit: "ticks".into(),
            ..cell(9, 90)
        };
        assert!(stars(time, false).is_empty());
        let loops = Cell {
            idles_by: POLLS[0].into(),
            ..cell(0, 0)
        };
        assert_eq!(stars(loops, true), [AT_ONCE]);
        let mut barrier = cell(0, 0);
        barrier.what.workload = Workload::LinuxMembarrier;
        assert_eq!(stars(barrier.clone(), false), [STORE_ENDS_WFE]);
        assert!(stars(barrier, true).is_empty());
    }

    #[test]
    fn polls_that_nothing_ends_have_a_note() {
        let note = cell(87, 8_659_000).late_polls_note().unwrap();
        assert!(note.contains("87 polls of 100 us"), "{note}");
        // Wake-ups end these polls.
        assert_eq!(cell(500, 2_500_000).late_polls_note(), None);
        // The limit of haltpoll is not the residency of WFI.
        let mut own = cell(500, 20_000_000);
        own.idle_states = parse_states("poll:0:0,WFI:1:1").unwrap();
        own.idles_by = "haltpoll/haltpoll".into();
        assert_eq!(own.late_polls_note(), None);
        let idle = Cell {
            unit: VIRTUAL.into(),
            ..cell(87, 8_659_000)
        };
        assert_eq!(idle.late_polls_note(), None);
    }
}
