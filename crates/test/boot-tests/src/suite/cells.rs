// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test's requirements on the cells that it selects; `case` shows how they are written.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, anyhow, bail, ensure};
use plan::{Word, Workload};
use results::{Cell, Counts, Results, Stats, keys};
use serde::Deserialize;

/// Expected values: a number with a tolerance, or a range.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Range {
    About(f64),
    Within([f64; 2]),
}

impl Range {
    /// Returns whether `value` is expected. A count per sample is rarely a whole number: the first and the last sample
    /// of a pass may have one exit more or less than the samples between them.
    fn contains(self, value: f64) -> bool {
        match self {
            Self::About(number) => (value - number).abs() <= number.abs() * 0.02 + 0.02,
            Self::Within([low, high]) => (low..=high).contains(&value),
        }
    }

    /// Fails with an error that begins with `found`, unless the range contains `value`.
    pub fn check(self, value: f64, found: impl FnOnce() -> String) -> Result<()> {
        ensure!(self.contains(value), "{}, expected {self}", found());
        Ok(())
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About(number) => write!(f, "about {number}"),
            Self::Within([low, high]) => write!(f, "{low} to {high}"),
        }
    }
}

/// The expected critical path: a value that every sample must have, or a range for the median.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Path {
    Always(u64),
    Median([u64; 2]),
}

impl Path {
    /// Fails unless `path` is as expected. The median of `path` must not exceed the median of the whole samples,
    /// `stats`.
    fn check(self, path: &Stats, stats: &Stats) -> Result<()> {
        let right = match self {
            Self::Always(number) => (path.min, path.max) == (number, number),
            Self::Median([low, high]) => (low..=high).contains(&path.p50),
        };
        ensure!(
            right && path.p50 <= stats.p50,
            "path {} to {}, p50 {} of {}, expected {self}",
            path.min,
            path.max,
            path.p50,
            stats.p50
        );
        Ok(())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(number) => write!(f, "{number} in each"),
            Self::Median([low, high]) => write!(f, "{low} to {high}"),
        }
    }
}

/// Selects cells: maps dimensions to the value that a cell must have, or to a list of such values.
pub type Select = BTreeMap<String, toml::Value>;

/// Requirements on every cell that is selected.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    select: Select,
    #[serde(default)]
    exits: BTreeMap<String, Range>,
    #[serde(default)]
    no_exits: Vec<String>,
    #[serde(default)]
    ipis: BTreeMap<String, Range>,
    #[serde(default)]
    wakes: BTreeMap<String, Range>,
    #[serde(default)]
    counts: BTreeMap<String, Range>,
    p50: Option<Range>,
    max_p50: Option<f64>,
    max: Option<Range>,
    path: Option<Path>,
    samples: Option<Range>,
    ended: Option<String>,
    #[serde(default)]
    equal: bool,
    rising: Option<Range>,
    same_p50: Option<String>,
    unit: Option<String>,
    core_clock_moved: Option<Range>,
    counter_coarse: Option<Range>,
    uj_per_kilotick: Option<Range>,
}

impl Expected {
    pub fn compare(&self, results: &Results) -> Result<()> {
        let cells = selected(results, &self.select)?;
        self.check_same_p50(&cells)?;
        cells
            .into_iter()
            .try_for_each(|cell| self.compare_cell(cell))
    }

    /// Checks that cells that differ only in one dimension have equal medians.
    fn check_same_p50(&self, cells: &[&Cell]) -> Result<()> {
        let Some(dimension) = &self.same_p50 else {
            return Ok(());
        };
        let at = keys().position(|key| key == dimension);
        let at = at.ok_or_else(|| anyhow!("same_p50: cells have no `{dimension}`"))?;
        let mut groups: BTreeMap<Vec<String>, Vec<&Cell>> = BTreeMap::new();
        for cell in cells {
            let mut key = cell.key();
            key[at].clear();
            groups.entry(key).or_default().push(cell);
        }
        for group in groups.values() {
            let medians: Vec<u64> = group
                .iter()
                .filter_map(|cell| Some(cell.stats?.p50))
                .collect();
            ensure!(
                group.len() > 1,
                "{}: there is one `{dimension}`, and nothing to compare it with",
                group[0].title()
            );
            ensure!(
                medians.iter().all(|p50| *p50 == medians[0]),
                "{}: p50 {medians:?} by `{dimension}`, expected the same",
                group[0].title()
            );
        }
        Ok(())
    }

