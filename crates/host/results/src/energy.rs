// SPDX-License-Identifier: MIT OR Apache-2.0
//! The energy model: multiplies the time that the CPUs spent in each state within a cell's samples by the watts that
//! the user gives for that state. Only the time is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cell, INSNS, Results};

/// Watts of one CPU in each state of the residency.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Watts {
    /// Where the figures are from.
    pub source: String,
    /// Watts while it runs the guest.
    pub run: f64,
    /// Watts while it polls.
    pub poll: f64,
    /// Watts while it is halted in WFI.
    pub wfi: f64,
    /// Watts while it works at EL2; if left out, the value of `run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub el2: Option<f64>,
}

/// Energy of a cell's wake-ups, computed from stated watts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct EnergyModel {
    /// Microjoules that both CPUs use for a wake-up, from the samples with time stamps.
    pub uj_per_wakeup: f64,
    /// The watts that were stated.
    pub watts: Watts,
}

impl Watts {
    /// Checks the figures.
    ///
    /// # Errors
    /// Names the key that is wrong, and the remedy.
    pub fn check(&self) -> Result<(), String> {
        if self.source.trim().is_empty() {
            return Err("`source`: it is empty; say where the figures are from".into());
        }
        let el2 = self.el2.unwrap_or(0.0);
        let figures = [
            ("run", self.run),
            ("poll", self.poll),
            ("wfi", self.wfi),
            ("el2", el2),
        ];
        let wrong = figures
            .into_iter()
            .find(|(_, watts)| !(watts.is_finite() && *watts >= 0.0));
        match wrong {
            Some((key, watts)) => Err(format!("`{key}`: {watts} W; use 0 or more")),
            None => Ok(()),
        }
    }

    /// Describes the model in one line.
    pub fn model_text(&self) -> String {
        let Self { run, poll, wfi, .. } = self;
        let el2 = self.el2.unwrap_or(*run);
        format!(
            "run {run} W, poll {poll} W, wfi {wfi} W, el2 {el2} W for each CPU, by: {}",
            self.source
        )
    }

    /// Returns the watts of a CPU in a state of the residency. `None` if the model lacks the state.
    fn watts_in_state(&self, state: &str) -> Option<f64> {
        match state {
            "run" => Some(self.run),
            "poll" => Some(self.poll),
            "wfi" => Some(self.wfi),
            "el2" => Some(self.el2.unwrap_or(self.run)),
            _ => None,
        }
    }
}

impl Results {
    /// For each cell whose residency is known, computes the energy of its wake-ups from `watts`, and replaces the
    /// energy from an earlier model. If the counter counts instructions, there is no time to multiply by watts, and a
    /// note reports this. If no cell has time stamps, another note reports that.
    pub fn model_energy(&mut self, watts: &Watts) {
        const WHAT: &str = "model of energy: ";
        self.notes.retain(|note| !note.starts_with(WHAT));
        let counted = self.fidelity.get("counts_instructions") == Some(&true.into());
        let timeless = counted || self.unit == INSNS;
        let hz = self.machine.cntfrq_hz;
        for cell in &mut self.cells {
            let found = (!timeless).then(|| cell.uj_per_wakeup(watts, hz)).flatten();
            cell.energy_model = found.map(|uj_per_wakeup| EnergyModel {
                uj_per_wakeup,
                watts: watts.clone(),
            });
        }
        let why = if timeless {
            "the counter counts instructions, and watts are per time; use --metric time, or cycles of a \
             modelled core"
        } else if self.cells.iter().all(|cell| cell.energy_model.is_none()) {
            "no cell tells where the CPUs were (residency); it takes workload pingpong with --stages on"
        } else {
            return;
        };
        self.notes.push(format!("{WHAT}{why}"));
    }
}

impl Cell {
    /// Returns the microjoules per wake-up, given a counter that runs at `hz` Hz.
    fn uj_per_wakeup(&self, watts: &Watts, hz: u64) -> Option<f64> {
        let stamped = self.counters.get("stamped")?.get("samples").copied()?;
        if self.residency.is_empty() || stamped == 0 || hz == 0 {
            return None;
        }
        let states = self.residency.iter();
        let joules = states
            .map(|(state, &ticks)| Some(watts.watts_in_state(state)? * ticks as f64 / hz as f64));
        let joules: f64 = joules.sum::<Option<f64>>()?;
        let wakeups = u64::from(self.what.workload.wakeups());
        Some(joules * 1e6 / (stamped * wakeups) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::results;

    fn watts() -> Watts {
        Watts {
            source: "a test".into(),
            run: 2.0,
            poll: 1.5,
            wfi: 0.25,
            el2: None,
        }
    }

    /// Results of ten round trips of 1 ms each between two CPUs, with a counter of 1 GHz.
    fn timed() -> Results {
        let mut results = results();
        results.unit = "ticks".into();
        let cell = &mut results.cells[1];
        let residency = [
            ("run", 4_000_000),
            ("poll", 2_000_000),
            ("wfi", 12_000_000),
            ("el2", 2_000_000),
        ];
        cell.residency = residency.map(|(name, ticks)| (name.into(), ticks)).into();
        cell.counters = [("stamped".into(), [("samples".into(), 10)].into())].into();
        results
    }

    fn energy(results: &Results) -> Option<f64> {
        let model = results.cells[1].energy_model.as_ref();
        model.map(|model| model.uj_per_wakeup)
    }

    #[test]
    fn energy_is_time_by_state_times_watts_for_each_wake_up() {
        let mut results = timed();
        results.model_energy(&watts());
        // The states take 8 + 3 + 3 + 4 mJ, for twenty wake-ups.
        let found = energy(&results).unwrap();
        assert!((found - 900.0).abs() < 1e-9, "{found}");
        results.model_energy(&Watts {
            el2: Some(0.0),
            ..watts()
        });
        let found = energy(&results).unwrap();
        assert!((found - 700.0).abs() < 1e-9, "{found}");
        assert!(results.notes.is_empty() && results.cells[0].energy_model.is_none());
    }

    #[test]
    fn there_is_none_without_time_or_without_residency_and_a_note_says_why() {
        let mut insns = timed();
        insns.unit = INSNS.into();
        let mut cycles = timed();
        cycles.unit = "cycles".into();
        cycles
            .fidelity
            .insert("counts_instructions".into(), true.into());
        for mut results in [insns, cycles] {
            results.model_energy(&watts());
            results.model_energy(&watts());
            assert_eq!(energy(&results), None);
            assert_eq!(results.notes.len(), 1);
            assert!(results.notes[0].contains("counts instructions"));
        }
        let mut bare = timed();
        bare.cells[1].residency.clear();
        bare.model_energy(&watts());
        assert_eq!(energy(&bare), None);
        assert!(bare.notes[0].contains("--stages on"));
        let mut lost = timed();
        lost.cells[1].counters.clear();
        lost.model_energy(&watts());
        assert_eq!(energy(&lost), None);
    }

    #[test]
    fn a_model_has_a_source_and_figures_that_can_be() {
        assert!(watts().check().is_ok());
        let source = " ".into();
        for (wrong, told) in [
            (Watts { source, ..watts() }, "`source`"),
            (
                Watts {
                    wfi: -1.0,
                    ..watts()
                },
                "`wfi`: -1 W",
            ),
            (
                Watts {
                    el2: Some(f64::NAN),
                    ..watts()
                },
                "`el2`",
            ),
        ] {
            let error = wrong.check().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
