// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the explanations of cells from the traces of their boots.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, bail};
use critical::Trace;
use results::Cell;
use running::session::Session;
use running::traces::TracesOfBoot;

use crate::code::CodeImage;
use crate::events::Events;
use crate::explanation::{CYCLES, Explained, ExplainedCell, FunctionCost, SCHEMA};
use crate::step::Step;
use crate::walk::{Key, Walker};

/// Inverse of the largest allowed relative difference between the median of a cell's traces and the cell's own median.
/// The medians differ because the cell's samples are counted in buckets.
const APART: u64 = 256;
/// Largest number of cycles from the time at which an instruction reads the clock to the time at which it is committed.
const SKEW: u64 = 40;

impl Explained {
    /// Explains the cells of a session.
    pub fn of(session: &Session, guest: &str) -> Result<Self> {
        let mut explained = Self {
            schema: SCHEMA,
            guest: guest.into(),
            ..Self::default()
        };
        let results = &session.results;
        let notes = results.notes.iter().chain(&results.problems);
        let mut notes: BTreeSet<String> = notes.cloned().collect();
        for boot in &session.traces {
            let images: Vec<CodeImage> = boot.code.iter().map(CodeImage::read_file).collect();
            notes.extend(lacking_notes(boot, &images));
            let walker = Walker::new(&boot.traces, &images);
            for cell in boot.cells.iter().filter(|cell| cell.stats.is_some()) {
                explained.cells.extend(explained_cell(boot, &walker, cell)?);
            }
        }
        let measured = results.cells.iter().filter(|cell| cell.stats.is_some());
        let known = |cell: &&Cell| {
            explained
                .cells
                .iter()
                .any(|one| one.words == words_of_cell(cell))
        };
        notes.extend(measured.filter(|cell| !known(cell)).map(why_left_out));
        explained.tell_titles_apart();
        explained.notes = notes.into_iter().collect();
        Ok(explained)
    }

    /// If several cells have the same title, adds to each title the words in which these cells differ.
    fn tell_titles_apart(&mut self) {
        let all = self.cells.clone();
        for cell in &mut self.cells {
            let like = all
                .iter()
                .filter(|one| (&one.title, &one.under) == (&cell.title, &cell.under));
            let like: Vec<&ExplainedCell> = like.collect();
            let differ = |key: &&String| like.iter().any(|one| one.words[*key] != cell.words[*key]);
            let added: Vec<String> = cell
                .words
                .keys()
                .filter(differ)
                .map(|key| format!(", {key} {}", cell.words[key]))
                .collect();
            cell.title += &added.concat();
        }
    }
}

/// Describes what the explanation of a boot lacks.
fn lacking_notes(boot: &TracesOfBoot, images: &[CodeImage]) -> Vec<String> {
    let nameless = images.iter().filter(|image| !image.has_symbols());
    let mut lacking: Vec<String> = nameless
        .map(|image| {
            format!(
                "{}: it has no symbols, so functions are ranges of 4 KiB; a kernel has them with CONFIG_KALLSYMS=y",
                image.name
            )
        })
        .collect();
    if boot.traces.lost != 0 {
        lacking.push(format!(
            "{} samples are left out, since not all of their blocks are known",
            boot.traces.lost
        ));
    }
    for (n, image) in images.iter().enumerate() {
        let like = images[..n].iter().filter(|other| image.is_like(other));
        lacking.extend(like.map(|other| {
            format!(
                "{} and {} are one kernel, so functions may bear the name of either",
                other.name, image.name
            )
        }));
    }
    lacking
}

/// Returns why a cell is not explained.
fn why_left_out(cell: &Cell) -> String {
    let why = match &cell.critical {
        None if cell.unit == CYCLES => "no samples of it were kept",
        None => "nothing divides its samples",
        Some(critical) if critical.path.count == 0 => "the path of no sample is known",
        Some(_) => "its samples were not kept",
    };
    let (title, under) = (cell.title(), cell.under);
    format!("{title}, under {under}: not explained: {why}")
}

