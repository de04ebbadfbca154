// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the cell for a row of a table, and its figures.

use std::cell::RefCell;
use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use results::neighbour::Neighbours;
use results::{Cell, Critical, Results, Stats};

use super::figures::ByBoot;

/// The results of an experiment's boots, for each repetition.
pub struct Runs {
    experiment: &'static str,
    boots: Vec<Repeated>,
    /// The missing properties on which the figures used since the last [`Runs::with_caveats`] depend.
    missing: Missing,
}

/// Names of probes.
type Missing = RefCell<BTreeSet<String>>;

/// A boot: its label, and the name and the results of each repetition.
struct Repeated {
    label: &'static str,
    results: Vec<(&'static str, Results)>,
}

/// Suffix for the label of a shorter boot. Such a boot has the cells of the longer boot, with fewer wake-ups.
pub const SHORT: &str = "-short";

/// Words that select a cell: pairs of a dimension's key and a value.
pub type Words<'w> = &'w [(&'w str, &'w str)];

impl Runs {
    /// Creates an empty collection.
    pub fn new(experiment: &'static str) -> Self {
        Self {
            experiment,
            boots: Vec::new(),
            missing: Missing::default(),
        }
    }

    /// Adds the results of repetition `repeat` of the boot `label`.
    pub fn add(&mut self, label: &'static str, repeat: &'static str, results: Results) {
        match self.boots.iter_mut().find(|boot| boot.label == label) {
            Some(boot) => boot.results.push((repeat, results)),
            None => self.boots.push(Repeated {
                label,
                results: vec![(repeat, results)],
            }),
        }
    }

    /// Returns the unit in which the board measured.
    pub fn unit(&self) -> &str {
        let mut all = self.named_results();
        match all.next().map_or("", |(_, results)| &results.unit) {
            "insns" => "instructions",
            unit => unit,
        }
    }

    /// Applies `of` to each repetition of each boot. Returns the results with the names of boot and repetition.
    pub fn map_results<T>(&self, of: impl Fn(&Results) -> T) -> Vec<(String, T)> {
        self.named_results()
            .map(|(name, results)| (name, of(results)))
            .collect()
    }

    /// Returns the results of every repetition, with the names of its boot and of the repetition itself.
    pub fn named_results(&self) -> impl Iterator<Item = (String, &Results)> {
        self.boots.iter().flat_map(|boot| {
            let alone = boot.results.len() == 1;
            let label = boot.label;
            boot.results.iter().map(move |(repeat, results)| {
                let name = match alone {
                    true => label.to_owned(),
                    false => format!("{label}-{repeat}"),
                };
                (name, results)
            })
        })
    }

    /// Applies `of` to each repetition. Returns the results with the names of the repetitions. The results of a boot
    /// without repetitions are used for every repetition.
    pub fn by_boot<T>(&self, of: impl Fn(Run<'_>) -> Result<T>) -> Result<ByBoot<T>> {
        let most = self.boots.iter().max_by_key(|boot| boot.results.len());
        let repeats = most.iter().flat_map(|boot| &boot.results).enumerate();
        let each = repeats.map(|(repeat, (name, _))| {
            let of_one = of(Run { runs: self, repeat })?;
            Ok(((*name).to_owned(), of_one))
        });
        self.with_caveats(|| each.collect())
    }

    /// Returns the figures that `of` computes, with all properties that their samples depend on and the machine lacks.
    /// So no figure can lose its caveat.
    pub fn with_caveats<T>(
        &self,
        of: impl FnOnce() -> Result<Vec<(String, T)>>,
    ) -> Result<ByBoot<T>> {
        self.missing.take();
        let figures = of()?;
        Ok(ByBoot::new(figures).with_missing_probes(self.missing.take()))
    }

    /// Like [`Self::with_caveats`], but for one figure of boots that have no repetitions.
    pub fn single_figure_with_caveats(
        &self,
        of: impl FnOnce() -> Result<f64>,
    ) -> Result<ByBoot<f64>> {
        self.with_caveats(|| Ok(vec![(String::new(), of()?)]))
    }

    /// Returns the first repetition of every boot.
    pub const fn first(&self) -> Run<'_> {
        Run {
            runs: self,
            repeat: 0,
        }
    }

    /// Whether boot `run` has a cell with all these `words`.
    pub fn has_cell(&self, run: &str, words: Words<'_>) -> bool {
        let boots = self.boots.iter().filter(|boot| boot.label == run);
        let mut cells = boots
            .flat_map(|boot| boot.results.first())
            .flat_map(|(_, results)| &results.cells);
        cells.any(|cell| has_words(cell, words))
    }

