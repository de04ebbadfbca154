// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a test that boots expects; `case` shows how it is written.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail, ensure};
use plan::Word;
use results::{Cell, Counts, Results, Stats, keys};
use serde::Deserialize;

use crate::session::Session;
use crate::verdict;

/// Status of a run that is refused.
const BAD_INPUT: &str = "bad-input";

/// What must come of the run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    status: String,
    says: String,
    console: Vec<String>,
    skipped: Option<usize>,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: verdict::OK.into(),
            says: String::new(),
            console: Vec::new(),
            skipped: None,
        }
    }
}

impl Expect {
    /// Whether it can be met at all.
    pub fn check(&self) -> Result<()> {
        let known = verdict::WORDS.contains(&self.status.as_str()) || self.wants_bad_input();
        let words = verdict::WORDS.join(", ");
        ensure!(
            known,
            "expect.status: there is no `{}`; use {words}, {BAD_INPUT}",
            self.status
        );
        Ok(())
    }

    /// Whether the options should be refused.
    pub fn wants_bad_input(&self) -> bool {
        self.status == BAD_INPUT
    }

    /// Whether an error is the expected one.
    pub fn says(&self, error: &str) -> Result<()> {
        ensure!(
            error.contains(&self.says),
            "the error should say `{}` and says `{error}`",
            self.says
        );
        Ok(())
    }

    /// Compares a run.
    pub fn compare(&self, session: &Session) -> Result<()> {
        let failure = session.failure.as_ref();
        let status = failure.map_or(verdict::OK, |failure| failure.word);
        let why = failure.map_or("", |failure| &failure.why);
        ensure!(
            status == self.status,
            "status {status}, expected {} ({why})",
            self.status
        );
        if failure.is_some() {
            self.says(why)?;
        }
        let mut rest = session.console.as_str();
        for part in &self.console {
            let found = rest.split_once(part.as_str());
            rest = found
                .ok_or_else(|| anyhow!("the console does not say `{part}` where it should"))?
                .1;
        }
        let skipped = session
            .results
            .cells
            .iter()
            .filter(|cell| cell.skipped.is_some())
            .count();
        if let Some(expected) = self.skipped {
            ensure!(
                skipped == expected,
                "{skipped} cells were skipped, expected {expected}"
            );
        }
        Ok(())
    }
}

/// About a number, or within two.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Range {
    About(f64),
    Within([f64; 2]),
}

impl Range {
    /// A count per sample is rarely whole: the first and last sample of a pass
    /// may see an exit more or less.
    fn contains(self, value: f64) -> bool {
        match self {
            Self::About(number) => (value - number).abs() <= number.abs() * 0.02 + 0.02,
            Self::Within([low, high]) => (low..=high).contains(&value),
        }
    }

    fn shown(self) -> String {
        match self {
            Self::About(number) => format!("about {number}"),
            Self::Within([low, high]) => format!("{low} to {high}"),
        }
    }
}

/// What the path of samples is: in every one the same, or its median within two.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Path {
    Always(u64),
    Median([u64; 2]),
}

impl Path {
    /// Whether the path of the samples of `stats` is this, and no longer than they.
    fn holds(self, path: &Stats, stats: &Stats) -> bool {
        let right = match self {
            Self::Always(number) => (path.min, path.max) == (number, number),
            Self::Median([low, high]) => (low..=high).contains(&path.p50),
        };
        right && path.p50 <= stats.p50
    }

    fn shown(self) -> String {
        match self {
            Self::Always(number) => format!("{number} in each"),
            Self::Median([low, high]) => format!("{low} to {high}"),
        }
    }
}

/// Words that cells have which are chosen: each one or any of a list.
pub type Select = BTreeMap<String, toml::Value>;

/// What must hold for every cell that is selected.
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
    path: Option<Path>,
    samples: Option<Range>,
    ended: Option<String>,
    #[serde(default)]
    equal: bool,
    same_p50: Option<String>,
    unit: Option<String>,
    core_clock_moved: Option<Range>,
    uj_per_kilotick: Option<Range>,
}

impl Expected {
    /// Compares the results of a run.
    pub fn compare(&self, results: &Results) -> Result<()> {
        let cells = selected(results, &self.select)?;
        self.alike(&cells)?;
        cells
            .into_iter()
            .try_for_each(|cell| self.compare_cell(cell))
    }

