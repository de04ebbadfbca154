// SPDX-License-Identifier: MIT OR Apache-2.0
//! The samples of a cell, divided into parts by the kind of instructions that the CPUs executed. See crate `critical`.

mod sample_findings;

use std::collections::BTreeMap;

use critical::{Cause, Class, Counts as Executed, Sample};
use plan::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::is_zero;
use crate::{Cell, Counts, Results, Stats};

/// The path from the waker to the task in the samples of `stats`, and the parts of their work. All
/// values are instructions.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Critical {
    /// Samples whose path is known.
    pub samples: u64,
    /// Samples whose path is not known, because the emulator changed to another CPU at an unknown
    /// instruction.
    pub unclear: u64,
    /// The path: from the store that wakes the other CPU to the woken task, without work that is
    /// done later or in parallel.
    pub path: Stats,
    /// The path without bookkeeping. Ratios use this value.
    pub net: Stats,
    /// Work of the CPUs that took part, without the work of other CPUs, such as one that polls for
    /// something else.
    pub parties: Stats,
    /// Values of the path, and how often each occurred.
    pub histogram: Vec<(u64, u64)>,
    /// Work of all CPUs in all samples; adds up to the sum of the samples.
    pub work: Work,
    /// The part of `work` that is on the path.
    pub on_path: Work,
    /// Exceptions taken to EL2 in all samples, by cause; empty under KVM, which counts exits itself.
    pub exits: Counts,
}

/// Instructions of all samples together.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Work {
    /// Executed at EL0.
    #[serde(skip_serializing_if = "is_zero")]
    pub el0: u64,
    /// Executed at EL1.
    pub el1: u64,
    /// Executed at EL2.
    pub el2: u64,
    /// Executed at EL3.
    pub el3: u64,
    /// Not executed: every CPU was halted, and the counter advanced to the next timer.
    pub skipped: u64,
    /// Bookkeeping within the work, by kind: `statistics` that guest and hypervisor keep, the
    /// `clock` that ends the sample, `flags` of handlers, the `loop` around the task's turns.
    pub bookkeeping: Counts,
}

impl Work {
    fn from_executed(executed: Executed, skipped: u64) -> Self {
        let [el0, el1, el2, el3] = executed.levels;
        let classes = Class::ALL.iter().zip(executed.classes);
        Self {
            el0,
            el1,
            el2,
            el3,
            skipped,
            bookkeeping: classes.map(|(class, n)| (class.name().into(), n)).collect(),
        }
    }

    /// Returns the sum of all work.
    pub fn total_work(&self) -> u64 {
        self.el0 + self.el1 + self.el2 + self.el3 + self.skipped
    }

    /// Returns the sum of the bookkeeping.
    pub fn total_bookkeeping(&self) -> u64 {
        self.bookkeeping.values().sum()
    }
}

impl Critical {
    /// Summarizes the `samples` of the cell whose statistics are `stats`. Each sample comes with the number of its
    /// occurrences. An error names either a difference between the observed and the measured samples, or a sum that is
    /// wrong.
    pub fn summarize_samples(samples: &[(Sample, u64)], stats: &Stats) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        let mut paths = BTreeMap::new();
        let mut nets = BTreeMap::new();
        let mut parties = BTreeMap::new();
        let mut work = Executed::default();
        let mut on_path = Executed::default();
        let mut skipped = 0;
        let mut exits: critical::Exits = Default::default();
        let mut unclear = 0;
        for (sample, times) in samples {
            sample.check()?;
            *values.entry(sample.value).or_default() += times;
            skipped += sample.skipped()? * times;
            work = work.plus(sample.work.times(*times));
            let all = exits.iter_mut().zip(sample.exits);
            all.for_each(|(all, exits)| *all += exits * times);
            if sample.unclear {
                unclear += times;
                continue;
            }
            on_path = on_path.plus(sample.path.times(*times));
            let (path, kept) = (sample.path.total(), sample.path.bookkeeping());
            *paths.entry(path).or_default() += times;
            *nets.entry(path - kept).or_default() += times;
            *parties.entry(sample.parties.total()).or_default() += times;
        }
        check_same_samples(&Stats::of(&values), stats)?;
        let work = Work::from_executed(work, skipped);
        let sum: u64 = values.iter().map(|(value, times)| value * times).sum();
        if work.total_work() != sum {
            return Err(format!(
                "the parts add up to {}, the samples to {sum}",
                work.total_work()
            ));
        }
        let causes = Cause::ALL.iter().zip(exits);
        Ok(Self {
            samples: paths.values().sum(),
            unclear,
            path: Stats::of(&paths),
            net: Stats::of(&nets),
            parties: Stats::of(&parties),
            histogram: paths.into_iter().collect(),
            work,
            on_path: Work::from_executed(on_path, 0),
            exits: causes.map(|(cause, n)| (cause.name().into(), n)).collect(),
        })
    }
}

/// Checks that the observed samples are the measured ones.
fn check_same_samples(seen: &Stats, measured: &Stats) -> Result<(), String> {
    let close = (seen.mean - measured.mean).abs() * seen.count as f64 <= 0.5;
    let ends = |stats: &Stats| (stats.count, stats.min, stats.max);
    if ends(seen) == ends(measured) && close {
        return Ok(());
    }
    let told = |stats: &Stats| {
        let Stats {
            count,
            min,
            max,
            mean,
            ..
        } = stats;
        format!("{count} samples from {min} to {max}, {mean:.3} on average")
    };
    Err(format!(
        "the emulator saw {}, the guest measured {}",
        told(seen),
        told(measured)
    ))
}

