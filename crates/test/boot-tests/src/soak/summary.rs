// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summary of a soak: the counts and rates of its operations, and the violation if there is one.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::Result;
use results::json;
use serde::Serialize;

use super::request::{Request, Round};

/// Counts of operations, by the names that the guest gives them.
type Counts = BTreeMap<String, u64>;

/// A round that was booted, whether or not it ended normally.
#[derive(Debug, Serialize)]
pub struct Done {
    seed: u64,
    cpus: u32,
    metric: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliver: Option<String>,
    seconds: f64,
    counts: Counts,
}

impl Done {
    /// Creates the entry of a round that took `took` and reported `counts`.
    pub fn new(round: &Round, took: Duration, counts: &Counts) -> Self {
        Self {
            seed: round.seed,
            cpus: round.on.cpus,
            metric: round.on.metric.to_string(),
            deliver: deliver(round),
            seconds: took.as_secs_f64(),
            counts: counts.clone(),
        }
    }

    fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.count("steps");
        write!(
            f,
            "{steps} steps ({:.0}/s), {} wake-ups, {} switches, {} off and on, {:.0} s",
            steps as f64 / self.seconds.max(0.001),
            self.count("wake-ups"),
            self.count("knob-deliver"),
            self.count("off"),
            self.seconds
        )
    }
}

/// The sums over all rounds with one combination of CPUs, metric and delivery.
#[derive(Debug, Default, Serialize)]
struct Together {
    cpus: u32,
    metric: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliver: Option<String>,
    rounds: usize,
    seconds: f64,
    counts: Counts,
    per_second: BTreeMap<String, f64>,
}

/// A violation, and how to reproduce it.
#[derive(Debug, Serialize)]
struct Violation {
    seed: u64,
    cpus: u32,
    metric: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliver: Option<String>,
    why: String,
    /// Whether the violation is a leak.
    leak: bool,
    reproduce: String,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    schema: u32,
    tool: String,
    board: String,
    emulator: String,
    minutes_asked: f64,
    minutes_run: f64,
    interrupted: bool,
    violation: Option<Violation>,
    combinations: Vec<Together>,
    rounds: Vec<Done>,
}

impl Summary {
    pub fn new(request: &Request, emulator: &str) -> Self {
        Self {
            schema: 1,
            tool: format!("rouse {}", env!("CARGO_PKG_VERSION")),
            board: request.board.clone(),
            emulator: emulator.into(),
            minutes_asked: request.duration.as_secs_f64() / 60.0,
            minutes_run: 0.0,
            interrupted: false,
            violation: None,
            combinations: Vec::new(),
            rounds: Vec::new(),
        }
    }

    pub fn add(&mut self, done: Done) {
        self.minutes_run += done.seconds / 60.0;
        let kind = |one: &Together| {
            (one.cpus, &one.metric, &one.deliver) == (done.cpus, &done.metric, &done.deliver)
        };
        let index = self.combinations.iter().position(kind);
        let index = index.unwrap_or_else(|| {
            self.combinations.push(Together {
                cpus: done.cpus,
                metric: done.metric.clone(),
                deliver: done.deliver.clone(),
                ..Together::default()
            });
            self.combinations.len() - 1
        });
        let together = &mut self.combinations[index];
        together.rounds += 1;
        together.seconds += done.seconds;
        for (name, count) in &done.counts {
            *together.counts.entry(name.clone()).or_default() += count;
        }
        let seconds = together.seconds.max(0.001);
        let rates = together.counts.iter();
        together.per_second = rates
            .map(|(name, &count)| {
                (
                    name.clone(),
                    (count as f64 / seconds * 100.0).round() / 100.0,
                )
            })
            .collect();
        self.rounds.push(done);
    }

    /// Records the violation in `round`.
    pub fn violate(&mut self, round: &Round, why: &str, reproduce: &str) {
        self.violation = Some(Violation {
            seed: round.seed,
            cpus: round.on.cpus,
            metric: round.on.metric.to_string(),
            deliver: deliver(round),
            why: why.into(),
            leak: why.contains(": leak:"),
            reproduce: reproduce.into(),
        });
    }

    /// Records that the soak was interrupted.
    pub fn set_interrupted(&mut self) {
        self.interrupted = true;
    }

    pub fn to_json(&self) -> Result<String> {
        json::text(self)
    }

    /// Returns the summary as lines for people to read.
    pub fn lines(&self) -> Vec<String> {
        let combinations = self.combinations.iter().map(|one| {
            let rate = |name: &str| one.per_second.get(name).copied().unwrap_or(0.0);
            format!(
                "{} CPUs, {:5}{}: {:3} rounds in {:5.1} min; per second {:.0} steps, {:.0} wake-ups, {:.1} switches, {:.1} off and on",
                one.cpus,
                one.metric,
                one.deliver.iter().map(|word| format!(", {word}")).collect::<String>(),
                one.rounds,
                one.seconds / 60.0,
                rate("steps"),
                rate("wake-ups"),
                rate("knob-deliver"),
                rate("off")
            )
        });
        let verdict = match &self.violation {
            None => format!("no violation, no leak in {:.1} min", self.minutes_run),
            Some(violation) => format!("VIOLATION: {}", violation.why),
        };
        combinations.chain([verdict]).collect()
    }
}

fn deliver(round: &Round) -> Option<String> {
    round.on.deliver.map(|deliver| deliver.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::request::Combination;
    use super::*;
    use running::options::Metric;

    fn summary() -> Summary {
        Summary {
            schema: 1,
            tool: String::new(),
            board: String::new(),
            emulator: String::new(),
            minutes_asked: 1.0,
            minutes_run: 0.0,
            interrupted: false,
            violation: None,
            combinations: Vec::new(),
            rounds: Vec::new(),
        }
    }

    fn done(seed: u64, cpus: u32, steps: u64) -> (Round, Done) {
        let metric = Metric::Time;
        let on = Combination {
            cpus,
            metric,
            deliver: None,
        };
        let round = Round { on, seed };
        let counts = Counts::from([("steps".into(), steps)]);
        let done = Done::new(&round, Duration::from_secs(10), &counts);
        (round, done)
    }

    #[test]
    fn rounds_of_a_kind_are_put_together() {
        let mut summary = summary();
        for (seed, cpus, steps) in [(1, 4, 100), (2, 8, 50), (3, 4, 300)] {
            summary.add(done(seed, cpus, steps).1);
        }
        let lines = summary.lines();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].contains("2 rounds") && lines[0].contains("20 steps"),
            "{lines:?}"
        );
        assert!(lines[2].starts_with("no violation"), "{lines:?}");
        assert!(summary.to_json().unwrap().contains("\"steps\":400"));
    }

    #[test]
    fn a_violation_is_told_with_how_to_see_it_again() {
        let mut summary = summary();
        let (round, done) = done(9, 4, 1);
        summary.add(done);
        summary.violate(
            &round,
            "soak, seed 9: leak: request word 0x8",
            "cargo xtask dev soak",
        );
        let text = summary.to_json().unwrap();
        assert!(
            text.contains("\"leak\": true") && text.contains("cargo xtask dev soak"),
            "{text}"
        );
        assert!(summary.lines()[1].starts_with("VIOLATION: soak, seed 9"));
    }
}
