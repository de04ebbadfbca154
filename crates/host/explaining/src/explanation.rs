// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the explanation of cells, and with it the format of `explain.json`.

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
/// The version of the file's format.
pub const SCHEMA: u64 = 2;
/// The unit of times.
pub const CYCLES: &str = "cycles";

/// All explained cells of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Explained {
    /// The version of this format.
    pub schema: u64,
    /// The guest's kernel, under the name that the user gave; empty for our guest.
    pub guest: String,
    /// The cells.
    pub cells: Vec<ExplainedCell>,
    /// Notes on code files without symbols, and on cells without a path.
    pub notes: Vec<String>,
}

/// A cell, explained by the sample whose path has the median length.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ExplainedCell {
    /// The cell's title, with the words that distinguish the cell from others with the same title.
    pub title: String,
    /// The words that define the cell, by dimension.
    pub words: BTreeMap<String, String>,
    /// Hypervisor below the guest.
    pub under: String,
    /// Unit of all counts: `insns` or `cycles`.
    pub unit: String,
    /// Length of the median sample's path. The functions' counts on the path add up to this length.
    pub path: u64,
    /// Instructions on the path that the measurement adds, and that other tables leave out; 0 if cycles are counted.
    #[serde(default)]
    pub bookkeeping: u64,
    /// Instructions that all CPUs executed in the sample, or cycles in which they were busy.
    pub work: u64,
    /// The sample's exits and interrupts.
    pub events: Events,
    /// Number of samples whose path is known, and number of samples that executed exactly the same instructions in the
    /// same time as this sample.
    pub samples: [u64; 2],
    /// The functions, the longest on the path first.
    pub functions: Vec<FunctionCost>,
    /// The steps of the sample, in order.
    pub steps: Vec<Step>,
}

/// The cost of a function.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FunctionCost {
    /// The function's name.
    pub name: String,
    /// The file that contains the function's code.
    pub image: String,
    /// Exception level.
    pub level: u8,
    /// Number of the CPU, in the order in which CPUs executed their first instruction.
    pub cpu: usize,
    /// Instructions or cycles on the path.
    pub count: u64,
    /// Instructions on the path.
    pub instructions: u64,
    /// Instructions or cycles off the path.
    pub off_path: u64,
    /// Minimum, median and maximum, over all samples, of the instructions or cycles that this CPU spends in this
    /// function on the path.
    pub all: [u64; 3],
}

impl Explained {
    /// Returns the cell that has the same words and unit as `cell`.
    pub fn matching_cell(&self, cell: &ExplainedCell) -> Option<&ExplainedCell> {
        let mut cells = self.cells.iter();
        cells.find(|one| (&one.words, &one.unit) == (&cell.words, &cell.unit))
    }

    /// Finds the dimensions in which all cells of `other` differ from all cells of `self`. In these dimensions, gives
    /// the cells of `other` the words of `self`, so that the cells can be compared. Returns each of these dimensions,
    /// its word in `self`, and its word in `other`.
    pub fn align(&self, other: &mut Self) -> Vec<[String; 3]> {
        let keys = other.cells.iter().flat_map(|cell| cell.words.keys());
        let keys: BTreeSet<String> = keys.cloned().collect();
        let apart = keys.into_iter().filter_map(|key| {
            let [here, there] = [
                shared_word(&self.cells, &key)?,
                shared_word(&other.cells, &key)?,
            ];
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

    /// Reads the explanation at `run`: a file, a run's folder, or the name of a saved run.
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
            if let Err(why) = cell.check_sums() {
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
    pub fn check_sums(&self) -> Result<()> {
        let functions = checked_sum(self.functions.iter().map(|one| one.count));
        let on_path = self.steps.iter().filter(|step| step.on_path);
        let steps = checked_sum(on_path.map(|step| step.count));
        let all = checked_sum(self.steps.iter().map(|step| step.count));
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

    /// Returns the count of a function on the path, for all CPUs together.
    pub fn count_of(&self, function: &str) -> u64 {
        let same = self.functions.iter().filter(|one| one.name == function);
        same.map(|one| one.count).sum()
    }

    /// Returns the noun for what is counted.
    pub fn counted_noun(&self) -> &'static str {
        match self.has_time() {
            true => "cycles",
            false => "instructions",
        }
    }

    /// Whether cycles are counted.
    pub fn has_time(&self) -> bool {
        self.unit == CYCLES
    }

    /// Returns the name of the cell in tables.
    pub fn name(&self) -> String {
        format!("{}, under {}", self.title, self.under)
    }
}

/// Returns a dimension's word, if all cells have the same word.
fn shared_word(cells: &[ExplainedCell], key: &str) -> Option<String> {
    let words = cells.iter().map(|cell| cell.words.get(key));
    let words: BTreeSet<Option<&String>> = words.collect();
    match words.len() {
        1 => words.into_iter().next().flatten().cloned(),
        _ => None,
    }
}

/// Returns the sum of `counts`; `None` if the sum is larger than that of any real sample. Adding or subtracting two of
/// the returned sums can't overflow.
fn checked_sum(mut counts: impl Iterator<Item = u64>) -> Option<u64> {
    let sum = counts.try_fold(0, u64::checked_add);
    sum.filter(|sum| *sum < 1 << 48)
}