    /// Returns the only cell of boot `run` that has all these `words`, in the first repetition.
    pub fn cell(&self, run: &str, words: Words<'_>) -> Result<MeasuredCell<'_>> {
        self.first().cell(run, words)
    }

    /// Like [`Self::cell`], but returns the reason if the cell was skipped.
    pub fn cell_or_why(
        &self,
        run: &str,
        words: Words<'_>,
    ) -> Result<std::result::Result<MeasuredCell<'_>, &str>> {
        self.first().cell_or_why(run, words)
    }
}

/// One repetition of every boot.
#[derive(Clone, Copy)]
pub struct Run<'r> {
    runs: &'r Runs,
    repeat: usize,
}

impl<'r> Run<'r> {
    /// Returns the only cell of boot `run` that has all these `words`.
    pub fn cell(self, run: &str, words: Words<'_>) -> Result<MeasuredCell<'r>> {
        let found = self.cell_or_why(run, words)?;
        found.or_else(|why| bail!("{}: {why}", self.describe_cell(run, words)))
    }

    /// Like [`Self::cell`], but returns the reason if the cell was skipped.
    pub fn cell_or_why(
        self,
        run: &str,
        words: Words<'_>,
    ) -> Result<std::result::Result<MeasuredCell<'r>, &'r str>> {
        let what = || self.describe_cell(run, words);
        let mut boots = self.runs.boots.iter();
        let boot = boots.find(|boot| boot.label == run).with_context(what)?;
        let repeat = boot.results.get(self.repeat).or(boot.results.first());
        let (_, results) = repeat.with_context(what)?;
        let cells = || results.cells.iter().filter(|cell| has_words(cell, words));
        let mut measured = cells().filter(|cell| cell.stats.is_some());
        let Some(cell) = measured.next() else {
            let why = cells().find_map(|cell| cell.skipped.as_deref());
            return why
                .map(Err)
                .with_context(|| format!("{}: there is none", what()));
        };
        if measured.next().is_some() {
            bail!("{}: there are several", what());
        }
        let machine = &results.machine;
        let per_second = match cell.unit.as_str() {
            "cycles" => cell.cycles_hz.unwrap_or(machine.core_hz),
            _ => machine.cntfrq_hz,
        };
        Ok(Ok(MeasuredCell {
            cell,
            shorter: self.cell_of_shorter_boot(run, cell),
            missing: &self.runs.missing,
            frequency: machine.cntfrq_hz.max(1) as f64,
            per_second: per_second.max(1) as f64,
        }))
    }

    /// Returns `cell` as measured in the shorter version of boot `run`, if there is one.
    fn cell_of_shorter_boot(self, run: &str, cell: &Cell) -> Option<&'r Cell> {
        let mut boots = self.runs.boots.iter();
        let boot = boots.find(|boot| boot.label.strip_suffix(SHORT) == Some(run))?;
        let (_, results) = boot.results.get(self.repeat).or(boot.results.first())?;
        let mut cells = results.cells.iter();
        cells.find(|other| other.stats.is_some() && other.is_like(cell))
    }

    /// Describes the requested cell for an error message.
    fn describe_cell(self, run: &str, words: Words<'_>) -> String {
        let words = words.iter().map(|(key, word)| format!("{key} {word}"));
        let words = words.collect::<Vec<_>>().join(", ");
        let experiment = self.runs.experiment;
        format!("experiment {experiment}, boot {run}: cell {words}")
    }
}

/// Whether the cell has all `words`. A dimension that the results omit has its default value.
fn has_words(cell: &Cell, words: Words<'_>) -> bool {
    words.iter().all(|&(key, word)| {
        let told = cell.word(key).filter(|told| !told.is_empty());
        let usual = || cell.what.word(key).map(|usual| usual.to_string());
        told.or_else(usual).as_deref() == Some(word)
    })
}

/// A measured cell.
///
/// A cell's samples and its counters of time depend on the effect of its wait, and therefore on the properties that
/// the machine models. The other counters count decisions and requests of the guest, which do not depend on the wait.
///
/// Counters include the beginnings and ends of blocks. If there is a shorter boot, its counter is subtracted from each
/// counter. Long and short boots include the same beginnings and ends, which cancel out.
#[derive(Clone, Copy)]
pub struct MeasuredCell<'r> {
    cell: &'r Cell,
    /// This cell as measured in the shorter boot.
    shorter: Option<&'r Cell>,
    /// Collects the missing properties on which the used samples depend.
    missing: &'r Missing,
    /// Ticks of the counter per second.
    frequency: f64,
    /// Units of the samples per second. The units are ticks (an instruction may be a tick) or cycles.
    per_second: f64,
}

