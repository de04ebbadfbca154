// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes, from counters, how much of the time of a cell's CPUs went to neighbours, and how much work these did
//! (`docs/hypervisors.md`).

use crate::Cell;

/// CPU share and work of the neighbours on a cell's CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbours {
    /// Share of the CPUs' time, 0 to 1, spent in neighbours' turns that began because a vCPU waited. The share is
    /// measured in ticks of the counter, regardless of what was executed meanwhile.
    pub given: f64,
    /// Share of the CPUs' time, 0 to 1, spent in neighbours' turns that began although no vCPU waited.
    pub taken: f64,
    /// Units of work that the neighbours did per operation.
    pub units: f64,
    /// Units of work per second and per CPU, by the counter's clock. `None` if the frequency is unknown, or if the
    /// counter counts instructions.
    pub units_per_second: Option<f64>,
    /// World switches per operation. Each turn takes two.
    pub switches: f64,
    /// Ticks per unit of work.
    pub ticks_per_unit: f64,
}

impl Neighbours {
    /// The neighbours' share of the CPUs' time, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.given + self.taken
    }
}

impl Cell {
    /// Computes the neighbours' share and work. `None` if there are no neighbours. The counter runs at `frequency` Hz.
    #[must_use]
    pub fn neighbours(&self, frequency: u64) -> Option<Neighbours> {
        let counts = self.counters.get("neighbour")?;
        let count = |name: &str| counts.get(name).copied().unwrap_or(0);
        let ticks = count("ticks");
        if ticks == 0 {
            return None;
        }
        let part = |name| count(name) as f64 / ticks as f64;
        let had = count("given") + count("taken");
        let work = count("work");
        let is_time = self.unit != crate::INSNS && self.unit != crate::VIRTUAL && frequency > 0;
        let seconds = ticks as f64 / frequency as f64;
        Some(Neighbours {
            given: part("given"),
            taken: part("taken"),
            units: self.per_sample(counts, "work"),
            units_per_second: is_time.then(|| work as f64 / seconds),
            switches: 2.0 * self.per_sample(counts, "turns"),
            ticks_per_unit: if work == 0 {
                0.0
            } else {
                had as f64 / work as f64
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_rates_are_of_what_was_counted() {
        let mut cell = Cell {
            made: 10,
            unit: "ticks".into(),
            ..Cell::default()
        };
        assert_eq!(cell.neighbours(1000), None);
        let counts = [
            ("ticks", 4000),
            ("given", 1000),
            ("taken", 500),
            ("work", 300),
            ("turns", 15),
        ];
        let counts = counts.map(|(name, count)| (name.to_owned(), count));
        cell.counters
            .insert("neighbour".into(), counts.into_iter().collect());
        let found = cell.neighbours(1000).unwrap();
        let expected = Neighbours {
            given: 0.25,
            taken: 0.125,
            units: 30.0,
            units_per_second: Some(75.0),
            switches: 3.0,
            ticks_per_unit: 5.0,
        };
        assert_eq!(found, expected);
        assert_eq!(found.share(), 0.375);
        // If the counter counts instructions, it does not measure seconds.
        for unit in [crate::INSNS, crate::VIRTUAL] {
            cell.unit = unit.into();
            assert_eq!(cell.neighbours(1000).unwrap().units_per_second, None);
        }
        assert_eq!(cell.neighbours(0).unwrap().units_per_second, None);
    }
}