    fn compare_cell(&self, cell: &Cell) -> Result<()> {
        let compared = self.compare_counts(cell);
        let compared = compared.and_then(|()| self.compare_words(cell));
        let compared = compared.and_then(|()| self.compare_samples(cell));
        compared.with_context(|| cell.title())
    }

    /// Compares counters per sample.
    fn compare_counts(&self, cell: &Cell) -> Result<()> {
        // The emulator's counts are used where the software below the guest counts no exits.
        let exits = |name: &str| match cell.exits.is_empty() {
            true => cell.exits_per_sample(name),
            false => cell.per_sample(&cell.exits, name),
        };
        for (name, range) in &self.exits {
            let value = exits(name);
            range.check(value, || format!("{value:.3} exits {name} per sample"))?;
        }
        let groups = [
            ("ipis", &self.ipis, &cell.ipis),
            ("wakes", &self.wakes, &cell.wakes),
        ];
        for (group, expected, counts) in groups {
            for (name, range) in expected {
                let value = cell.per_sample(counts, name);
                range.check(value, || format!("{value:.3} {group} {name} per sample"))?;
            }
        }
        for (counter, range) in &self.counts {
            let (group, name) = counter.split_once('.').unwrap_or(("", counter));
            let nothing = Counts::new();
            let counts = cell.counters.get(group).unwrap_or(&nothing);
            let value = cell.per_sample(counts, name);
            range.check(value, || format!("{value:.3} {counter} per sample"))?;
        }
        for name in &self.no_exits {
            let value = exits(name);
            ensure!(
                value == 0.0,
                "{value:.3} exits {name} per sample, expected none"
            );
        }
        Ok(())
    }

    /// Compares the reason why the cell ended, its unit, the core clock's change, the counter's step, and the energy.
    fn compare_words(&self, cell: &Cell) -> Result<()> {
        if let Some(wanted) = &self.ended {
            let ended = cell.ended.map_or("nothing", Word::name);
            ensure!(ended == wanted, "ended by {ended}, expected {wanted}");
        }
        if let Some(unit) = &self.unit {
            ensure!(*unit == cell.unit, "in {}, expected {unit}", cell.unit);
        }
        if let Some(range) = self.core_clock_moved {
            let share = cell.core_clock_moved.unwrap_or(0.0);
            range.check(share, || format!("the core's clock moved by {share}"))?;
        }
        if let Some(range) = self.counter_coarse {
            let share = cell.counter_coarse.unwrap_or(0.0);
            range.check(share, || {
                format!("a step of the counter is {share} of the median")
            })?;
        }
        if let Some(range) = self.uj_per_kilotick {
            let energy = uj_per_kilotick(cell);
            range.check(energy, || {
                format!("{energy:.3} uJ in 1000 ticks by the model")
            })?;
        }
        Ok(())
    }

    /// Compares the number of samples and their lengths.
    fn compare_samples(&self, cell: &Cell) -> Result<()> {
        let stats = cell.stats.unwrap_or_default();
        if let Some(range) = self.samples {
            range.check(stats.count as f64, || format!("{} samples", stats.count))?;
        }
        ensure!(
            !self.equal || (stats.min, stats.max) == (stats.p50, stats.p50),
            "samples from {} to {}, p50 {}, expected all the same",
            stats.min,
            stats.max,
            stats.p50
        );
        if let Some(range) = self.rising {
            let Some(values) = cell.raw.get("total") else {
                bail!("rising: its samples were not kept; use raw");
            };
            let rising = rising(values);
            range.check(rising, || {
                format!("{rising:.2} of the samples are larger than the one before")
            })?;
        }
        if let Some(path) = self.path {
            let Some(critical) = &cell.critical else {
                bail!("its samples were not taken apart");
            };
            path.check(&critical.path, &stats)?;
        }
        let ranges = [self.p50, self.max_p50.map(|max| Range::Within([0.0, max]))];
        for range in ranges.into_iter().flatten() {
            range.check(stats.p50 as f64, || format!("p50 {}", stats.p50))?;
        }
        if let Some(max) = self.max {
            max.check(stats.max as f64, || format!("max {}", stats.max))?;
        }
        Ok(())
    }
}