impl<'r> MeasuredCell<'r> {
    /// Returns a figure that was computed from the cell's samples, with the dependencies of the samples.
    pub fn figure(&self, value: f64) -> ByBoot<f64> {
        let missing = self.cell.not_modelled.iter().cloned();
        ByBoot::new(vec![(String::new(), value)]).with_missing_probes(missing.collect())
    }

    /// Returns the statistics of the samples, and records their dependencies.
    fn stats(&self) -> Option<Stats> {
        self.note_missing();
        self.cell.stats
    }

    fn note_missing(&self) {
        let probes = self.cell.not_modelled.iter().cloned();
        self.missing.borrow_mut().extend(probes);
    }

    /// Returns the unit of the cell's values.
    pub fn unit(&self) -> &'r str {
        &self.cell.unit
    }

    /// Returns the names of the probes for the properties that the cell's wait depends on and the machine does not
    /// model.
    pub fn not_modelled(&self) -> &'r [String] {
        &self.cell.not_modelled
    }

    /// Returns the smallest sample, in the cell's unit.
    pub fn min(&self) -> f64 {
        self.stats().map_or(0, |stats| stats.min) as f64
    }

    /// Returns the largest sample, in the cell's unit.
    pub fn max(&self) -> f64 {
        self.stats().map_or(0, |stats| stats.max) as f64
    }

    /// Returns the actual period of the event stream with this machine's counter, in microseconds.
    pub fn period_us(&self) -> f64 {
        self.cell.event_stream_made_ns as f64 / 1e3
    }

    /// Returns the median sample, in the cell's unit.
    pub fn median(&self) -> f64 {
        self.stats().map_or(0, |stats| stats.p50) as f64
    }

    /// Returns the samples, divided into the path and other work. Fails if no plugin observed the samples.
    pub fn critical(&self) -> Result<&'r Critical> {
        self.note_missing();
        let critical = self.cell.critical.as_ref();
        critical.with_context(|| {
            format!(
                "cell {}: what its CPUs executed is not known; use a QEMU with plugins",
                self.cell.title()
            )
        })
    }

    /// Returns the median number of instructions per sample that the participating CPUs executed.
    pub fn party_instructions(&self) -> Result<f64> {
        Ok(self.critical()?.parties.p50 as f64)
    }

    /// Returns the 90th percentile, in the cell's unit. `None` if there are too few samples.
    pub fn p90(&self) -> Option<f64> {
        let stats = self.stats().filter(|stats| stats.supports(900))?;
        Some(stats.p90 as f64)
    }

    /// Returns the mean, in the cell's unit.
    pub fn mean(&self) -> f64 {
        self.stats().map_or(0.0, |stats| stats.mean)
    }

    /// Returns the figures of the cell's neighbours. Fails if it has none.
    pub fn neighbours(&self) -> Result<Neighbours> {
        self.note_missing();
        let neighbours = self.cell.neighbours(self.frequency as u64);
        neighbours.with_context(|| {
            format!(
                "cell {}: it has no record of its neighbours",
                self.cell.title()
            )
        })
    }

    /// Converts `part`, a share of the CPUs' time, to microseconds of the counter per wake-up or round trip.
    pub fn us_per_sample(&self, part: f64) -> f64 {
        let ticks = self.time_counter("neighbour", "ticks") * part;
        ticks * 1e6 / self.frequency / self.operations()
    }

    /// Returns the machine's number of CPUs.
    pub fn cpus(&self) -> f64 {
        self.cell.cpus as f64
    }

    /// Returns the number of wake-ups, round trips or calls that the counters cover.
    pub fn operations(&self) -> f64 {
        let shorter = self.shorter.map_or(0, Cell::counted);
        self.cell.counted().saturating_sub(shorter).max(1) as f64
    }

    /// Returns a counter divided by [`Self::operations`].
    pub fn count_per_operation(&self, group: &str, name: &str) -> f64 {
        self.count(group, name) / self.operations()
    }

    /// Converts a value in the cell's unit to microseconds.
    pub fn value_in_us(&self, value: f64) -> f64 {
        value * 1e6 / self.per_second
    }

    /// Returns counter `name` of `group`, or 0 if it is missing.
    pub fn count(&self, group: &str, name: &str) -> f64 {
        let of = |cell: &Cell| {
            let groups = match group {
                "ipi" => Some(&cell.ipis),
                "exit" => Some(&cell.exits),
                "wake" => Some(&cell.wakes),
                _ => cell.counters.get(group),
            };
            let count = groups.and_then(|group| group.get(name));
            count.copied().unwrap_or(0) as f64
        };
        of(self.cell) - self.shorter.map_or(0.0, of)
    }

    /// Returns a counter of time, and records its dependencies.
    pub fn time_counter(&self, group: &str, name: &str) -> f64 {
        self.note_missing();
        self.count(group, name)
    }

    /// Returns the duration of the cell, in seconds of the machine.
    pub fn seconds(&self) -> f64 {
        self.time_counter("span", "ticks") / self.frequency
    }

    /// Returns the interrupts between CPUs per second of the machine.
    pub fn ipis_per_second(&self) -> f64 {
        self.count("ipi", "sent") / self.seconds().max(1e-9)
    }

    /// Returns the share of the CPUs' time in which they were not halted, in per cent.
    pub fn awake_percent(&self) -> f64 {
        let whole = self.time_counter("span", "ticks") * self.cell.cpus as f64;
        100.0 * (1.0 - self.time_counter("halt", "ticks") / whole.max(1.0))
    }

    /// Returns the share of stays in idle states that were in `state`, in per cent.
    pub fn state_share(&self, state: &str) -> f64 {
        let stays = ["poll", "wfi", "standby"].map(|state| format!("{state}.usage"));
        let all: f64 = stays.iter().map(|name| self.count("cpuidle", name)).sum();
        100.0 * self.count("cpuidle", &format!("{state}.usage")) / all.max(1.0)
    }

    /// Returns the share of stays in idle states that were too deep (`above`) or too shallow (`below`), in per cent.
    pub fn misses(&self, kind: &str) -> f64 {
        self.misses_of(&cpuidle::States::NAMES, kind)
    }

    /// Like [`Self::misses`], but for idle states with other names.
    pub fn misses_of(&self, states: &[&str], kind: &str) -> f64 {
        let sum = |what: &str| -> f64 {
            let names = states.iter().map(|state| format!("{state}.{what}"));
            names.map(|name| self.count("cpuidle", &name)).sum()
        };
        100.0 * sum(kind) / sum("usage").max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls from CPU 8 to CPU 16 of 32 CPUs, as counted on board `virt`: 40 calls of each kind, and 8 calls in the
    /// shorter boot.
    const LONGER: &str = include_str!("runs/storm.json");
    const SHORTER: &str = include_str!("runs/storm-short.json");

    fn runs(boots: &[(&'static str, &str)]) -> Runs {
        let mut runs = Runs::new("ipistorm");
        for &(label, text) in boots {
            runs.add(label, "same", serde_json::from_str(text).unwrap());
        }
        runs
    }

    #[test]
    fn a_counter_has_nothing_of_the_begins_and_ends_of_blocks() {
        let runs = runs(&[("storm", LONGER), ("storm-short", SHORTER)]);
        let each = |by: &str, group: &str, name: &str| {
            let found = runs
                .cell("storm", &[("call-by", by), ("cpulist", "8")])
                .unwrap();
            found.count_per_operation(group, name)
        };
        // An elided call sends no interrupt, but the callee's scheduler makes one pass.
        assert_eq!(each("resched", "ipi", "sent"), 0.0);
        assert_eq!(each("resched", "ipi", "elided"), 1.0);
        assert_eq!(each("resched", "sched", "from-idle"), 1.0);
        assert_eq!(each("skip-newidle", "sched", "searches"), 0.0);
        assert_eq!(each("ipi", "ipi", "sent"), 1.0);
    }

    #[test]
    fn without_a_shorter_boot_a_counter_is_divided_by_all_that_was_made() {
        let runs = runs(&[("storm", LONGER)]);
        let found = runs
            .cell("storm", &[("call-by", "ipi"), ("cpulist", "8")])
            .unwrap();
        let made = found.cell.made as f64;
        assert!(made > found.cell.stats.unwrap().count as f64);
        assert_eq!(
            found.count_per_operation("ipi", "sent"),
            found.count("ipi", "sent") / made
        );
    }
}
