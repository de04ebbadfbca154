// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stored baselines: files `NN-label.json`, in one folder per board. The first baseline of `virt` is from the
//! project's beginning. New costs are compared with the last baseline of their board.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::card::Card;
use super::costs::Costs;
use super::document;
use shell::failure::{BadInput, bad_input};
use shell::output::{Output, file_arguments};
use shell::{files, mistake, places};

/// Costs that can be stored as a baseline.
pub trait Baseline: DeserializeOwned + Serialize {
    /// Returns the folder of the baselines of `board`.
    fn folder(board: &str) -> String;
    /// Version of the file format.
    const SCHEMA: u32;
    fn schema(&self) -> u32;
    fn set_label(&mut self, label: &str);
    /// Returns why these costs are not suitable for comparisons, or `None` if they are.
    fn flaw(&self) -> Option<String> {
        None
    }
}

impl Baseline for Costs {
    const SCHEMA: u32 = super::costs::SCHEMA;

    fn folder(board: &str) -> String {
        match board {
            USUAL => FOLDER.into(),
            board => format!("{FOLDER}/{board}"),
        }
    }

    fn schema(&self) -> u32 {
        self.schema
    }

    fn set_label(&mut self, label: &str) {
        self.label = label.into();
    }

    /// Returns a flaw if passes were set aside, because these passes may have taken another path.
    fn flaw(&self) -> Option<String> {
        let row = self.paths.iter().find(|row| row.set_aside != 0)?;
        Some(format!(
            "{} ({}): something else happened in some of the passes ({}), which are left out; count again",
            row.path,
            row.mode.name(),
            row.set_aside
        ))
    }
}

impl Baseline for Card {
    const SCHEMA: u32 = super::card::SCHEMA;

    fn folder(_: &str) -> String {
        format!("{FOLDER}/cycles")
    }

    fn schema(&self) -> u32 {
        self.schema
    }

    fn set_label(&mut self, label: &str) {
        self.label = label.into();
    }
}

const DOCUMENT: &str = "docs/cost.md";
/// Folder that contains the baselines of the board [`USUAL`], and the folders of the other boards.
const FOLDER: &str = "docs/cost";
/// The board whose costs the page shows in full.
const USUAL: &str = "virt";
/// The board with a GICv2 whose costs the page compares with those of [`USUAL`].
const VERSION_2: &str = "virt-gic2";

/// Reads a baseline.
pub fn read_baseline<B: Baseline>(path: &Path) -> Result<B> {
    file_arguments::note("--compare", path);
    let shown = places::shown(path);
    let text = files::read_text(path).map_err(|error| {
        BadInput::error(format!("{shown} can't be read ({error}); name a baseline"))
    })?;
    let base: B = serde_json::from_str(&text).map_err(|error| {
        BadInput::error(format!(
            "{shown} is not a baseline ({})",
            mistake::of_json(&error)
        ))
    })?;
    if base.schema() != B::SCHEMA {
        bad_input!(
            "{shown} has format {}, not {}; save a new one",
            base.schema(),
            B::SCHEMA
        );
    }
    Ok(base)
}

/// Returns the files of the stored baselines of `board`, oldest first.
fn baseline_files<B: Baseline>(board: &str) -> Result<Vec<PathBuf>> {
    let name = B::folder(board);
    let folder = places::inside(&name);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&folder).with_context(|| name)?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    Ok(files)
}

/// Returns the stored baselines of `board`, oldest first.
fn stored_baselines<B: Baseline>(board: &str) -> Result<Vec<B>> {
    baseline_files::<B>(board)?
        .iter()
        .map(|path| read_baseline(path))
        .collect()
}

/// Returns the file of the newest baseline of `board`.
pub fn newest<B: Baseline>(board: &str) -> Result<PathBuf> {
    let Some(newest) = baseline_files::<B>(board)?.pop() else {
        bad_input!(
            "--compare: there is no baseline in {}; name a file, or keep one with --save",
            B::folder(board)
        );
    };
    Ok(newest)
}

/// Stores `base` as a baseline of `board` under the name `label`, and rewrites the page.
pub fn save_baseline<B: Baseline>(mut base: B, board: &str, label: &str) -> Result<String> {
    if let Some(flaw) = base.flaw() {
        bail!("--save: {flaw}; nothing is kept");
    }
    let number = baseline_files::<B>(board)?.len();
    let slug = slug(label);
    base.set_label(label);
    let folder = places::inside(&B::folder(board));
    files::make_folder(&folder)?;
    let file = folder.join(format!("{number:02}-{slug}.json"));
    let text = serde_json::to_string_pretty(&base)? + "\n";
    Output::claim("--save", &file)?.write(&text)?;
    write_document()?;
    Ok(places::shown(&file))
}

/// Rewrites the page from the baselines.
pub fn write_document() -> Result<()> {
    Output::claim("--save", &places::inside(DOCUMENT))?.write(&page()?)
}

fn page() -> Result<String> {
    let cards = stored_baselines(USUAL)?;
    let mut version2 = stored_baselines(VERSION_2)?;
    Ok(document::page(
        &stored_baselines(USUAL)?,
        &cards,
        version2.pop().as_ref(),
    ))
}

/// Converts a label to a form that can be part of a file name.
fn slug(label: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    label.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_cards_make_of_it() {
        let page = fs::read_to_string(places::inside(DOCUMENT)).unwrap();
        assert!(
            page == super::page().unwrap(),
            "{DOCUMENT} does not agree with the baselines in {FOLDER}; run `cargo xtask cost --page`"
        );
    }

    #[test]
    fn the_newest_card_is_a_card() {
        assert!(
            !read_baseline::<Costs>(&newest::<Costs>(USUAL).unwrap())
                .unwrap()
                .paths
                .is_empty()
        );
    }

    #[test]
    fn a_baseline_with_passes_set_aside_is_refused() {
        let mut newest: Costs = read_baseline(&newest::<Costs>(USUAL).unwrap()).unwrap();
        assert_eq!(newest.flaw(), None);
        newest.paths[1].set_aside = 1;
        let kept = baseline_files::<Costs>(USUAL).unwrap().len();
        let error = save_baseline(newest, USUAL, "flawed")
            .unwrap_err()
            .to_string();
        assert!(error.contains("in some of the passes (1)"), "{error}");
        assert_eq!(baseline_files::<Costs>(USUAL).unwrap().len(), kept);
    }

    #[test]
    fn labels_become_names_of_files() {
        assert_eq!(slug("In assembly: WFI"), "in-assembly--wfi");
    }
}