/// Returns the energy in microjoules per 1000 ticks of a CPU, according to the cell's energy model; 0 without a model.
fn uj_per_kilotick(cell: &Cell) -> f64 {
    let Some(model) = &cell.energy_model else {
        return 0.0;
    };
    let samples = cell.counters["stamped"]["samples"] as f64;
    let ticks: u64 = cell.residency.values().sum();
    // A round trip is two wake-ups. The number of wake-ups is computed here, independently of the tested code.
    let round_trip = cell.what.workload == Workload::Pingpong;
    let wakeups = samples * if round_trip { 2.0 } else { 1.0 };
    model.uj_per_wakeup * wakeups * 1000.0 / ticks as f64
}

/// Returns the fraction of values that are larger than the preceding value.
fn rising(values: &[u64]) -> f64 {
    let pairs = values.windows(2);
    let larger = pairs.clone().filter(|pair| pair[1] > pair[0]).count();
    larger as f64 / pairs.len().max(1) as f64
}

/// Returns the measured cells that `select` chooses. Fails if there is none.
pub fn selected<'r>(results: &'r Results, select: &Select) -> Result<Vec<&'r Cell>> {
    let mut cells = Vec::new();
    for cell in results.cells.iter().filter(|cell| cell.stats.is_some()) {
        if selects(select, cell)? {
            cells.push(cell);
        }
    }
    ensure!(
        !cells.is_empty(),
        "no cell was measured that {select:?} selects"
    );
    Ok(cells)
}

fn selects(select: &Select, cell: &Cell) -> Result<bool> {
    for (key, wanted) in select {
        let Some(word) = cell.word(&key.replace('_', "-")) else {
            bail!("select: cells have no `{key}`");
        };
        let matches = match wanted {
            toml::Value::Array(any) => any.iter().any(|wanted| word_of(wanted) == word),
            one => word_of(one) == word,
        };
        if !matches {
            return Ok(false);
        }
    }
    Ok(true)
}

fn word_of(value: &toml::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::samples::results;

    fn compare(text: &str) -> Result<()> {
        toml::from_str::<Expected>(text)
            .unwrap()
            .compare(&results())
    }

    #[test]
    fn cells_are_compared() {
        compare("select = { wait = 'wfi' }\nexits = { wfi = 2 }\nno_exits = ['sgi']\nmax_p50 = 30")
            .unwrap();
        compare("select = { wait = ['spin', 'wfi'] }\nipis = { sent = [1, 3] }").unwrap();
    }

    #[test]
    fn samples_that_grow_are_told_from_others() {
        assert_eq!(rising(&[1, 2, 3, 1, 2]), 0.75);
        assert_eq!([rising(&[5, 5, 4]), rising(&[5]), rising(&[])], [0.0; 3]);
    }

    #[test]
    fn what_differs_is_named() {
        for (text, named) in [
            ("select = { wait = 'spin' }", "no cell"),
            ("select = { colour = 'red' }", "`colour`"),
            (
                "select = {}\nexits = { wfi = 1 }",
                "2.000 exits wfi per sample, expected about 1",
            ),
            ("select = {}\nno_exits = ['wfi']", "2.000 exits wfi"),
            (
                "select = {}\ncounts = { 'sched.passes' = 1 }",
                "0.000 sched.passes per sample, expected about 1",
            ),
            ("select = {}\nmax_p50 = 29", "p50 30, expected 0 to 29"),
            ("select = {}\nmax = [1, 9]", "max 0, expected 1 to 9"),
            (
                "select = {}\nequal = true",
                "samples from 0 to 0, p50 30, expected all the same",
            ),
            (
                "select = {}\nrising = 0.5",
                "its samples were not kept; use raw",
            ),
            ("select = {}\nsame_p50 = 'gap-us'", "there is one `gap-us`"),
            ("select = {}\nsame_p50 = 'colour'", "no `colour`"),
            ("select = {}\nunit = 'vticks'", "in insns, expected vticks"),
        ] {
            let error = format!("{:#}", compare(text).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }
}