/// Explains a cell; returns `None` if its path is not known.
fn explained_cell(
    boot: &TracesOfBoot,
    walker: &Walker<'_>,
    cell: &Cell,
) -> Result<Option<ExplainedCell>> {
    let traces = boot.traces.traces.iter();
    let traces: Vec<&Trace> = traces
        .filter(|trace| trace.cell == cell.id && !trace.sample.unclear)
        .collect();
    let Some(path) = median_path(cell, &traces)? else {
        return Ok(None);
    };
    let of_median = |trace: &&&Trace| trace.sample.path.total() == path;
    let Some(median) = traces
        .iter()
        .filter(of_median)
        .max_by_key(|trace| trace.times)
    else {
        bail!(
            "{}: no sample has a path of {path}, which is the median",
            cell.title()
        );
    };
    let steps = walker.steps(&median.pieces);
    let explained = ExplainedCell {
        title: cell.title(),
        words: words_of_cell(cell),
        under: cell.under.to_string(),
        unit: cell.unit.clone(),
        path,
        bookkeeping: match cell.unit == CYCLES {
            true => 0,
            false => median.sample.path.bookkeeping(),
        },
        work: median.sample.work.total(),
        events: Events::count(walker.executed_instructions(&median.pieces)),
        samples: [traces.iter().map(|trace| trace.times).sum(), median.times],
        functions: costs_of_functions(&steps, &walker.count_spreads(&traces)),
        steps,
    };
    explained
        .check_sums()
        .map_err(|why| anyhow!("{}: {why}", explained.name()))?;
    Ok(Some(explained))
}

/// Returns the median path length in a cell's `traces`; `None` if no path is known. A cell has either counts for the
/// path alone, or times of whole samples. The time of a sample is the time of its path.
fn median_path(cell: &Cell, traces: &[&Trace]) -> Result<Option<u64>> {
    if cell.unit != CYCLES {
        let path = cell.critical.as_ref().map(|critical| critical.path);
        return Ok(path.filter(|path| path.count != 0).map(|path| path.p50));
    }
    let mut times: Vec<u64> = traces
        .iter()
        .map(|trace| trace.sample.path.total())
        .collect();
    times.sort_unstable();
    let (Some(stats), Some(&median)) = (&cell.stats, hist::of_sorted(&times, 500)) else {
        return Ok(None);
    };
    if median.abs_diff(stats.p50) > stats.p50 / APART + SKEW {
        bail!(
            "{}: the median of its traces is {median} cycles, and that of its samples {}",
            cell.title(),
            stats.p50
        );
    }
    Ok(Some(median))
}

/// Returns the words that define a cell.
fn words_of_cell(cell: &Cell) -> BTreeMap<String, String> {
    let keys = results::keys().map(Into::into);
    keys.zip(cell.key()).collect()
}

fn costs_of_functions(
    steps: &[Step],
    spread: &BTreeMap<(usize, u8, Key), [u64; 3]>,
) -> Vec<FunctionCost> {
    let mut counts: BTreeMap<(usize, u8, Key), [u64; 3]> = BTreeMap::new();
    for step in steps {
        let key = (step.image.clone(), step.function.clone());
        let [count, off_path, instructions] =
            counts.entry((step.cpu, step.level, key)).or_default();
        match step.on_path {
            true => {
                (*count, *instructions) = (*count + step.count, *instructions + step.instructions)
            }
            false => *off_path += step.count,
        }
    }
    let cost =
        |((cpu, level, key), [count, off_path, instructions]): ((usize, u8, Key), [u64; 3])| {
            FunctionCost {
                all: spread
                    .get(&(cpu, level, key.clone()))
                    .copied()
                    .unwrap_or_default(),
                name: key.1,
                image: key.0,
                level,
                cpu,
                count,
                instructions,
                off_path,
            }
        };
    let mut functions: Vec<_> = counts.into_iter().map(cost).collect();
    functions.sort_by_key(|one| std::cmp::Reverse((one.count, one.off_path)));
    functions
}