    /// Whether cells that differ in nothing but one dimension have the same median.
    fn alike(&self, cells: &[&Cell]) -> Result<()> {
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
                "{}: there is one `{dimension}`, and nothing to hold it against",
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
        let title = cell.title();
        let groups = [
            ("exits", &self.exits, &cell.exits),
            ("ipis", &self.ipis, &cell.ipis),
            ("wakes", &self.wakes, &cell.wakes),
        ];
        for (group, expected, counts) in groups {
            for (name, range) in expected {
                let value = cell.per_sample(counts, name);
                let range = (range.contains(value), range.shown());
                ensure!(
                    range.0,
                    "{title}: {value:.3} {group} {name} per sample, expected {}",
                    range.1
                );
            }
        }
        for (counter, range) in &self.counts {
            let (group, name) = counter.split_once('.').unwrap_or(("", counter));
            let nothing = Counts::new();
            let counts = cell.counters.get(group).unwrap_or(&nothing);
            let value = cell.per_sample(counts, name);
            ensure!(
                range.contains(value),
                "{title}: {value:.3} {counter} per sample, expected {}",
                range.shown()
            );
        }
        for name in &self.no_exits {
            let count = cell.exits.get(name).copied().unwrap_or(0);
            ensure!(count == 0, "{title}: {count} exits {name}, expected none");
        }
        if let Some(wanted) = &self.ended {
            let ended = cell.ended.map_or("nothing", Word::name);
            ensure!(
                ended == wanted,
                "{title}: ended by {ended}, expected {wanted}"
            );
        }
        let samples = cell.stats.map_or(0, |stats| stats.count);
        if let Some(range) = self.samples {
            ensure!(
                range.contains(samples as f64),
                "{title}: {samples} samples, expected {}",
                range.shown()
            );
        }
        if let Some(unit) = &self.unit {
            ensure!(
                *unit == cell.unit,
                "{title}: in {}, expected {unit}",
                cell.unit
            );
        }
        if let Some(range) = self.core_clock_moved {
            let share = cell.core_clock_moved.unwrap_or(0.0);
            ensure!(
                range.contains(share),
                "{title}: the core's clock moved by {share}, expected {}",
                range.shown()
            );
        }
        if let Some(range) = self.uj_per_kilotick {
            let energy = uj_per_kilotick(cell);
            ensure!(
                range.contains(energy),
                "{title}: {energy:.3} uJ in 1000 ticks by the model, expected {}",
                range.shown()
            );
        }
        let stats = cell.stats.unwrap_or_default();
        ensure!(
            !self.equal || (stats.min, stats.max) == (stats.p50, stats.p50),
            "{title}: samples from {} to {}, p50 {}, expected all the same",
            stats.min,
            stats.max,
            stats.p50
        );
        if let Some(wanted) = self.path {
            let Some(critical) = &cell.critical else {
                bail!("{title}: its samples were not taken apart");
            };
            let path = &critical.path;
            ensure!(
                wanted.holds(path, &stats),
                "{title}: path {} to {}, p50 {} of {}, expected {}",
                path.min,
                path.max,
                path.p50,
                stats.p50,
                wanted.shown()
            );
        }
        let p50 = cell.stats.map_or(0.0, |stats| stats.p50 as f64);
        let ranges = [self.p50, self.max_p50.map(|max| Range::Within([0.0, max]))];
        for range in ranges.into_iter().flatten() {
            ensure!(
                range.contains(p50),
                "{title}: p50 {p50}, expected {}",
                range.shown()
            );
        }
        Ok(())
    }
}

/// Microjoules by the model of energy for 1000 ticks of a CPU; 0 without a model.
fn uj_per_kilotick(cell: &Cell) -> f64 {
    let Some(model) = &cell.energy_model else {
        return 0.0;
    };
    let samples = cell.counters["stamped"]["samples"] as f64;
    let ticks: u64 = cell.residency.values().sum();
    // Two wake-ups are a round trip.
    model.uj_per_wakeup * samples * 2.0 * 1000.0 / ticks as f64
}

/// The cells that were measured and that `select` chooses; at least one.
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
            toml::Value::Array(any) => any.iter().any(|wanted| text(wanted) == word),
            one => text(one) == word,
        };
        if !matches {
            return Ok(false);
        }
    }
    Ok(true)
}

fn text(value: &toml::Value) -> String {
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
    fn what_differs_is_named() {
        for (text, named) in [
            ("select = { wait = 'spin' }", "no cell"),
            ("select = { colour = 'red' }", "`colour`"),
            (
                "select = {}\nexits = { wfi = 1 }",
                "2.000 exits wfi per sample, expected about 1",
            ),
            ("select = {}\nno_exits = ['wfi']", "8 exits wfi"),
            (
                "select = {}\ncounts = { 'sched.passes' = 1 }",
                "0.000 sched.passes per sample, expected about 1",
            ),
            ("select = {}\nmax_p50 = 29", "p50 30, expected 0 to 29"),
            (
                "select = {}\nequal = true",
                "samples from 0 to 0, p50 30, expected all the same",
            ),
            ("select = {}\nsame_p50 = 'gap-us'", "there is one `gap-us`"),
            ("select = {}\nsame_p50 = 'colour'", "no `colour`"),
            ("select = {}\nunit = 'vticks'", "in insns, expected vticks"),
        ] {
            let error = compare(text).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
