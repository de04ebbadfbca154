// SPDX-License-Identifier: MIT OR Apache-2.0
//! The explanation of cells: the form of `explain.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use foreign::Quoted;
use reporting::saved_runs;
use serde::{Deserialize, Serialize};
use shell::failure::bad_input;

use crate::events::Events;
use crate::step::Step;

/// Name of the file.
pub const FILE: &str = "explain.json";
/// The version of its form.
pub const SCHEMA: u64 = 2;
/// The unit of times.
pub const CYCLES: &str = "cycles";

/// All explained cells of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Explained {
    /// The version of this form.
    pub schema: u64,
    /// The guest's kernel, as it was named; empty for our guest.
    pub guest: String,
    /// The cells.
    pub cells: Vec<ExplainedCell>,
    /// Files of code without symbols, and cells without a path.
    pub notes: Vec<String>,
}

/// A cell, by the sample whose path is the median.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ExplainedCell {
    /// Its title, with the words that tell it from others of this title.
    pub title: String,
    /// The words that define it, by dimension.
    pub words: BTreeMap<String, String>,
    /// Hypervisor below the guest.
    pub under: String,
    /// Unit of all counts: `insns` or `cycles`.
    pub unit: String,
    /// The median of the path, and the sum of the functions' counts on it.
    pub path: u64,
    /// Instructions on it that the measurement adds, which other tables leave out; 0 of cycles.
    #[serde(default)]
    pub bookkeeping: u64,
    /// Instructions of all CPUs in that sample, or cycles that they were busy.
    pub work: u64,
    /// Its exits and interrupts.
    pub events: Events,
    /// Samples whose path is known, and those that were executed as this one, instruction by instruction and in the same
    /// time.
    pub samples: [u64; 2],
    /// The functions, the longest on the path first.
    pub functions: Vec<FunctionCost>,
    /// The sample, in order.
    pub steps: Vec<Step>,
}

/// The cost of a function.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FunctionCost {
    /// Its name.
    pub name: String,
    /// The file of its code.
    pub image: String,
    /// Exception level.
    pub level: u8,
    /// The CPU, by the order of its first instruction.
    pub cpu: usize,
    /// Instructions or cycles on the path.
    pub count: u64,
    /// Instructions on the path.
    pub instructions: u64,
    /// Instructions or cycles off the path.
    pub off_path: u64,
    /// Minimum, median and maximum of the instructions or cycles on the path, of this CPU in all samples.
    pub all: [u64; 3],
}

impl Explained {
    /// Returns the cell with the words and the unit of `cell`.
    pub fn like(&self, cell: &ExplainedCell) -> Option<&ExplainedCell> {
        let mut cells = self.cells.iter();
        cells.find(|one| (&one.words, &one.unit) == (&cell.words, &cell.unit))
    }

    /// Gives the cells of `other` the words that keep all of them apart from all cells here, so that they are compared
    /// across them. Returns these words: the dimension, its value here, its value there.
    pub fn align(&self, other: &mut Self) -> Vec<[String; 3]> {
        let keys = other.cells.iter().flat_map(|cell| cell.words.keys());
        let keys: BTreeSet<String> = keys.cloned().collect();
        let apart = keys.into_iter().filter_map(|key| {
            let [here, there] = [only(&self.cells, &key)?, only(&other.cells, &key)?];
            (here != there && key != "workload").then_some([key, here, there])
        });
        let apart: Vec<[String; 3]> = apart.collect();
        for cell in &mut other.cells {
            for [key, here, _] in &apart {
                cell.words.insert(key.clone(), here.clone());
            }
        }
        apart
    }

    /// Reads the explanation in a run's folder, or of a saved run.
    pub fn read(run: &Path) -> Result<Self> {
        let place = saved_runs::find(run);
        let exists = place.exists();
        let file = match place.is_dir() {
            true => place.join(FILE),
            false => place,
        };
        let shown = file.display();
        let text = fs::read_to_string(&file);
        let Ok(text) = text else {
            let lacks = match exists {
                true => "there is no explanation",
                false => "there is no such run",
            };
            bad_input!(
                "{shown}: {lacks}; make one with `cargo xtask explain --out DIR`, or with --save NAME"
            );
        };
        let read: Self = match serde_json::from_str(&text) {
            Ok(read) => read,
            Err(error) => bad_input!("{shown}: it is not an {FILE}: {error}"),
        };
        if read.schema != SCHEMA {
            bad_input!(
                "{shown}: it has version {}, and {SCHEMA} is known; explain again",
                read.schema
            );
        }
        for cell in &read.cells {
            if let Err(why) = cell.check() {
                bad_input!(
                    "{shown}: {}: {why}; explain again",
                    Quoted::new(&cell.title)
                );
            }
        }
        Ok(read)
    }
}

impl ExplainedCell {
    /// Checks that functions and steps add up to the path.
    pub fn check(&self) -> Result<()> {
        let functions = sum(self.functions.iter().map(|one| one.count));
        let on_path = self.steps.iter().filter(|step| step.on_path);
        let steps = sum(on_path.map(|step| step.count));
        let all = sum(self.steps.iter().map(|step| step.count));
        if [functions, steps] != [Some(self.path); 2] || all.is_none() {
            bail!(
                "functions and steps do not add up to the path, {}",
                self.path
            );
        }
        if self.bookkeeping > self.path {
            bail!(
                "its bookkeeping, {}, is more than the path, {}",
                self.bookkeeping,
                self.path
            );
        }
        Ok(())
    }

    /// Returns the instructions of a function on the path, of all CPUs.
    pub fn count_of(&self, function: &str) -> u64 {
        let same = self.functions.iter().filter(|one| one.name == function);
        same.map(|one| one.count).sum()
    }

    /// Returns the noun for what is counted.
    pub fn noun(&self) -> &'static str {
        match self.has_time() {
            true => "cycles",
            false => "instructions",
        }
    }

    /// Whether cycles are counted.
    pub fn has_time(&self) -> bool {
        self.unit == CYCLES
    }

    /// Returns its name in tables.
    pub fn name(&self) -> String {
        format!("{}, under {}", self.title, self.under)
    }
}

/// Returns the word of a dimension, if all cells have it.
fn only(cells: &[ExplainedCell], key: &str) -> Option<String> {
    let words = cells.iter().map(|cell| cell.words.get(key));
    let words: BTreeSet<Option<&String>> = words.collect();
    match words.len() {
        1 => words.into_iter().next().flatten().cloned(),
        _ => None,
    }
}

/// Returns a sum, if it is one that a sample may have. Sums and differences of two of them fit.
fn sum(mut counts: impl Iterator<Item = u64>) -> Option<u64> {
    let sum = counts.try_fold(0, u64::checked_add);
    sum.filter(|sum| *sum < 1 << 48)
}