impl Results {
    /// Whether the path of every measured cell of `workload` is known, so that paths can be compared.
    pub fn knows_paths(&self, workload: Workload) -> bool {
        let cells = self.cells.iter();
        let mut of_workload =
            cells.filter(|cell| cell.stats.is_some() && cell.what.workload == workload);
        let first = of_workload.next();
        first.is_some_and(|first| first.critical.is_some())
            && of_workload.all(|cell| cell.critical.is_some())
    }
}

impl Cell {
    /// Returns the exits within the samples if the emulator counted them, or else all exits that the layer below the
    /// guest counted.
    pub fn exits_of_samples(&self) -> &Counts {
        self.divided_samples()
            .map_or(&self.exits, |seen| &seen.exits)
    }

    /// Returns `self.critical`, but only if the emulator counted exits.
    pub fn divided_samples(&self) -> Option<&Critical> {
        let critical = self.critical.as_ref();
        critical.filter(|critical| !critical.exits.is_empty())
    }

    /// Returns the number of [`Self::exits_of_samples`] with cause `cause`, divided by the number of samples that they
    /// cover.
    pub fn exits_per_sample(&self, cause: &str) -> f64 {
        let Some(critical) = self.divided_samples() else {
            return self.per_sample(&self.exits, cause);
        };
        let count = critical.exits.get(cause).copied().unwrap_or(0);
        let samples = critical.samples + critical.unclear;
        count as f64 / samples.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(value: u64, path: u64) -> Sample {
        Sample {
            value,
            work: Executed {
                levels: [0, value - 10, 10, 0],
                classes: [4, 2, 0, 1],
            },
            parties: Executed {
                levels: [0, path, 5, 0],
                classes: [2, 2, 0, 0],
            },
            path: Executed {
                levels: [0, path - 5, 5, 0],
                classes: [1, 2, 0, 0],
            },
            exits: [0, 0, 2, 1, 0, 0, 0, 0, 0],
            ..Sample::default()
        }
    }

    fn stats() -> Stats {
        Stats::of(&BTreeMap::from([(87, 3), (90, 1)]))
    }

    #[test]
    fn the_parts_of_all_samples_add_up_to_them() {
        let samples = [(sample(87, 66), 3), (sample(90, 67), 1)];
        let all = Critical::summarize_samples(&samples, &stats()).unwrap();
        assert_eq!((all.samples, all.unclear), (4, 0));
        assert_eq!((all.path.p50, all.path.max, all.path.mean), (66, 67, 66.25));
        assert_eq!((all.net.p50, all.net.max), (63, 64));
        assert_eq!((all.parties.p50, all.parties.max), (71, 72));
        assert_eq!(all.histogram, [(66, 3), (67, 1)]);
        assert_eq!((all.work.total_work(), all.work.el2), (3 * 87 + 90, 40));
        assert_eq!(
            (
                all.work.total_bookkeeping(),
                all.on_path.total_bookkeeping()
            ),
            (28, 12)
        );
        assert_eq!(all.on_path.total_work(), 3 * 66 + 67);
        assert_eq!((all.exits["sgi"], all.exits["irq"]), (8, 4));
    }

    #[test]
    fn the_emulators_exits_come_before_those_of_the_layer_below() {
        let critical =
            Critical::summarize_samples(&[(sample(87, 66), 3), (sample(90, 67), 1)], &stats());
        let mut cell = Cell {
            under: plan::Under::Bao,
            made: 4,
            critical: critical.ok(),
            exits: Counts::from([("other".into(), 12)]),
            ..Cell::default()
        };
        let exits = |cell: &Cell| ["sgi", "other"].map(|cause| cell.exits_per_sample(cause));
        assert_eq!(exits(&cell), [2.0, 0.0]);
        cell.exits.clear();
        assert!(cell.has_exit_counts());
        // Missing counts do not mean that there were no exits.
        cell.critical.as_mut().unwrap().exits.clear();
        assert!(!cell.has_exit_counts());
        cell.exits.insert("other".into(), 12);
        assert_eq!(exits(&cell), [0.0, 3.0]);
    }

    #[test]
    fn what_was_looked_at_has_to_be_what_was_measured() {
        for (samples, why) in [
            (vec![(sample(87, 66), 4)], "the emulator saw 4"),
            (vec![(sample(87, 66), 3)], "the emulator saw 3"),
            (vec![], "the emulator saw 0"),
            (
                vec![
                    (sample(87, 66), 2),
                    (sample(88, 66), 1),
                    (sample(90, 67), 1),
                ],
                "87.750 on average",
            ),
            (
                vec![(
                    Sample {
                        value: 86,
                        ..sample(87, 66)
                    },
                    4,
                )],
                "87 instructions were executed in a sample of 86",
            ),
        ] {
            let told = Critical::summarize_samples(&samples, &stats()).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn a_path_that_is_not_known_is_not_shown() {
        let unclear = Sample {
            unclear: true,
            ..sample(90, 20)
        };
        let samples = [(sample(87, 66), 3), (unclear, 1)];
        let all = Critical::summarize_samples(&samples, &stats()).unwrap();
        assert_eq!((all.samples, all.unclear), (3, 1));
        assert_eq!(all.path.max, 66);
        assert_eq!(all.work.total_work(), 3 * 87 + 90);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let stats = Stats::of(&(1..=10).map(|value| (value, 1)).collect());
        assert_eq!((stats.p50, stats.p90, stats.p99), (5, 9, 10));
        assert_eq!(Stats::of(&BTreeMap::new()).count, 0);
    }
}
